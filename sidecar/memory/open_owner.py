"""One owner's journal, open: its records in memory, its rows on the disk.

Every call is made with ``lock`` held by the caller; the store takes the locks of several owners in one order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import Corrupt, Reason
from sidecar.memory.forked_rows import as_read
from sidecar.memory.owner_records import NOWHERE, Entry, OwnerRecords, Row, compacted, numbered
from sidecar.memory.records import Record, record_of
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal, Line, Span, Torn
from sidecar.storage.keys import ActorId, actor_folder, ordinal

FILE = "records.jsonl"


class OpenOwner:
    """Loads the journal at the first need; a bad line raises Corrupt each time, for this owner alone."""

    def __init__(
        self,
        disk: Disk,
        who: ActorId,
        ensure: Callable[[ActorId], Path],
        report: Report,
        *,
        new: bool,
        timelines: Mapping[str, str],
    ) -> None:
        """``new``: there is certainly no journal yet, so none is looked for. ``timelines`` are read as others."""
        self._timelines = timelines
        self.who = who
        self.lock = threading.RLock()
        self.deferred: list[dict[str, Any]] = []
        #: What the save's inbox holds for this owner.
        self.waiting_bytes = 0
        self._disk = disk
        self._ensure = ensure
        self._report = report
        self._records = OwnerRecords(who.save) if new else None
        #: Whether the disk failed while the journal was written anew: it may hold the old rows or the new ones.
        self._unplaced = False
        #: Whether text that was forgotten still lies in the journal.
        self.holds_forgotten = False
        self._dead_bytes = 0
        self._size = 0

    @cached_property
    def _path(self) -> Path:
        return actor_folder(self._disk.root, self.who) / FILE

    @cached_property
    def _journal(self) -> Journal:
        return Journal(self._disk, self._path)

    @property
    def loaded(self) -> bool:
        """Whether the journal was read already."""
        return self._records is not None

    @property
    def folder_name(self) -> str:
        """The name of the owner's folder."""
        return self._path.parent.name

    @property
    def size(self) -> int:
        """Length of the journal in bytes."""
        return self._size

    def records(self) -> OwnerRecords:
        """What is remembered. Raises Corrupt."""
        if self._records is None:
            self._records = self._load()
        if self._unplaced:
            self._place_again()
        return self._records

    def whole(self, entries: Sequence[Entry]) -> Iterator[Record]:
        """The whole records of entries. Raises Corrupt."""
        for entry, row in zip(entries, self._rows(entries), strict=True):
            try:
                yield record_of(row["record"], self.who.save)
            except (KeyError, TypeError, ValueError) as error:
                raise self._corrupt(entry.offset) from error

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows, and take them in once they are safe."""
        records = self.records()
        self._ensure(self.who)
        self._write(self._journal, [*self.deferred, *numbered(map(self._as_read, rows), records.last)])

    def number(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Rows with the numbers that they will have."""
        return numbered(map(self._as_read, rows), self.records().last)

    def defer(self, rows: Sequence[dict[str, Any]]) -> None:
        """Take in numbered rows that are safe elsewhere, and write them later. Those that are here already are passed
        over."""
        records = self.records()
        for row in rows:
            if row["n"] > records.last:
                records.apply(row)
                self.deferred.append(row)

    def move(self, disk: Disk, actors: Actors) -> Sequence[Path]:
        """Write what was deferred through ``disk``, which need not wait for the bytes to be safe; what to sync."""
        self.records()
        made = actors.put(self.who) if not self._journal.size() else ()
        self._write(Journal(disk, self._path), list(self.deferred))
        return [*made, self._path]

    def compact(self, *, most_gone: int) -> None:
        """Write the journal anew with what is left, so that what was forgotten is gone from the disk, except for hashes
        of at most ``most_gone`` ids, by which a retry is known."""
        records = self.records()
        records.keep_gone(most_gone)
        entries = list(records.entries.values())
        rows = list(compacted(records, zip(entries, self._rows(entries), strict=True)))
        self._ensure(self.who)
        self._unplaced = True
        spans = self._journal.rewrite(rows)
        self._unplaced = False
        self.deferred.clear()
        self._dead_bytes = 0
        self.holds_forgotten = False
        self._place(rows, spans)

    def worth_compacting(self) -> bool:
        """Whether more than half of the journal says nothing any more."""
        return self._dead_bytes * 2 > self._size

    def forgetting(self, entries: Sequence[Entry]) -> None:
        """Count the bytes of entries that are about to be forgotten."""
        self.holds_forgotten = True
        self._dead_bytes += sum(entry.length for entry in entries)

    def _write(self, journal: Journal, rows: list[dict[str, Any]]) -> None:
        records = self.records()
        spans = journal.append(rows)
        self.deferred.clear()
        for row, span in zip(rows, spans, strict=True):
            if row["n"] > records.last:
                records.apply(row, *span)
        self._place(rows, spans)

    def _place(self, rows: Sequence[Row], spans: Sequence[Span]) -> None:
        """Remember where the rows of entries lie."""
        entries = self.records().entries
        for row, span in zip(rows, spans, strict=True):
            entry = entries.get(row["record"]["id"]) if row["op"] == "add" else None
            if entry is not None and entry.number == row["n"]:
                entry.offset, entry.length = span
            elif row["op"] != "gone":
                self._dead_bytes += span.length
            self._size = span.offset + span.length

    def _place_again(self) -> None:
        """See where the rows lie in the journal that a failing disk has left, and which of the deferred are in it."""
        lines = self._journal.load().lines
        last = lines[-1].row["n"] if lines else 0
        self.deferred = [row for row in self.deferred if row["n"] > last]
        self._dead_bytes = 0
        self._unplaced = False
        self._place([line.row for line in lines], [Span(line.offset, line.length) for line in lines])

    def _rows(self, entries: Sequence[Entry]) -> Iterator[Row]:
        """The rows of entries, of those that are not in the journal yet too."""
        deferred = {row["n"]: row for row in self.deferred}
        written = self._journal.read_many(
            [Span(entry.offset, entry.length) for entry in entries if entry.offset != NOWHERE]
        )
        for entry in entries:
            yield deferred[entry.number] if entry.offset == NOWHERE else self._as_read(next(written))

    def _as_read(self, row: Row) -> Row:
        return as_read(row, self._timelines, self.who.save)

    def _load(self) -> OwnerRecords:
        records = OwnerRecords(self.who.save)
        self._size = self._dead_bytes = 0

        def take(line: Line) -> None:
            try:
                records.apply(self._as_read(line.row), line.offset, line.length)
            except (KeyError, TypeError, ValueError) as error:
                raise self._corrupt(line.offset) from error
            self._size = line.end
            self.holds_forgotten = self.holds_forgotten or line.row["op"] == "forget"
            if line.row["op"] == "gone":
                self._dead_bytes -= line.length

        self._tell_torn(self._journal.scan(take))
        self._dead_bytes += self._size - sum(entry.length for entry in records.entries.values())
        return records

    def _tell_torn(self, torn: Torn | None) -> None:
        if torn is not None:
            self._report(
                Diagnostic(
                    "journal_torn_end_cut",
                    "the end of a journal had not reached the disk whole and was cut off; it was never acknowledged",
                    Severity.WARNING,
                    {"file": torn.file, "dropped_bytes": str(torn.dropped_bytes)},
                )
            )

    def _corrupt(self, offset: int) -> Corrupt:
        shown = "/".join(self._path.parts[-4:])
        return Corrupt(
            f"'{shown}' has a row at byte {offset} that is not one of ours; it was left as it is; "
            "stop the daemon and run 'lorekeeper repair'",
            reason=Reason.STORAGE_CORRUPT,
            file=shown,
            offset=offset,
        )


def entries_by_id(records: OwnerRecords) -> Iterator[Entry]:
    """Entries in the order of their ids."""
    return (records.entries[record_id] for record_id in sorted(records.entries, key=ordinal))
