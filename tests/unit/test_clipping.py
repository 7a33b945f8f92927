"""Shortened texts carry a sign, keep to their limit, and are not shortened twice."""

from __future__ import annotations

import pytest
from compaction_samples import CharCounter
from hypothesis import given
from hypothesis import strategies as st

from sidecar.compaction.clipping import clip, clip_within, newest_suffix, steady_suffix
from sidecar.compaction.tokens import CalibratingCounter, HeuristicCounter


def test_a_clip_tells_how_many_characters_went():
    assert clip("x" * 300, 280) == "x" * 280 + "…[+20 chars]"


def test_blanks_before_the_cut_count_as_removed():
    assert clip("ab   cdef", 4) == "ab…[+7 chars]"


@pytest.mark.parametrize(("limit", "expected"), [(0, "…[+5 chars]"), (-1, "hello"), (5, "hello"), (9, "hello")])
def test_a_clip_of_nothing_leaves_the_sign_and_a_negative_limit_is_none(limit, expected):
    assert clip("hello", limit) == expected


@given(st.text(min_size=1, max_size=400), st.integers(0, 400))
def test_a_clip_within_a_limit_keeps_to_it_sign_included(text, limit):
    assert len(clip_within(text, limit)) <= limit or len(text) <= limit


@given(st.text(max_size=200), st.integers(0, 200))
def test_a_clip_can_always_be_written_as_utf_16(text, limit):
    assert clip(text, limit).encode("utf-16-le").decode("utf-16-le") == clip(text, limit)


def test_a_short_text_keeps_its_whole_suffix():
    assert newest_suffix("hello", 100, CharCounter()) == "hello"


@pytest.mark.parametrize("cap", [0, -1])
def test_a_cap_of_nothing_is_no_cap(cap):
    assert newest_suffix("b" * 500, cap, CharCounter()) == "b" * 500


def test_the_suffix_drops_an_astral_character_whole():
    assert newest_suffix("a" * 50 + "😀" + "tail", 5, CharCounter()) == "…tail"


def test_eight_hundred_characters_under_a_cap_of_25_keep_their_tail():
    shortened = newest_suffix("x" * 796 + "tail", 25, HeuristicCounter())
    assert shortened.startswith("…")
    assert shortened.endswith("tail")
    assert HeuristicCounter().count(shortened) <= 25


@given(st.text(max_size=300), st.integers(1, 60), st.sampled_from([0.5, 1.0, 1.7]))
def test_a_suffix_keeps_to_its_cap_and_is_not_cut_again(text, cap, scale):
    counter = CalibratingCounter(scale)
    once = newest_suffix(text, cap, counter)
    assert counter.count(once) <= max(cap, counter.count("…"))
    assert newest_suffix(once, cap, counter) == once or counter.count("…") > cap


@given(st.text(max_size=300), st.integers(1, 60))
def test_a_suffix_is_the_end_of_the_text(text, cap):
    assert text.endswith(newest_suffix(text, cap, HeuristicCounter()).removeprefix("…"))


@given(st.text(max_size=300), st.integers(1, 60), st.sampled_from([0.5, 1.0, 1.7]))
def test_a_steady_suffix_is_an_end_of_the_newest_one(text, cap, scale):
    counter = CalibratingCounter(scale)
    newest, steady = newest_suffix(text, cap, counter), steady_suffix(text, cap, counter)
    assert newest.endswith(steady.removeprefix("…"))
    assert counter.count(steady) <= max(cap, counter.count("…"))


def test_a_steady_suffix_stays_while_the_cap_and_the_counts_move_a_little():
    text = " ".join(f"The bell rang {number} times." for number in range(400))
    steady = [steady_suffix(text, cap, CalibratingCounter(1 + cap / 10_000)) for cap in range(1_000, 1_600)]
    assert len(set(steady)) <= 3
    assert len(min(steady)) > 0.8 * 4 * 1_000 / 1.1


@pytest.mark.parametrize(("text", "cap"), [("hello", 9), ("", 3), ("hello", 0)])
def test_a_steady_suffix_leaves_what_fits(text, cap):
    assert steady_suffix(text, cap, HeuristicCounter()) == text
