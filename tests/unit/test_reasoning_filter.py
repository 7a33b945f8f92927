"""Reasoning is never shown, however the text is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.chat.backends.reasoning import ReasoningFilter


def shown(*pieces: str) -> str:
    text, told = "", ReasoningFilter()
    for piece in pieces:
        part = told.feed(piece)
        text = part.text if part.reset else text + part.text
    return text + told.finish().text


SAMPLES = [
    ("<think>He lies.</think>\n\nWelcome!", "Welcome!"),
    ("Welcome! <THINK>secret</Think>Come in.", "Welcome! Come in."),
    ("secret plan</think>Welcome!", "Welcome!"),
    ("Welcome!<think>never closed", "Welcome!"),
    ("a < b and <thin ice", "a < b and <thin ice"),
    ("<think>a<think>b</think>Hello", "Hello"),
    ("<thinking>He lies.</thinking>Welcome!", "Welcome!"),
    ("<thought>\nHe lies.\n</thought>\n\nWelcome!", "Welcome!"),
    ("[THINK]He lies.[/THINK]Welcome!", "Welcome!"),
    ("<|channel|>analysis<|message|>He lies.<|end|><|start|>assistant<|channel|>final<|message|>Welcome!", "Welcome!"),
    ("<|channel|>final<|message|>Welcome!", "Welcome!"),
    ("I had a <thoughtful> [think about it] <|channel", "I had a <thoughtful> [think about it] <|channel"),
    ("no tags at all", "no tags at all"),
]


@pytest.mark.parametrize(("text", "expected"), SAMPLES)
def test_reasoning_is_left_out(text, expected):
    assert shown(text) == expected


@given(st.sampled_from(SAMPLES), st.lists(st.integers(0, 100), max_size=10))
def test_the_pieces_make_no_difference(sample, cuts):
    text, expected = sample
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert shown(*(text[start:stop] for start, stop in pairwise(at))) == expected


def test_text_is_passed_on_at_once():
    told = ReasoningFilter()
    assert [told.feed(piece).text for piece in ("Wel", "come", " in")] == ["Wel", "come", " in"]


def test_what_was_shown_before_an_orphan_end_is_taken_back():
    told = ReasoningFilter()
    told.feed("secret plan")
    assert told.feed("</think>Hi").reset
