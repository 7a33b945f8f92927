"""How many records are kept, and for how long in game time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sidecar.memory.owner_records import Entry


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What is None has no bound. Pinned records are always kept; records at least ``keep_importance`` important are
    not dropped for their age. Archived turns are no concern of it: they have a bound of their own."""

    max_records: int | None = None
    max_age_ticks: int | None = None
    keep_importance: float | None = None

    def dropped(self, entries: Collection[Entry]) -> list[str]:
        """The ids of what is kept no longer: first the too old, then the least important and, of those, the oldest."""
        if self.max_age_ticks is None and (self.max_records is None or len(entries) <= self.max_records):
            return []
        entries = [entry for entry in entries if not entry.head.archived]
        newest = _newest_ticks(entries)
        old = {entry.head.record_id for entry in entries if self._too_old(entry, newest)}
        surplus = len(entries) - len(old) - self.max_records if self.max_records is not None else 0
        spare = [entry for entry in entries if entry.head.record_id not in old and not entry.head.pinned]
        spare.sort(key=lambda entry: (entry.head.importance, entry.head.moment.tick, entry.number))
        return [*old, *(entry.head.record_id for entry in spare[: max(0, surplus)])]

    def _too_old(self, entry: Entry, newest: dict[str, int]) -> bool:
        head = entry.head
        return (
            self.max_age_ticks is not None
            and not head.pinned
            and newest[head.moment.timeline] - head.moment.tick > self.max_age_ticks
            and (self.keep_importance is None or head.importance < self.keep_importance)
        )


def _newest_ticks(entries: Collection[Entry]) -> dict[str, int]:
    newest: dict[str, int] = {}
    for entry in entries:
        moment = entry.head.moment
        newest[moment.timeline] = max(moment.tick, newest.get(moment.timeline, moment.tick))
    return newest
