"""Game time. The wall clock never decides what an actor knows."""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern
from typing import Any

from sidecar.errors import InvalidInput, Reason
from sidecar.memory.canonical_json import parse
from sidecar.storage.keys import checked_id

#: The ticks that there are.
LOWEST, HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Moment:
    """A tick on a timeline. Moments of two timelines have no order. ``calendar`` is JSON text for people, or empty."""

    timeline: str
    tick: int
    calendar: str = ""

    @property
    def dated(self) -> bool:
        """Whether anybody knows when it is: :data:`UNDATED` is not."""
        return bool(self.timeline)

    def not_after(self, other: Moment) -> bool:
        """Whether both lie on one timeline and this one is not the later; what is undated is before all."""
        return self.timeline in ("", other.timeline) and self.tick <= other.tick


#: When something happened of which nobody said when: before everything, on every timeline. Games cannot give it.
UNDATED = Moment("", LOWEST)


def checked_moment(moment: Moment, field: str) -> Moment:
    """``moment`` with its timeline trimmed. Raises InvalidInput without a timeline, for a tick beyond 64 bits, and for
    a calendar that is not JSON."""
    timeline = checked_id(moment.timeline, f"{field}.timeline_id")
    if not timeline:
        raise InvalidInput(
            f"{field}.timeline_id is required", reason=Reason.FIELD_REQUIRED, field=f"{field}.timeline_id"
        )
    if not LOWEST <= moment.tick <= HIGHEST:
        raise InvalidInput(
            f"{field}.tick must fit 64 bits with a sign", reason=Reason.FIELD_INVALID, field=f"{field}.tick"
        )
    if moment.calendar:
        parse(moment.calendar, f"{field}.calendar_json")
    return Moment(timeline, moment.tick, moment.calendar)


def moment_row(moment: Moment) -> list[Any]:
    """The short form in a journal: ``["world", 12]``, with the calendar where there is one."""
    return [moment.timeline, moment.tick, moment.calendar] if moment.calendar else [moment.timeline, moment.tick]


def moment_of(row: list[Any]) -> Moment:
    """The moment of a :func:`moment_row`."""
    return Moment(intern(row[0]), *row[1:])
