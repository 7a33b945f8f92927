"""Timelines of a fork: its files keep the names that they had, and are read as others."""

from __future__ import annotations

from collections.abc import Mapping

EVERY = ""


def read_as(timelines: Mapping[str, str], timeline: str) -> str:
    """The timeline that is meant by the one in a file."""
    return timelines.get(timeline, timelines.get(EVERY, timeline))


def forked(timelines: Mapping[str, str], *, old: str, new: str) -> dict[str, str]:
    """What holds in a fork that goes on on ``new`` where it read ``old`` before (EVERY: whatever it read).

    An empty ``new`` changes nothing.
    """
    if not new:
        return dict(timelines)
    if old == EVERY:
        return {EVERY: new}
    after = {raw: new if shown == old else shown for raw, shown in timelines.items()}
    if EVERY not in after:
        after.setdefault(old, new)
    return after
