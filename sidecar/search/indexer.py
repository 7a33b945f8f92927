"""Keeps the derived index behind the journals: what changed is written to it in the background, many owners at once.

A kill between a journal and its index leaves the index behind; the next use of the save notices by the journal's
length, and what is missing is written again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import Corrupt
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_store import RecordStore
from sidecar.search.index import Index, OwnerRow, OwnerUpdate, WordsRow
from sidecar.search.indexes import Indexes, owner_row
from sidecar.search.words import WordSource
from sidecar.settings import SearchSettings
from sidecar.storage.background import Background
from sidecar.storage.keys import ActorId, folder_name

# The size of an owner whose words are not all written yet: no journal has it.
_UNFINISHED = -1
_ROWS_AT_ONCE = 1_024
_ROWS_UNDER_LOCK = 64


class Indexer:
    """Thread-safe. Told of each owner that changed, it brings the index up to date a moment later."""

    def __init__(
        self, store: RecordStore, indexes: Indexes, words: WordSource, limits: SearchSettings, report: Report
    ) -> None:
        self._store = store
        self._indexes = indexes
        self._words = words
        self._batch = limits.index_batch
        self._dirty: dict[ActorId, None] = {}
        self._lock = Lock()
        self._working = Lock()
        self._background = Background("indexer", self._work, delay_seconds=limits.index_delay_seconds, report=report)
        #: Called with each owner whose words were all written.
        self.written: Callable[[ActorId], None] = lambda _who: None
        self._report = report
        store.listen(self.changed)
        words.lacking = self.mend

    def changed(self, who: ActorId) -> None:
        """An owner's records changed."""
        with self._lock:
            self._dirty[who] = None
        self._background.wake()

    def pending(self, save: str) -> set[ActorId]:
        """Owners of a save whose changes are not in the index yet."""
        with self._lock:
            return {who for who in self._dirty if who.save == save}

    def mend(self, who: ActorId) -> None:
        """Drop what is damaged of an owner's entries, tell of it, and have it written again."""
        dropped = self._indexes.of(who.save).drop_damaged(folder_name(who))
        if dropped:
            what = "entries of the derived index were damaged; they were left out and are made again"
            self._report(Diagnostic("terms_damaged", what, Severity.WARNING, {"entries": str(dropped)}))
            self.changed(who)

    def again(self, save: str) -> None:
        """All that is indexed of a save has to be written again."""
        catalog = self._store.catalog_at_hand(save)
        for who in catalog.owners() if catalog else ():
            self.changed(who)

    def bring_up(self, save: str, owners: Iterable[ActorId], *, force: bool = False) -> Iterator[Progress]:
        """Compare the index of some owners with their records and write what is missing, a batch at a time.

        What is ready is passed over unless ``force``. Each batch is safe when it is told.
        """
        return self._update(save, owners, compare=True, force=force)

    def close(self) -> None:
        """Finish the batch that has begun; what is left is found at the next start."""
        self._background.close()

    def _work(self) -> bool:
        with self._working:  # before anything is taken: who finds nothing left to do finds all of it done
            with self._lock:
                save = next(iter(self._dirty)).save if self._dirty else None
                batch = [who for who in self._dirty if who.save == save][: self._batch]
                for who in batch:
                    del self._dirty[who]
            if save is not None:
                deque(self._update(save, batch), maxlen=0)
        return save is not None

    def complete(self, save: str) -> None:
        """Write at once what the index of a save lacks. Raises Corrupt for an inbox that cannot be read."""
        self._store.catalog(save)  # which tells of the owners whose journals it does not know
        with self._working:
            with self._lock:
                owners = [who for who in self._dirty if who.save == save]
                for who in owners:
                    del self._dirty[who]
            deque(self._update(save, owners), maxlen=0)

    def rest(self, save: str) -> None:
        """Forget what changed in a save, and finish the batch that has begun: its files are about to be exchanged, or
        are compared with the index when it is used again."""
        with self._lock:
            for who in [who for who in self._dirty if who.save == save]:
                del self._dirty[who]
        with self._working:
            pass

    def _update(
        self, save: str, owners: Iterable[ActorId], *, compare: bool = False, force: bool = False
    ) -> Iterator[Progress]:
        """Write what the index lacks, many small owners in one transaction, a large one in several."""
        index = self._indexes.of(save)
        waiting: list[tuple[ActorId, OwnerUpdate]] = []
        progress = Progress()
        for who in owners:
            told = 0
            try:
                for update in self._owner_updates(index, who, compare=compare, force=force):
                    waiting.append((who, update))
                    if len(waiting) >= self._batch or sum(len(one.added) for _, one in waiting) >= _ROWS_AT_ONCE:
                        told += len(update.added)
                        progress = replace(progress, records=progress.records + len(update.added))
                        yield self._written(index, waiting, progress)
                        waiting, progress = [], Progress()
                rest = max(0, self._store.catalog(save).count(who) - told)
                progress = replace(progress, records=progress.records + rest)
            except Corrupt:
                progress = replace(progress, failed=progress.failed + 1)
        yield self._written(index, waiting, progress)

    def _written(self, index: Index, updates: Sequence[tuple[ActorId, OwnerUpdate]], progress: Progress) -> Progress:
        added, removed = (sum(len(getattr(update, name)) for _, update in updates) for name in ("added", "removed"))
        released = index.write(update for _, update in updates) if updates else []
        if released is None:
            return replace(progress, failed=progress.failed + added)
        self._indexes.released(released)
        # Whoever follows would otherwise cut the words of what is still missing a second time.
        for who in dict.fromkeys(who for who, update in updates if update.row.size != _UNFINISHED):
            self.written(who)
        return replace(progress, added=added, removed=removed)

    def _owner_updates(self, index: Index, who: ActorId, *, compare: bool, force: bool) -> Iterator[OwnerUpdate]:
        if compare:
            self.mend(who)
        with self._store.opened(who) as owner:
            plan = _planned(index, owner, compare=compare, force=force)
        if plan is None:
            return
        row, missing, removed = plan
        while True:
            few, missing = missing[:_ROWS_AT_ONCE], missing[_ROWS_AT_ONCE:]
            known = row if not missing else replace(row, size=_UNFINISHED)
            yield OwnerUpdate(known, self._words_rows(who, few), removed)
            if not missing:
                return
            removed = []

    def _words_rows(self, who: ActorId, entries: Sequence[Entry]) -> list[WordsRow]:
        """The words of entries, the owner locked for a moment at a time so that writes are not held up."""
        rows: list[WordsRow] = []
        for start in range(0, len(entries), _ROWS_UNDER_LOCK):
            with self._store.opened(who) as owner:
                few = entries[start : start + _ROWS_UNDER_LOCK]
                rows += self._words.rows(owner, [entry for entry in few if not entry.forgotten])
        return rows


def _planned(
    index: Index, owner: OpenOwner, *, compare: bool, force: bool
) -> tuple[OwnerRow, list[Entry], list[str]] | None:
    """What the index should know of a locked owner, the entries that it lacks, and hashes that it has too many; None
    where it is up to date."""
    records, known, row = owner.records(), index.owner(owner.folder_name), owner_row(owner)
    if known == row and not (compare or force):
        return None
    added = records.after(known.last) if known else []
    grown = known and known.size != _UNFINISHED and known.records + len(added) == row.records and known.size <= row.size
    if grown and not (compare or force):
        return row, added, []
    hashes = index.hashes(owner.folder_name)
    present = {entry.content_hash for entry in records.entries.values()}
    missing = [entry for entry in records.entries.values() if force or entry.content_hash not in hashes]
    if known == row and not missing and hashes == present:
        return None
    return row, missing, sorted(hashes - present)


@dataclass(frozen=True, slots=True)
class Progress:
    """A batch: records of the owners that were done, entries written and removed, owners or entries that failed."""

    records: int = 0
    added: int = 0
    removed: int = 0
    failed: int = 0
