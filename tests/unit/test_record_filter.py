"""One filter decides which records are listed, forgotten and found."""

import pytest
from record_samples import record

from sidecar.errors import InvalidInput
from sidecar.memory.moments import Moment
from sidecar.memory.record_filter import RecordFilter, checked_filter, without_archive
from sidecar.memory.records import Authority, Kind
from sidecar.settings import RecordSettings

HEAD = record("m", tick=10, importance=0.5, tags=("a", "b"), expires=Moment("world", 20), conversation_id="c").head


def passes(superseded_since=None, **wanted) -> bool:
    return RecordFilter(**wanted).passes(HEAD, superseded_since=superseded_since)


@pytest.mark.parametrize(
    ("now", "found"), [(Moment("world", 9), False), (Moment("world", 10), True), (Moment("world", 19), True),
                       (Moment("world", 20), False), (Moment("dream", 15), False)]
)  # fmt: skip
def test_a_record_is_there_from_its_moment_until_its_expiry(now, found):
    assert passes(at_or_before=now) is found


def test_without_a_moment_nothing_that_ever_expires_is_found_unless_asked_for():
    assert not passes()
    assert passes(include_expired=True)
    assert RecordFilter().passes(record("m").head, superseded_since=None)


def test_what_expired_is_found_when_asked_for_but_never_the_future():
    assert passes(at_or_before=Moment("world", 99), include_expired=True)
    assert not passes(at_or_before=Moment("world", 9), include_expired=True)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"tags": frozenset("ab")}, True),
        ({"tags": frozenset("abc")}, False),
        ({"kinds": frozenset({Kind.FACT, Kind.GOAL})}, True),
        ({"kinds": frozenset({Kind.GOAL})}, False),
        ({"scopes": frozenset({"personal", "x"})}, True),
        ({"scopes": frozenset({"x"})}, False),
        ({"minimum_importance": 0.5}, True),
        ({"minimum_importance": 0.51}, False),
        ({"conversation_id": "c"}, True),
        ({"conversation_id": "d"}, False),
        ({"source_input_id": "i"}, False),
        ({"authorities": frozenset({Authority.GAME})}, True),
        ({"authorities": frozenset({Authority.MODEL})}, False),
        ({"at_or_after": Moment("world", 10)}, True),
        ({"at_or_after": Moment("world", 11)}, False),
        ({"at_or_after": Moment("dream", 1)}, False),
    ],
)
def test_each_part_of_the_filter(wanted, found):
    assert passes(include_expired=True, **wanted) is found


def test_superseded_records_are_left_out_unless_asked_for():
    assert not passes(superseded_since=12, include_expired=True)
    assert passes(superseded_since=12, include_expired=True, include_superseded=True)


@pytest.mark.parametrize(("tick", "found"), [(11, True), (12, False), (13, False)])
def test_as_of_a_moment_a_record_is_there_until_its_replacement(tick, found):
    assert passes(superseded_since=12, at_or_before=Moment("world", tick)) is found


def test_two_moments_of_different_timelines_are_refused():
    with pytest.raises(InvalidInput) as caught:
        checked_filter(
            RecordFilter(at_or_before=Moment("a", 1), at_or_after=Moment("b", 1)), "filter", RecordSettings()
        )
    assert caught.value.field == "filter.at_or_after"


@pytest.mark.parametrize("importance", [float("nan"), float("inf"), -0.1, 1.1])
def test_a_minimum_importance_that_is_no_share_of_one_is_refused(importance):
    with pytest.raises(InvalidInput):
        checked_filter(RecordFilter(minimum_importance=importance), "filter", RecordSettings())


def test_turns_of_chats_are_left_out_unless_nothing_else_is_asked_for():
    assert Kind.TURN not in without_archive(RecordFilter()).kinds
    assert without_archive(RecordFilter(kinds=frozenset([Kind.TURN, Kind.FACT]))).kinds == {Kind.FACT}
    assert without_archive(RecordFilter(kinds=frozenset([Kind.TURN]))).kinds == {Kind.TURN}
