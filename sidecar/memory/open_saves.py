"""Which saves are open, and the owners that were used lately.

Owners are opened when they are first needed and kept within bounds; an owner whose rows still wait in the inbox stays
open until they are moved. There is never more than one open owner for one journal.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from weakref import WeakValueDictionary

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import Corrupt
from sidecar.memory.open_owner import FILE, OpenOwner
from sidecar.memory.open_save import OpenSave
from sidecar.memory.record_catalog import KnownFacts, OwnerFacts
from sidecar.memory.record_inbox import Inbox
from sidecar.settings import RecordSettings
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.keys import ActorId, is_actor_folder, save_folder
from sidecar.storage.save_state import SaveStates


class OpenSaves:
    """Opens saves and owners, and keeps them. Thread-safe. ``changed`` hears of owners that an index may not know."""

    def __init__(
        self,
        disk: Disk,
        actors: Actors,
        states: SaveStates,
        limits: RecordSettings,
        known: KnownFacts,
        report: Report,
        changed: Callable[[ActorId], None],
    ) -> None:
        self._disk = disk
        self._states = states
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
        opened = self.save(who.save)
        return self._kept(opened, who, new=opened.catalog.lacks(who))

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

    def waiting_bytes(self) -> int:
        """How much waits in the inboxes."""
        return sum(opened.waiting_bytes for opened in list(self._saves.values()))

    def help_to_move(self, most: int) -> None:
        """Move the rows of at most ``most`` owners of the save where most waits."""
        max(list(self._saves.values()), key=lambda opened: opened.waiting_bytes).help_to_move(most)

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

    def _kept(self, opened: OpenSave, who: ActorId, *, new: bool = False) -> OpenOwner:
        with self._lock:
            owner = self._owners.get(who)
            if owner is None:
                owner = self._owners[who] = OpenOwner(
                    self._disk,
                    who,
                    self._actors.ensure,
                    self._report,
                    new=new,
                    timelines=opened.timelines,
                )
            self._recent[who] = owner
            self._recent.move_to_end(who)
            while len(self._recent) > self._limits.max_cached_owners:
                self._recent.popitem(last=False)
            return owner

    def _open(self, save: str) -> OpenSave:
        timelines = self._states.about(save).timelines
        opened = OpenSave(self._disk, save, timelines=timelines, most_records=self._limits.max_records_per_save)
        folder, known = save_folder(self._disk.root, save), self._known.facts(save)
        for name in self._disk.names(folder):
            size = self._disk.size(folder / name / FILE) if is_actor_folder(name) else 0
            if size:
                self._note_folder(opened, folder / name, save, size, known.get(name))
        for left in opened.left_behind():
            try:
                opened.defer_again(self._kept(opened, left.who), left)
                self._changed(left.who)
            except Corrupt as error:
                self._tell_unreadable(opened, left.who, error)
        return opened

    def _note_folder(
        self, opened: OpenSave, folder: Path, save: str, size: int, known: tuple[ActorId, OwnerFacts] | None
    ) -> None:
        if known and known[1].size == size:
            opened.catalog.note(*known)
            return
        who = None
        try:
            who = known[0] if known else self._actors.in_folder(folder, save)
            if who is not None:
                opened.note(self._kept(opened, who))
                self._changed(who)
        except Corrupt as error:
            self._tell_unreadable(opened, who, error)

    def _tell_unreadable(self, opened: OpenSave, who: ActorId | None, error: Corrupt) -> None:
        opened.catalog.unreadable.add(who)
        self._report(Diagnostic("records_unreadable", error.message, Severity.ERROR, error.metadata))


class NothingKnown:
    """Facts of a store without an index: every journal is read."""

    def facts(self, save: str) -> Mapping[str, tuple[ActorId, OwnerFacts]]:
        return {}
