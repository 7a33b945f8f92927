"""Server-sent events, by the standard's rules, whatever the pieces they come in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.chat.backends.sse import Event, EventParser, EventTooLong

SAMPLE = (
    '\ufeff: a comment\r\ndata: {"text":"Grüße, 勇者 🐉"}\r\n\r\nevent: error\ndata:one\ndata: two\n\n'
    "id: 7\nretry: 10\nunknown: x\n\ndata\n\ndata:  spaced\r\r: end\ndata: [DONE]\n\n"
).encode()
EVENTS = [
    Event('{"text":"Grüße, 勇者 🐉"}'),
    Event("one\ntwo", "error"),
    Event(""),
    Event(" spaced"),
    Event("[DONE]"),
]


def parsed(*pieces: bytes) -> list[Event]:
    return parsed_of(max_bytes=10_000, pieces=pieces)


def parsed_of(*, max_bytes: int, pieces: Sequence[bytes]) -> list[Event]:
    parser = EventParser(max_bytes=max_bytes)
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize("at", range(len(SAMPLE) + 1))
def test_an_event_is_the_same_wherever_the_bytes_are_split(at):
    assert parsed(SAMPLE[:at], SAMPLE[at:]) == EVENTS


def test_bytes_may_come_one_by_one():
    assert parsed(*(bytes([byte]) for byte in SAMPLE)) == EVENTS


@given(st.lists(st.integers(0, len(SAMPLE)), max_size=12))
def test_any_number_of_splits_gives_the_same_events(cuts):
    at = [0, *sorted(cuts), len(SAMPLE)]
    assert parsed(*(SAMPLE[start:stop] for start, stop in pairwise(at))) == EVENTS


def test_an_event_without_a_blank_line_is_not_told_and_can_be_seen():
    parser = EventParser(max_bytes=100)
    assert parser.feed(b"data: whole\n\ndata: hal") == [Event("whole")]
    assert parser.rest() == b"data: hal"


def test_an_event_comes_at_once_when_its_last_line_ends_with_a_carriage_return():
    assert parsed(b"data: a\r\r") == [Event("a")]


@pytest.mark.parametrize("endless", [b"data: " + b"x" * 200, b"data: xxxxxxx\n" * 20])
def test_an_endless_event_is_refused(endless):
    with pytest.raises(EventTooLong):
        EventParser(max_bytes=100).feed(endless)


def test_a_long_line_is_looked_through_once_also_in_the_smallest_pieces():
    length = 400_000  # looking from its beginning with each piece would take minutes
    assert parsed_of(max_bytes=1_000_000, pieces=[b"data: ", *[b"x"] * length, b"\n\n"]) == [Event("x" * length)]
