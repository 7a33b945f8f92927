"""Which texts may be embedded, and how long ones are cut."""

import pytest

from sidecar.embedding.texts import TextCut, accept
from sidecar.errors import InvalidInput, Reason


def refused(texts, **limits):
    with pytest.raises(InvalidInput) as error:
        accept(texts, **{"max_texts": 4_096, "max_chars": 100, **limits})
    return error.value.reason, error.value.field


def test_no_text_at_all_is_refused():
    assert refused([]) == (Reason.FIELD_REQUIRED, "texts")


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "\u3000"])
def test_a_blank_text_is_refused_by_its_place(blank):
    assert refused(["cat", blank]) == (Reason.FIELD_REQUIRED, "texts[1]")


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", "cat \udfff"])
def test_nul_and_half_a_surrogate_pair_are_refused(bad):
    assert refused([bad]) == (Reason.FIELD_INVALID, "texts[0]")


def test_one_text_more_than_the_limit_is_refused():
    assert refused(["cat"] * 4_097) == (Reason.TOO_MANY_ITEMS, "texts")


def test_a_message_never_carries_the_text():
    with pytest.raises(InvalidInput) as error:
        accept(["secret\0plan"], max_texts=1, max_chars=100)
    assert "secret" not in error.value.message + str(error.value.metadata)


def test_a_long_text_is_cut_by_code_points_and_told():
    accepted = accept(["cat", "😀" * 101], max_texts=2, max_chars=100)
    assert accepted.texts == ("cat", "😀" * 100)
    assert accepted.cuts == (TextCut(index=1, unit="code_points", kept=100, dropped=1),)
