"""How complete the derived index of a save is, and building it again while writes go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum

from sidecar.memory.record_store import RecordStore, lock_order
from sidecar.search.index import Index
from sidecar.search.indexer import Indexer
from sidecar.search.indexes import Indexes
from sidecar.search.recent_answers import RecentAnswers
from sidecar.storage.keys import ActorId, folder_name

_MOST_LOOKED = 1_024


class Phase(IntEnum):
    """What a rebuild is doing. The numbers are those of the contract."""

    TERMS = 1
    VECTORS = 2
    CLEANUP = 3
    DONE = 4


@dataclass(frozen=True, slots=True)
class Counts:
    """Records, those whose words are in the index, entries without a record, entries that are damaged."""

    total: int
    terms_ready: int
    orphan: int
    damaged: int
    bytes: int
    version: str
    rebuilding: bool


@dataclass(frozen=True, slots=True)
class Rebuild:
    """How far a rebuild is: records done of all, of those ready before and of those that failed; entries removed."""

    phase: Phase
    total: int
    done: int = 0
    skipped: int = 0
    failed: int = 0
    removed: int = 0


class IndexStatus:
    """Asks and mends the index; thread-safe."""

    def __init__(self, store: RecordStore, indexes: Indexes, indexer: Indexer, version: Callable[[str], str]) -> None:
        """``version`` tells how the words of a save are cut."""
        self._store = store
        self._indexes = indexes
        self._indexer = indexer
        self._version = version
        self._rebuilding: Counter[str] = Counter()
        self._looked = RecentAnswers(_MOST_LOOKED)

    def counts(self, save: str, owner: ActorId | None = None) -> Counts:
        """How the index of a save, or of one owner in it, stands."""
        catalog, index = self._store.catalog(save), self._indexes.of(save)
        owners = {folder_name(who): who for who in ([owner] if owner else catalog.owners())}
        rows = {row.folder: row for row in index.owners() if owner is None or row.folder in owners}
        known = {name: row.records for name, row in rows.items()}
        damaged = self._damaged(index, folder_name(owner) if owner else None, save)
        total = sum(catalog.count(who) for who in owners.values())
        ready = sum(min(catalog.count(who), known.get(name, 0) - damaged.get(name, 0)) for name, who in owners.items())
        orphan = sum(
            max(0, count - catalog.count(owners[name]) if name in owners else count) for name, count in known.items()
        )
        return Counts(
            total=total,
            terms_ready=ready,
            orphan=orphan,
            damaged=sum(damaged.values()),
            bytes=index.size(),
            version=self._version(save),
            rebuilding=self._rebuilding[save] > 0,
        )

    def _damaged(self, index: Index, folder: str | None, save: str) -> Mapping[str, int]:
        """Damaged entries by the owner's folder; looked for once, and not again for as long as nothing was written."""
        version = index.version()
        known: Mapping[str, int] | None = self._looked.known((save, folder), version)
        if known is None:
            known = index.damaged(folder)
            self._looked.keep((save, folder), version, known)
        return known

    @contextmanager
    def running(self, save: str) -> Iterator[None]:
        """A rebuild of a save is running."""
        self._rebuilding[save] += 1
        try:
            yield
        finally:
            self._rebuilding[save] -= 1

    def rebuild(self, save: str, owner: ActorId | None = None, *, force: bool = False) -> Iterator[Rebuild]:
        """Write what is missing and remove what has no record, a batch at a time; what is ready is passed over unless
        ``force``. Each batch is safe when it is told, so a rebuild that was broken off goes on where it was."""
        catalog = self._store.catalog(save)
        owners = sorted([owner] if owner else catalog.owners(), key=lock_order)
        step = Rebuild(Phase.TERMS, total=sum(map(catalog.count, owners)))
        written = 0
        yield step
        for progress in self._indexer.bring_up(save, owners, force=force):
            done, written = step.done + progress.records, written + progress.added
            step = replace(
                step,
                done=done,
                skipped=max(0, done - written),
                failed=step.failed + progress.failed,
                removed=step.removed + progress.removed,
            )
            yield step
        if owner is None:
            step = replace(step, phase=Phase.CLEANUP, removed=step.removed + self._remove_orphans(save))
            yield step
        yield replace(step, phase=Phase.DONE)

    def _remove_orphans(self, save: str) -> int:
        """Forget owners that own nothing any more; authority is asked again just before."""
        index = self._indexes.of(save)
        present = {folder_name(who) for who in self._store.catalog(save).owners()}
        orphans = [row for row in index.owners() if row.folder not in present]
        index.remove(row.folder for row in orphans)
        return sum(row.records for row in orphans)
