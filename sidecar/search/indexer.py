"""Keeps the derived index behind the journals: what changed is written to it in the background, many owners at once.

A kill between a journal and its index leaves the index behind; the next use of the save notices by the journal's
length, and what is missing is written again.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import Corrupt
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.open_save import facts_of
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_catalog import OwnerFacts
from sidecar.memory.record_store import RecordStore
from sidecar.memory.records import actor_of, actor_row
from sidecar.search.index import MIGRATIONS, OUTDATED, Index, OwnerRow, OwnerUpdate, WordsRow
from sidecar.search.words import WordSource
from sidecar.settings import SearchSettings
from sidecar.storage.background import Background
from sidecar.storage.derived_database import DerivedDatabase
from sidecar.storage.keys import ActorId, folder_name, save_folder

# A group is a text, an actor a list: so both fit into one JSON object's names.
_ACTOR_MARK = "\x00"
# The size of an owner whose words are not all written yet: no journal has it.
_UNFINISHED = -1
_ROWS_AT_ONCE = 1_024
_TEXTS_AT_ONCE = 500
_ROWS_UNDER_LOCK = 64


class Indexes:
    """The index of each save, opened when it is first needed. They also know what the catalog of a save needs."""

    def __init__(
        self, root: Path, *, in_memory: bool, version: Callable[[str], str], report: Report, most_open: int
    ) -> None:
        """``version`` tells how words are cut now, in the save whose folder has this name."""
        self._root = root
        self._in_memory = in_memory
        self._version = version
        self._report = report
        self._most_open = most_open
        # All that anybody holds, so that no file is opened by two, and those that are kept open.
        self._known: WeakValueDictionary[str, Index] = WeakValueDictionary()
        self._open: OrderedDict[str, Index] = OrderedDict()
        self._lock = Lock()
        #: Called with each save that is used for the first time.
        self.opening: Callable[[str], None] = lambda _save: None
        #: Called with texts that were removed; another record may still have them.
        self.released: Callable[[Sequence[bytes]], None] = lambda _texts: None

    def of(self, save: str) -> Index:
        """The index of a save."""
        return self._at(save_folder(self._root, save).name)

    def unused(self, texts: Sequence[bytes]) -> list[bytes]:
        """Those of a few texts that certainly no record of any save has."""
        unused = list(texts)
        for name in self._saves() if unused else ():
            # One look: between two the words of the save might be taken away, to be cut in another language.
            used = self._at(name).surely_uses(unused)
            unused = [] if used is None else [text for text in unused if text not in used]
            if not unused:
                break  # mostly the first one knows them all
        return unused

    def unused_but_by(self, save: str, folder: str | None, texts: Sequence[bytes]) -> list[bytes]:
        """Those of ``texts`` that, as far as the indexes know, only records of a save, or of one owner in it, have."""
        own, used = save_folder(self._root, save).name, set[bytes]()
        for name in self._saves():
            for start in range(0, len(texts), _TEXTS_AT_ONCE) if name != own or folder else ():
                part = texts[start : start + _TEXTS_AT_ONCE]
                used |= self._at(name).uses(part, but=folder if name == own else None) or set()
        return [text for text in texts if text not in used]

    def facts(self, save: str) -> Mapping[str, tuple[ActorId, OwnerFacts]]:
        """What is known of the owners of a save, by the names of their folders; asked when it is first used."""
        self.opening(save)
        if self._in_memory or not self._path(save).exists():
            return {}
        known = {}
        for row in self.of(save).owners():
            with suppress(ValueError, TypeError):  # a damaged row says nothing: the owner's journal is read
                known[row.folder] = _facts(row, save)
        return known

    def counted(self, who: ActorId) -> dict[str, int]:
        """Nothing here counts as memory."""
        return {}

    def erased(self, who: ActorId) -> None:
        """Forget an owner's words."""
        if self._in_memory or self._path(who.save).exists():
            self.of(who.save).remove([folder_name(who)])
            self.of(who.save).close()  # which empties the log of the file, too

    def exchanged(self, save: str) -> None:
        """Trust nothing that is known of a save's owners: their folders were exchanged. Words stay: they are tied to
        what they were made from."""
        if self._in_memory or self._path(save).exists():
            self.of(save).distrust()

    def removed(self, save: str) -> None:
        """Throw the index of a save away: the save is gone, or names that it must not hold any more."""
        if self._in_memory or self._path(save).exists():
            self.of(save).delete()
            with self._lock:
                self._open.pop(save_folder(self._root, save).name, None)

    def close(self) -> None:
        """Let go of all files."""
        with self._lock:
            for index in self._open.values():
                index.close()

    def _at(self, name: str) -> Index:
        with self._lock:
            index = self._known.get(name)
            if index is None:
                index = self._known[name] = Index(self._database(name))
            self._open[name] = index
            self._open.move_to_end(name)
            full = len(self._open) > self._most_open and not self._in_memory  # where nothing else has what it knows
            idle = self._open.popitem(last=False)[1] if full else None
        if idle is not None:
            idle.close()
        return index

    def _database(self, name: str) -> DerivedDatabase:
        path = None if self._in_memory else self._root / "index" / f"{name}.sqlite3"
        return DerivedDatabase(path, MIGRATIONS, lambda: self._version(name), self._report, outdated=OUTDATED)

    def _saves(self) -> list[str]:
        """The folder names of all saves that have an index."""
        if self._in_memory:
            return list(self._open)
        folders = (self._root / "saves").glob("s-*")
        return [folder.name for folder in folders if (self._root / "index" / f"{folder.name}.sqlite3").exists()]

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
    records, known, row = owner.records(), index.owner(owner.folder_name), _row(owner)
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


def _row(owner: OpenOwner) -> OwnerRow:
    facts = facts_of(owner)
    return OwnerRow(
        folder=owner.folder_name,
        address=json.dumps(actor_row(owner.who), ensure_ascii=False),
        size=facts.size,
        last=owner.records().last,
        records=facts.count,
        targets=json.dumps(sorted(map(_name, facts.targets)), ensure_ascii=False),
        archived=facts.archived,
    )


def _facts(row: OwnerRow, save: str) -> tuple[ActorId, OwnerFacts]:
    targets = frozenset(_target(name, save) for name in json.loads(row.targets))
    return actor_of(json.loads(row.address), save), OwnerFacts(row.size, row.records, targets, row.archived)


def _name(target: Hashable) -> str:
    if isinstance(target, ActorId):
        return _ACTOR_MARK + json.dumps(actor_row(target), ensure_ascii=False)
    return str(target)


def _target(name: str, save: str) -> Hashable:
    return actor_of(json.loads(name[1:]), save) if name.startswith(_ACTOR_MARK) else name
