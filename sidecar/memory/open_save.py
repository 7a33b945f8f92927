"""One open save: its table of contents, and the rows on their way from its inbox to the owners' journals."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sidecar.errors import Corrupt
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.record_catalog import Catalog, OwnerFacts
from sidecar.memory.record_inbox import Inbox, Left, OwnerRows
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.keys import ActorId, save_folder


class OpenSave:
    """One save: its catalog, and the rows on their way from its inbox to the owners' journals.

    Where an owner's lock and the inbox are both needed, the owner's lock is taken first.
    """

    def __init__(self, disk: Disk, save: str, *, timelines: Mapping[str, str], most_records: int) -> None:
        """``timelines`` of the save's files are read as others."""
        self.catalog = Catalog(most=most_records)
        self.timelines = timelines
        self._disk = disk
        self._inbox = Inbox(disk, save_folder(disk.root, save), save)
        self._lock = threading.Lock()
        self._mover = threading.Lock()
        self.waiting_bytes = 0
        self._waiting: dict[ActorId, OpenOwner] = {}
        self._moving: dict[ActorId, OpenOwner] = {}
        self._moved: list[Path] = []
        self._stuck: list[OwnerRows] = []

    @property
    def waiting(self) -> int:
        """Owners whose rows wait for their journal."""
        return len(self._waiting)

    def waiting_owners(self) -> list[ActorId]:
        """Those owners."""
        with self._lock:
            return list(self._waiting)

    def note(self, owner: OpenOwner) -> None:
        """Take down how a locked owner stands now."""
        self.catalog.note(owner.who, facts_of(owner))

    def defer(self, rows: Mapping[OpenOwner, Sequence[Mapping[str, Any]]]) -> None:
        """Make rows of several locked owners safe at once, and let their journals follow."""
        numbered = {owner: owner.number(own) for owner, own in rows.items()}
        with self._lock:
            sizes = self._inbox.append((owner.who, own) for owner, own in numbered.items())
            for (owner, own), size in zip(numbered.items(), sizes, strict=True):
                self._wait(owner, own, size)

    def left_behind(self) -> list[Left]:
        """What the inbox held when the daemon ended. Raises Corrupt."""
        return self._inbox.load()

    def defer_again(self, owner: OpenOwner, left: Left) -> None:
        """Take in rows that were left behind. Where the owner's journal cannot be read they stay in the inbox, and
        Corrupt is raised."""
        try:
            self._wait(owner, left.rows, left.size)
        except Corrupt:
            self._stuck.append((owner.who, left.rows))
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
        if moving and not self._moving:
            # Calls go on meanwhile: what they add waits in the new inbox, which stays.
            self._disk.sync_all(self._moved)
            self._moved.clear()
            with self._lock:
                self._inbox.moved(self._stuck, all_rows=not self._waiting)
        return len(self._waiting)

    def _wait(self, owner: OpenOwner, rows: Sequence[dict[str, Any]], size: int) -> None:
        owner.defer(rows)
        owner.waiting_bytes += size
        self.waiting_bytes += size
        self._waiting[owner.who] = owner
        self.note(owner)

    def _move_one(self, owner: OpenOwner, actors: Actors) -> None:
        with owner.lock:
            self._moved += owner.move(self._disk.unsynced(), actors)
            self.note(owner)
            with self._lock:
                self._waiting.pop(owner.who, None)
                self._moving.pop(owner.who, None)
                self.waiting_bytes -= owner.waiting_bytes
                owner.waiting_bytes = 0


def facts_of(owner: OpenOwner) -> OwnerFacts:
    """What the catalog must know of an owner."""
    records = owner.records()
    return OwnerFacts(owner.size, len(records.entries), frozenset(records.addressed), records.archived)
