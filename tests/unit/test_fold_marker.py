"""The fold marker: its vectors, what counts as one, and where folding goes on."""

from __future__ import annotations

import pytest
from compaction_samples import dialogue
from hypothesis import given
from hypothesis import strategies as st

from sidecar.compaction.marker import (
    StoredSummary,
    bullet,
    fold_start,
    marker_for,
    message_hash,
    split_marker,
    stamp,
    strip_echo,
)
from sidecar.compaction.messages import Message

HASH = "f64b5354438e"


@pytest.mark.parametrize(
    ("role", "content", "digits"),
    [
        ("user", "msg0", "f64b5354438e"),
        ("assistant", "msg1", "3f8a742e68f1"),
        ("user", "msg2", "4c522f66c07b"),
        ("user", "   ", "6d9010b2b7a1"),
        (" user ", " msg0\n", "f64b5354438e"),
    ],
)
def test_a_message_has_the_known_hash(role, content, digits):
    assert message_hash(Message(role, content)) == digits


def test_the_marker_names_the_newest_message_first_and_eight_at_most():
    folded = dialogue(12)
    marker = marker_for(folded)
    hashes = split_marker(marker)[1]
    assert hashes == tuple(message_hash(message) for message in reversed(folded[-8:]))


def test_the_marker_names_no_message_twice():
    assert split_marker(marker_for([Message("user", "a")] * 5))[1] == (message_hash(Message("user", "a")),)


def test_the_marker_keeps_earlier_hashes_while_there_is_room():
    assert split_marker(marker_for(dialogue(1), ["0" * 12]))[1] == (HASH, "0" * 12)


@pytest.mark.parametrize(
    "line",
    [
        f"[fold:v1:{HASH[:-1]}g]",
        f"[fold:v1:{HASH.upper()}]",
        f"[fold:v1:{HASH},]",
        f"[fold:v1:{','.join([HASH] * 9)}]",
        f"[fold:v2:{HASH}]",
        "[fold:v1:]",
        f"[fold:v1:{HASH}] and more",
        f"x [fold:v1:{HASH}]",
    ],
)
def test_what_is_no_marker_stays_in_the_text(line):
    assert split_marker(f"facts\n{line}") == (f"facts\n{line}", ())


def test_a_marker_in_the_middle_stays_in_the_text():
    text = f"facts\n[fold:v1:{HASH}]\nmore facts"
    assert split_marker(text) == (text, ())


@given(
    st.text(max_size=100),
    st.lists(st.text(alphabet="0123456789abcdef", min_size=12, max_size=12), min_size=1, max_size=8, unique=True),
)
def test_a_stamped_text_gives_back_its_text_and_marker(text, hashes):
    text = text.strip()
    marker = f"[fold:v1:{','.join(hashes)}]"
    assert split_marker(stamp(text, marker)) == (text, tuple(hashes))


@pytest.mark.parametrize("echo", [f"[fold:v1:{HASH}]", "[fold:v1:whatever]", "[fold:]"])
def test_an_echoed_marker_is_stripped_from_an_answer(echo):
    assert strip_echo(f"facts\n{echo}\n") == "facts"
    assert strip_echo(f"{echo}\n{echo}") == ""


def folded(messages, *, number=0):
    return StoredSummary(stamp("facts", marker_for(messages)), number)


def test_folding_goes_on_after_the_marked_messages():
    history = dialogue(6)
    assert fold_start(history, folded(history[:4])).index == 4


def test_a_later_repeat_of_a_marked_message_is_taken_as_folded():
    history = [Message("user", "yes"), Message("assistant", "so"), Message("user", "yes"), Message("user", "new")]
    assert fold_start(history, folded(history[:3])).index == 3


def test_a_marker_that_fits_no_message_folds_all_again_and_says_so():
    start = fold_start(dialogue(3), folded([Message("user", "other")]))
    assert (start.index, start.lost) == (0, True)


def test_the_number_of_the_newest_folded_message_beats_repeated_words():
    history = [Message("user", "yes", n) if n % 2 else Message("assistant", f"a{n}", n) for n in range(1, 31)]
    assert fold_start(history, folded(history[:21], number=21)).index == 21


def test_numbers_that_count_anew_fall_back_to_the_marker():
    old, new = dialogue(6), [Message("user", f"new {n}", n) for n in range(1, 8)]
    assert fold_start(new, folded(old, number=6)).index == 0


def test_a_history_shorter_than_the_folded_number_falls_back_to_the_marker():
    history = dialogue(6)
    assert fold_start(history[:3], folded(history, number=6)).index == 3


def test_when_all_folded_messages_are_gone_the_rest_is_not_folded_yet():
    history = dialogue(10)
    start = fold_start(history[6:], folded(history[:4], number=4))
    assert (start.index, start.lost) == (0, False)


def test_a_summary_without_marker_goes_on_after_the_bullet_it_ends_with():
    history = [Message("user", "x" * 400), Message("assistant", "y")]
    assert fold_start(history, StoredSummary(f"title\n- user: {'x' * 280}...")).index == 1


def test_a_summary_without_marker_goes_on_after_the_newest_message_it_quotes():
    history = dialogue(5)
    assert fold_start(history, StoredSummary(f"title\n{bullet(history[2])}\nmore")).index == 3


def test_a_summary_that_quotes_a_part_of_a_line_quotes_nothing():
    assert fold_start([Message("user", "msg")], StoredSummary("- user: msg and more")).index == 0


def test_no_summary_means_that_nothing_is_folded():
    assert fold_start(dialogue(3), StoredSummary()).index == 0
