"""The derived index of each save: opened when it is first needed, and closed when many others were used since.

They also know what the catalog of a save needs, so that a start need not read every journal.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from sidecar.diagnostics import Report
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.open_save import facts_of
from sidecar.memory.record_catalog import OwnerFacts
from sidecar.memory.records import actor_of, actor_row
from sidecar.search.index import MIGRATIONS, OUTDATED, Index, OwnerRow
from sidecar.storage.derived_database import DerivedDatabase
from sidecar.storage.keys import ActorId, folder_name, save_folder

# A group is a text, an actor a list: so both fit into one JSON object's names.
_ACTOR_MARK = "\x00"
_TEXTS_AT_ONCE = 500


class Indexes:
    """Thread-safe. No file is opened twice."""

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
            for index in list(self._known.values()):
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


def owner_row(owner: OpenOwner) -> OwnerRow:
    """What an index is to know of a locked owner."""
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
