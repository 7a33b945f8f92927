"""Documents: versions, notes, batches, reverts and limits, without any disk."""

from __future__ import annotations

import tracemalloc

import pytest

from sidecar.errors import InvalidInput, LimitReached, NotFound, Reason, Stale
from sidecar.memory.document import Document, EditFailed, edited, require_version, reverted
from sidecar.memory.edits import Action, Edit
from sidecar.settings import MemorySettings

LIMITS = MemorySettings(max_document_chars=1_000, max_versions=3)


def write(content):
    return Edit(Action.WRITE, content=content)


def append(content):
    return Edit(Action.APPEND, content=content)


def after(*batches, document=None):
    document = document or Document()
    for edits in batches:
        document, _ = edited(document, edits, 1_700_000_000, LIMITS)
    return document


def failing(document, *edits):
    with pytest.raises(EditFailed) as caught:
        edited(document, edits, 0, LIMITS)
    return caught.value


def test_a_version_has_number_time_action_content_and_the_change_of_length():
    version = after([write("Test memory content")]).versions[0]
    assert (version.number, version.saved_at, version.action) == (1, 1_700_000_000, "write")
    assert (version.content, version.note) == ("Test memory content", "chars 0->19 (+19)")


def test_a_note_tells_a_loss_with_its_sign():
    assert after([write("abcd")], [write("ab")]).versions[-1].note == "chars 4->2 (-2)"


def test_a_change_of_the_same_length_is_noted_as_plus_zero():
    assert after([write("ab")], [write("cd")]).versions[-1].note == "chars 2->2 (+0)"


@pytest.mark.parametrize(
    "edit", [write("a"), append(" a "), Edit(Action.STR_REPLACE, old_text="a", new_text="a")], ids=lambda e: e.action
)
def test_an_edit_that_changes_nothing_adds_no_version_and_tells_the_present_one(edit):
    document = after([write("a")])
    same, outcome = edited(document, [edit], 5, LIMITS)
    assert same == document
    assert (outcome.changed, outcome.version, outcome.length) == (False, 1, 1)


def test_a_batch_is_one_version():
    document, outcome = edited(Document(), [append("a"), append("b"), append("a")], 0, LIMITS)
    assert (document.text, document.versions[0].action, len(document.versions)) == ("a\nb", "batch", 1)
    assert [one.changed for one in outcome.done] == [True, True, False]


def test_a_batch_that_ends_where_it_began_is_no_version():
    document = after([write("a")])
    _, outcome = edited(document, [append("b"), write("a")], 0, LIMITS)
    assert (outcome.changed, outcome.version) == (False, 1)


def test_a_batch_fails_as_a_whole_and_names_the_edit():
    failed = failing(after([write("a")]), append("b"), Edit(Action.DELETE, old_text="missing"))
    assert (failed.index, failed.error.reason) == (1, Reason.NOT_FOUND)


def test_the_oldest_versions_are_dropped_and_numbers_go_on():
    document = after(*[[write(str(number))] for number in range(1, 6)])
    assert [version.number for version in document.versions] == [3, 4, 5]


def test_a_revert_is_a_new_version_with_the_old_content():
    document, outcome = reverted(after([write("a")], [write("b")]), 1, 0, LIMITS)
    assert (document.text, outcome.version) == ("a", 3)
    assert (document.versions[-1].action, document.versions[-1].note) == ("revert", "Reverted to version 1.")


def test_a_revert_to_the_same_text_changes_nothing():
    document = after([write("a")])
    same, outcome = reverted(document, 1, 0, LIMITS)
    assert (same, outcome.changed, outcome.version) == (document, False, 1)


def test_a_version_that_is_not_kept_is_not_found():
    with pytest.raises(NotFound) as caught:
        reverted(after([write("a")]), 7, 0, LIMITS)
    assert caught.value.reason == Reason.VERSION_NOT_FOUND


def test_the_expected_version_must_be_the_present_one():
    require_version(Document(), 0)
    require_version(after([write("a")]), 1)
    require_version(after([write("a")]), None)
    with pytest.raises(Stale) as caught:
        require_version(after([write("a")]), 0)
    assert caught.value.metadata["current_version"] == "1"


def test_a_document_may_be_as_long_as_the_limit_and_not_longer():
    assert len(after([write("😀" * 1_000)]).text) == 1_000
    error = failing(Document(), write("a" * 1_001)).error
    assert isinstance(error, LimitReached)
    assert error.metadata == {"limit": "memory.max_document_chars", "value": "1000"}


def test_a_replacement_that_would_multiply_the_document_is_refused_before_it_is_built():
    document = after([write("a" * 1_000)])
    edit = Edit(Action.STR_REPLACE, old_text="a", new_text="b" * 1_000_000, replace_all=True)
    tracemalloc.start()
    error = failing(document, edit).error
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.reason == Reason.DOCUMENT_TOO_LARGE
    assert peak < 10_000_000


@pytest.mark.parametrize("letter", ["\x00", "\x07", "\x1b", "\x7f", "\x85", "\x9b", "\ud800", "\udfff"])
@pytest.mark.parametrize("field", ["content", "old_text", "new_text", "anchor"])
def test_control_characters_and_lone_surrogates_are_refused_in_every_text(letter, field):
    error = failing(Document(), Edit(Action.INSERT, **{field: f"ab{letter}"})).error
    assert isinstance(error, InvalidInput)
    assert (error.reason, error.field, error.metadata["position"]) == (Reason.FIELD_INVALID, field, "2")


def test_tabs_and_line_breaks_are_allowed():
    assert after([write("a\tb\r\nc")]).text == "a\tb\r\nc"
