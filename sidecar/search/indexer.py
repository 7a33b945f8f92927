"""Keeps the derived index behind the journals: what changed is written to it in the background, many owners at once.

A kill between a journal and its index leaves the index behind; the next use of the save notices by the journal's
length, and what is missing is written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from sidecar.diagnostics import Report
from sidecar.errors import Corrupt
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.record_catalog import OwnerFacts
from sidecar.memory.record_store import RecordStore, facts_of
from sidecar.memory.records import actor_of, actor_row
from sidecar.search.index import MIGRATIONS, Index, OwnerRow, OwnerUpdate
from sidecar.search.words import WordSource
from sidecar.settings import SearchSettings
from sidecar.storage.background import Background
from sidecar.storage.derived_database import DerivedDatabase
from sidecar.storage.keys import ActorId, save_folder

# A group is a text, an actor a list: so both fit into one JSON object's names.
_ACTOR_MARK = "\x00"


class Indexes:
    """The index of each save, opened when it is first needed. They also know what the catalog of a save needs."""

    def __init__(self, root: Path, *, in_memory: bool, version: Callable[[], str], report: Report) -> None:
        self._root = root
        self._in_memory = in_memory
        self._version = version
        self._report = report
        self._open: dict[str, Index] = {}
        self._lock = Lock()

    def of(self, save: str) -> Index:
        """The index of a save."""
        with self._lock:
            index = self._open.get(save)
            if index is None:
                path = None if self._in_memory else self._path(save)
                index = self._open[save] = Index(DerivedDatabase(path, MIGRATIONS, self._version(), self._report))
            return index

    def facts(self, save: str) -> Mapping[str, tuple[ActorId, OwnerFacts]]:
        """What is known of the owners of a save, by the names of their folders."""
        return {row.folder: _facts(row, save) for row in self.of(save).owners()}

    def forget(self, save: str) -> None:
        """Throw the index of a save away: the save was erased or exchanged."""
        self.of(save).delete()

    def close(self) -> None:
        """Let go of all files."""
        with self._lock:
            for index in self._open.values():
                index.close()

    def _path(self, save: str) -> Path:
        return self._root / "index" / (save_folder(self._root, save).name + ".sqlite3")


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
        self._background = Background("indexer", self._work, delay_seconds=limits.index_delay_seconds, report=report)
        store.listen(self.changed)

    def changed(self, who: ActorId) -> None:
        """An owner's records changed."""
        with self._lock:
            self._dirty[who] = None
        self._background.wake()

    def pending(self, save: str) -> set[ActorId]:
        """Owners of a save whose changes are not in the index yet."""
        with self._lock:
            return {who for who in self._dirty if who.save == save}

    def bring_up(self, save: str, owners: Iterable[ActorId], *, force: bool = False) -> Iterator[Progress]:
        """Bring the index of some owners up to date, a batch at a time; what is ready is passed over unless ``force``.

        Each batch is safe when it is told, so that a call that was broken off goes on where it was.
        """
        batch: list[ActorId] = []
        for who in owners:
            batch.append(who)
            if len(batch) == self._batch:
                yield self._update(save, batch, force=force)
                batch = []
        if batch:
            yield self._update(save, batch, force=force)

    def close(self) -> None:
        """Finish the batch that has begun; what is left is found at the next start."""
        self._background.close()

    def _work(self) -> bool:
        with self._lock:
            save = next(iter(self._dirty)).save if self._dirty else None
            batch = [who for who in self._dirty if who.save == save][: self._batch]
            for who in batch:
                del self._dirty[who]
        if save is not None:
            self._update(save, batch, force=False)
        return save is not None

    def _update(self, save: str, owners: Sequence[ActorId], *, force: bool) -> Progress:
        index = self._indexes.of(save)
        updates, total, failed = [], 0, 0
        for who in owners:
            try:
                with self._store.opened(who) as owner:
                    updates.append(self._change(index, owner, force=force))
                    total += len(owner.records().entries)
            except Corrupt:
                failed += 1
        written = index.write(update for update in updates if update is not None)
        added = sum(len(update.added) for update in updates if update)
        removed = sum(len(update.removed) for update in updates if update)
        return Progress(total, added if written else 0, removed if written else 0, failed if written else total)

    def _change(self, index: Index, owner: OpenOwner, *, force: bool) -> OwnerUpdate | None:
        """What the index must take in for a locked owner; None where it is up to date."""
        entries = owner.records().entries
        known = index.owner(owner.folder_name)
        row = _row(owner)
        if known == row and not force:
            return None
        added = owner.records().after(known.last if known and not force else 0)
        removed: set[str] = set()
        if force or known is None or known.records + len(added) != row.records or known.size > row.size:
            hashes = index.hashes(owner.folder_name)
            present = {entry.content_hash for entry in entries.values()}
            removed = hashes - present
            added = [entry for entry in entries.values() if force or entry.content_hash not in hashes]
        return OwnerUpdate(row, [self._words.row(owner, entry) for entry in added], sorted(removed))


@dataclass(frozen=True, slots=True)
class Progress:
    """A batch of owners: their records, entries written and removed, owners that could not be read."""

    records: int
    added: int
    removed: int
    failed: int


def _row(owner: OpenOwner) -> OwnerRow:
    facts = facts_of(owner)
    return OwnerRow(
        folder=owner.folder_name,
        address=json.dumps(actor_row(owner.who), ensure_ascii=False),
        size=facts.size,
        last=owner.records().last,
        records=facts.count,
        addressed=json.dumps({_name(to): sorted(ids) for to, ids in facts.addressed.items()}, ensure_ascii=False),
    )


def _facts(row: OwnerRow, save: str) -> tuple[ActorId, OwnerFacts]:
    addressed = {_target(name, save): set(ids) for name, ids in json.loads(row.addressed).items()}
    return actor_of(json.loads(row.address), save), OwnerFacts(row.size, row.records, addressed)


def _name(target: Hashable) -> str:
    if isinstance(target, ActorId):
        return _ACTOR_MARK + json.dumps(actor_row(target), ensure_ascii=False)
    return str(target)


def _target(name: str, save: str) -> Hashable:
    return actor_of(json.loads(name[1:]), save) if name.startswith(_ACTOR_MARK) else name
