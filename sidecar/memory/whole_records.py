"""Whole records: those written or read last in memory, the others read from the journal when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.owner_records import Entry
from sidecar.memory.records import Record
from sidecar.storage.recent import Recent

#: A record with more text than this is read again each time, so that what is kept stays bounded.
KEPT_CHARS = 16_384


class WholeRecords:
    """At most ``most`` are kept. Thread-safe."""

    def __init__(self, *, most: int) -> None:
        self._kept: Recent[Entry, Record] = Recent(most)

    def of(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[Record]:
        """The records of entries whose owner is locked; the journal is opened once. Raises Corrupt."""
        known = [self._kept.get(entry) for entry in entries]
        missing = owner.whole([entry for entry, record in zip(entries, known, strict=True) if record is None])
        for entry, record in zip(entries, known, strict=True):
            yield record or self.keep(entry, next(missing))

    def kept(self, entry: Entry) -> Record | None:
        """The record of an entry where it is in memory."""
        return self._kept.get(entry)

    def keep(self, entry: Entry, record: Record) -> Record:
        """Have a record in memory, unless it is too long; those that came first make room."""
        if len(record.payload) + len(record.text) > KEPT_CHARS:
            return record
        return self._kept.keep(entry, record)

    def clear(self) -> None:
        """Have none in memory."""
        self._kept.clear()
