"""What is open of each save: its table of contents, its inbox, and the owners that were used lately.

Owners are opened when they are first needed and kept within bounds; an owner whose rows still wait in the inbox stays
open until they are moved. There is never more than one open owner for one journal.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import Corrupt
from sidecar.memory.open_owner import FILE, OpenOwner
from sidecar.memory.record_catalog import Catalog, KnownFacts, OwnerFacts
from sidecar.memory.record_inbox import Inbox, OwnerRows
from sidecar.settings import RecordSettings
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.keys import ActorId, save_folder


class OpenSave:
    """One save: its catalog, and the rows on their way from its inbox to the owners' journals.

    Where an owner's lock and the inbox are both needed, the owner's lock is taken first.
    """

    def __init__(self, disk: Disk, save: str, *, most_records: int) -> None:
        self.catalog = Catalog(most=most_records)
        self._disk = disk
        self._inbox = Inbox(disk, save_folder(disk.root, save), save)
        self._lock = threading.Lock()
        self._mover = threading.Lock()
        self._waiting: dict[ActorId, OpenOwner] = {}
        self._moving: dict[ActorId, OpenOwner] = {}
        self._moved: list[Path] = []
        self._stuck: list[OwnerRows] = []

    @property
    def waiting(self) -> int:
        """Owners whose rows wait for their journal."""
        return len(self._waiting)

    def note(self, owner: OpenOwner) -> None:
        """Take down how a locked owner stands now."""
        self.catalog.note(owner.who, facts_of(owner))

    def defer(self, rows: Mapping[OpenOwner, Sequence[Mapping[str, Any]]]) -> None:
        """Make rows of several locked owners safe at once, and let their journals follow."""
        numbered = {owner: owner.number(own) for owner, own in rows.items()}
        with self._lock:
            self._inbox.append((owner.who, own) for owner, own in numbered.items())
            for owner, own in numbered.items():
                self._wait(owner, own)

    def left_behind(self) -> list[OwnerRows]:
        """What the inbox held when the daemon ended. Raises Corrupt."""
        return self._inbox.load()

    def defer_again(self, owner: OpenOwner, rows: Sequence[dict[str, Any]]) -> None:
        """Take in rows that were left behind. Where the owner's journal cannot be read they stay in the inbox, and
        Corrupt is raised."""
        try:
            self._wait(owner, rows)
        except Corrupt:
            self._stuck.append((owner.who, rows))
            raise

    def move(self, most: int | None = None) -> int:
        """Move the rows of at most ``most`` owners to their journals, one mover at a time; how many still wait."""
        with self._mover:
            return self._move(most)

    def help_to_move(self, most: int) -> None:
        """Like :meth:`move`, for one who may hold an owner's lock: it never waits for another mover."""
        if self._mover.acquire(blocking=False):
            try:
                self._move(most)
            finally:
                self._mover.release()

    def _move(self, most: int | None) -> int:
        with self._lock:
            if self._waiting and not self._moving:
                self._inbox.set_aside()
                self._moving.update(self._waiting)
            moving = list(self._moving.values())[:most]
        actors = Actors(self._disk.unsynced())
        for owner in moving:
            self._move_one(owner, actors)
        with self._lock:
            if moving and not self._moving:
                self._disk.sync_all(self._moved)
                self._moved.clear()
                self._inbox.moved(self._stuck, all_rows=not self._waiting)
            return len(self._waiting)

    def _wait(self, owner: OpenOwner, rows: Sequence[dict[str, Any]]) -> None:
        owner.defer(rows)
        self._waiting[owner.who] = owner
        self.note(owner)

    def _move_one(self, owner: OpenOwner, actors: Actors) -> None:
        with owner.lock:
            self._moved.append(owner.move(self._disk.unsynced(), actors))
            self.note(owner)
            with self._lock:
                self._waiting.pop(owner.who, None)
                self._moving.pop(owner.who, None)


class OpenSaves:
    """Opens saves and owners, and keeps them. Thread-safe. ``changed`` hears of owners that an index may not know."""

    def __init__(
        self,
        disk: Disk,
        actors: Actors,
        limits: RecordSettings,
        known: KnownFacts,
        report: Report,
        changed: Callable[[ActorId], None],
        timelines: Callable[[str], Mapping[str, str]],
    ) -> None:
        """``timelines`` tells which timelines of a save's files are read as others."""
        self._timelines = timelines
        self._disk = disk
        self._actors = actors
        self._limits = limits
        self._known = known
        self._report = report
        self._changed = changed
        self._saves: dict[str, OpenSave] = {}
        self._owners: WeakValueDictionary[ActorId, OpenOwner] = WeakValueDictionary()
        self._recent: OrderedDict[ActorId, OpenOwner] = OrderedDict()
        self._lock = threading.RLock()

    def save(self, save: str) -> OpenSave:
        """A save, opened where it is not yet. Raises Corrupt for an inbox that cannot be read."""
        opened = self._saves.get(save)
        if opened is None:
            with self._lock:
                opened = self._saves.get(save) or self._open(save)
                self._saves[save] = opened
        return opened

    def owner(self, who: ActorId) -> OpenOwner:
        """An owner, not read yet unless it was used before."""
        return self._kept(who, new=self.save(who.save).catalog.lacks(who))

    def save_at_hand(self, save: str) -> OpenSave | None:
        """A save that is open."""
        return self._saves.get(save)

    def owner_at_hand(self, who: ActorId) -> OpenOwner | None:
        """An owner that was read already."""
        owner = self._owners.get(who)
        return owner if owner and owner.loaded else None

    def waiting(self) -> list[str]:
        """Saves whose inbox holds rows."""
        return [save for save, opened in list(self._saves.items()) if opened.waiting]

    def has_left_behind(self, save: str) -> bool:
        """Whether a save has an inbox."""
        return Inbox(self._disk, save_folder(self._disk.root, save), save).exists()

    def erased(self, who: ActorId) -> None:
        """An owner's folder is gone."""
        with self._lock:
            self._recent.pop(who, None)
            self._owners.pop(who, None)
            opened = self._saves.get(who.save)
            if opened is not None:
                opened.catalog.note(who, OwnerFacts(0, 0))

    def exchanged(self, save: str) -> None:
        """The folders of a save were exchanged (a restore) or removed."""
        with self._lock:
            self._saves.pop(save, None)
            for who in [who for who in self._owners if who.save == save]:
                self.erased(who)

    def _kept(self, who: ActorId, *, new: bool = False) -> OpenOwner:
        with self._lock:
            owner = self._owners.get(who)
            if owner is None:
                owner = self._owners[who] = OpenOwner(
                    self._disk,
                    who,
                    self._actors.ensure,
                    self._report,
                    new=new,
                    timelines=self._timelines(who.save),
                )
            self._recent[who] = owner
            self._recent.move_to_end(who)
            while len(self._recent) > self._limits.max_cached_owners:
                self._recent.popitem(last=False)
            return owner

    def _open(self, save: str) -> OpenSave:
        opened = OpenSave(self._disk, save, most_records=self._limits.max_records_per_save)
        folder, known = save_folder(self._disk.root, save), self._known.facts(save)
        for name in self._disk.names(folder):
            size = self._disk.size(folder / name / FILE) if name.startswith("a-") else 0
            if size:
                self._note_folder(opened, folder / name, save, size, known.get(name))
        for who, rows in opened.left_behind():
            try:
                opened.defer_again(self._kept(who), rows)
                self._changed(who)
            except Corrupt as error:
                self._tell_unreadable(opened, error)
        return opened

    def _note_folder(
        self, opened: OpenSave, folder: Path, save: str, size: int, known: tuple[ActorId, OwnerFacts] | None
    ) -> None:
        if known and known[1].size == size:
            opened.catalog.note(*known)
            return
        try:
            who = known[0] if known else self._actors.in_folder(folder, save)
            if who is not None:
                opened.note(self._kept(who))
                self._changed(who)
        except Corrupt as error:
            self._tell_unreadable(opened, error)

    def _tell_unreadable(self, opened: OpenSave, error: Corrupt) -> None:
        opened.catalog.unreadable += 1
        self._report(Diagnostic("records_unreadable", error.message, Severity.ERROR, error.metadata))


class NothingKnown:
    """Facts of a store without an index: every journal is read."""

    def facts(self, save: str) -> Mapping[str, tuple[ActorId, OwnerFacts]]:
        return {}


def facts_of(owner: OpenOwner) -> OwnerFacts:
    """What the catalog must know of an owner."""
    records = owner.records()
    return OwnerFacts(owner.size, len(records.entries), frozenset(records.addressed), records.archived)
