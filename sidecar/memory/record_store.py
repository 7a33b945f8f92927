"""Records on the disk: one journal an owner, the only authority, and what is needed to answer quickly from it.

    add of one owner      its journal: one write, one fsync
    add of many owners    the save's inbox: one write, one fsync; moved to the journals in the background
    everything else       the owner's journal

Owners are opened when they are first needed and kept in a bounded cache. A journal that cannot be read is DATA_LOSS
for its owner alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import AlreadyExists, Corrupt, LimitReached, NotFound, NotReady, Reason
from sidecar.memory.open_owner import FILE, OpenOwner
from sidecar.memory.owner_records import Entry, add_row, forget_row, owner_shown, share_row_of
from sidecar.memory.record_catalog import Catalog, KnownFacts, OwnerFacts
from sidecar.memory.record_inbox import Inbox, OwnerRows
from sidecar.memory.records import Record, Share, content_hash
from sidecar.memory.retention import RetentionPolicy
from sidecar.memory.sharing import merged_shares
from sidecar.settings import RecordSettings
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.keys import ActorId, actor_folder, save_folder
from sidecar.storage.save_state import SaveStates


@dataclass(frozen=True, slots=True)
class Stored:
    """A record with what became of it since."""

    owner: ActorId
    record: Record
    entry: Entry


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a record that was to be added."""

    owner: ActorId
    record_id: str
    created: bool


class _Save:
    """What is open of one save."""

    def __init__(self, catalog: Catalog, inbox: Inbox) -> None:
        self.catalog = catalog
        self.inbox = inbox
        self.inbox_lock = threading.Lock()
        self.flushing = threading.Lock()
        self.waiting: dict[ActorId, OpenOwner] = {}
        self.moving: dict[ActorId, OpenOwner] = {}
        self.moved: list[Path] = []
        self.stuck: list[OwnerRows] = []


class RecordStore:
    """Thread-safe. ``changed`` is called with each owner whose records changed, after the change is safe."""

    def __init__(
        self,
        disk: Disk,
        actors: Actors,
        saves: SaveStates,
        limits: RecordSettings,
        *,
        known: KnownFacts,
        retention: Callable[[ActorId], RetentionPolicy | None],
        report: Report,
    ) -> None:
        self._disk = disk
        self._actors = actors
        self._states = saves
        self._limits = limits
        self._known = known
        self._retention = retention
        self._report = report
        self._saves: dict[str, _Save] = {}
        self._owners: WeakValueDictionary[ActorId, OpenOwner] = WeakValueDictionary()
        self._recent: OrderedDict[ActorId, OpenOwner] = OrderedDict()
        self._records: OrderedDict[Entry, Record] = OrderedDict()
        self._lock = threading.RLock()
        self._listeners: list[Callable[[ActorId], None]] = []

    def listen(self, changed: Callable[[ActorId], None]) -> None:
        """Call ``changed`` with each owner whose records changed, once the change is safe."""
        self._listeners.append(changed)

    # reading

    def get(self, who: ActorId, record_id: str) -> Stored:
        """One record. Raises NotFound, Corrupt."""
        with self.opened(who) as owner:
            return self.stored(owner, _entry(owner, record_id))

    def stored(self, owner: OpenOwner, entry: Entry) -> Stored:
        """The whole record of an entry whose owner is locked. Raises Corrupt."""
        with self._lock:
            record = self._records.get(entry)
            if record is not None:
                self._records.move_to_end(entry)
        return Stored(owner.who, record or self._remember(entry, owner.record(entry)), entry)

    def remembered(self, owner: OpenOwner, entry: Entry) -> Stored | None:
        """The whole record of an entry where it is in memory."""
        record = self._records.get(entry)
        return Stored(owner.who, record, entry) if record else None

    def open_owner(self, who: ActorId) -> OpenOwner | None:
        """An owner that was read already."""
        owner = self._owners.get(who)
        return owner if owner and owner.loaded else None

    def open_catalog(self, save: str) -> Catalog | None:
        """The owners of a save that is open already."""
        opened = self._saves.get(save)
        return opened.catalog if opened else None

    def catalog(self, save: str) -> Catalog:
        """The owners of a save."""
        return self._save(save).catalog

    @contextmanager
    def opened(self, who: ActorId) -> Iterator[OpenOwner]:
        """The owner, locked and read. Raises Corrupt."""
        owner = self._owner(who, new=self._save(who.save).catalog.lacks(who))
        with owner.lock:
            owner.records()
            yield owner

    @contextmanager
    def opened_together(self, owners: Sequence[ActorId]) -> Iterator[dict[ActorId, OpenOwner]]:
        """Several owners of one save, locked at once so that they are seen at one moment. Raises Corrupt."""
        with ExitStack() as stack:
            yield {who: stack.enter_context(self.opened(who)) for who in sorted(set(owners), key=lock_order)}

    # writing

    def add(
        self, save: str, batch: Sequence[tuple[ActorId, Record]], *, field: str = "records[{}].record_id"
    ) -> list[Added]:
        """Add records, all or none; those that are there already change nothing. ``field`` names an id in errors.

        Raises AlreadyExists for an id with other content, LimitReached, Corrupt.
        """
        opened = self._save(save)
        if len(opened.waiting) > self._limits.max_waiting_owners:
            self._help(opened, most=2 * len(batch))
        with self.opened_together([who for who, _ in batch]) as owners:
            fresh: dict[ActorId, dict[str, tuple[Record, str]]] = {}
            added = [
                self._decided(owners[who], record, fresh.setdefault(who, {}), field.format(place))
                for place, (who, record) in enumerate(batch)
            ]
            self._write_new(opened, owners, fresh)
            for owner in owners.values():
                self._trim(owner)
            return added

    def supersede(self, who: ActorId, record_id: str, replacement: Record) -> Added:
        """Add a record that replaces another one. The same replacement again changes nothing.

        Raises NotFound, NotReady where it was replaced by another, AlreadyExists, LimitReached, Corrupt.
        """
        record = replace(replacement, head=replace(replacement.head, supersedes=record_id))
        with self.opened(who) as owner:
            entry = _entry(owner, record_id)
            if entry.superseded_by and entry.superseded_by != record.head.record_id:
                raise NotReady(
                    "the record was superseded before; supersede the one that superseded_by_id names",
                    reason=Reason.RECORD_SUPERSEDED,
                    field="record_id",
                )
            return self.add(who.save, [(who, record)], field="replacement.record_id")[0]

    def share(self, who: ActorId, record_id: str, shares: Sequence[Share]) -> tuple[Stored, int]:
        """Let others know a record; the record, and how many shares are new or better. Raises NotFound, Corrupt."""
        with self.opened(who) as owner:
            entry = _entry(owner, record_id)
            merged, changed = merged_shares(entry.shares, shares)
            if changed:
                revision = self._states.changed(who.save).revision
                self._append(owner, [share_row_of(record_id, merged, revision)])
            return self.stored(owner, entry), changed

    def forget(self, who: ActorId, ids: Sequence[str], *, at_once: bool = True) -> int:
        """Forget records for good; how many there were. Their text leaves the disk ``at_once``, or with the next
        compaction of the journal. Raises Corrupt."""
        with self.opened(who) as owner:
            entries = owner.records().entries
            known = [record_id for record_id in dict.fromkeys(ids) if record_id in entries]
            if not known:
                return 0
            revision = self._states.changed(who.save).revision
            owner.forgetting([entries[record_id] for record_id in known])
            self._append(owner, [forget_row(known, revision)])
            if at_once or owner.worth_compacting():
                owner.compact()
                self._note(owner)
            return len(known)

    def trim(self, who: ActorId) -> int:
        """Forget what the owner's retention no longer keeps; how many records that were. Raises Corrupt."""
        with self.opened(who) as owner:
            return self._trim(owner)

    # whole saves

    def flush(self, save: str, *, most: int | None = None) -> int:
        """Move rows from the inbox to the journals of at most ``most`` owners; how many still wait."""
        opened = self._saves.get(save)
        if opened is None:
            return 0
        with opened.flushing:
            return self._flush(opened, most)

    def _help(self, opened: _Save, most: int) -> None:
        """Who adds faster than the disk moves helps to move; it never waits for another, who may wait for its owner."""
        if opened.flushing.acquire(blocking=False):
            try:
                self._flush(opened, most)
            finally:
                opened.flushing.release()

    def _flush(self, opened: _Save, most: int | None) -> int:
        with opened.inbox_lock:
            if opened.waiting and not opened.moving:
                opened.inbox.set_aside()
                opened.moving.update(opened.waiting)
            moving = list(opened.moving.values())[:most]
        actors = Actors(self._disk.unsynced())
        for owner in moving:
            self._move(opened, owner, actors)
        with opened.inbox_lock:
            if moving and not opened.moving:
                self._disk.sync_all(opened.moved)
                opened.moved.clear()
                opened.inbox.moved(opened.stuck, all_rows=not opened.waiting)
            return len(opened.waiting)

    def settle(self, save: str) -> None:
        """Bring every acknowledged row into its owner's journal: before a checkpoint, an export, an erasure."""
        if Inbox(self._disk, save_folder(self._disk.root, save), save).exists():
            self._save(save)
            while self.flush(save):
                pass

    def counted(self, who: ActorId) -> dict[str, int]:
        """How many records an erasure would remove; 0 where they cannot be read."""
        if not self._disk.size(actor_folder(self._disk.root, who) / FILE):
            return {"records": 0}
        return {"records": self._save(who.save).catalog.count(who)}

    def erased(self, who: ActorId) -> None:
        """Forget what is kept in memory: the owner's folder is gone."""
        with self._lock:
            self._recent.pop(who, None)
            self._owners.pop(who, None)
        opened = self._saves.get(who.save)
        if opened is not None:
            opened.catalog.note(who, OwnerFacts(0, 0))

    def waiting_saves(self) -> list[str]:
        """Saves whose inbox holds rows."""
        return [save for save, opened in list(self._saves.items()) if opened.waiting]

    def exchanged(self, save: str) -> None:
        """Read everything again: the folders of a save were exchanged (a restore) or removed."""
        with self._lock:
            self._saves.pop(save, None)
            for who in [who for who in self._owners if who.save == save]:
                self.erased(who)

    # inside

    def _decided(self, owner: OpenOwner, record: Record, fresh: dict[str, tuple[Record, str]], field: str) -> Added:
        record_id, digest = record.head.record_id, content_hash(record)
        entry = owner.records().entries.get(record_id)
        known = entry.content_hash if entry else fresh[record_id][1] if record_id in fresh else None
        if known is None:
            fresh[record_id] = (record, digest)
        elif known != digest:
            raise AlreadyExists(
                f"{field} names a record of '{owner_shown(owner.who)}' with other content; "
                "use another id, or SupersedeRecord",
                reason=Reason.CONTENT_CONFLICT,
                field=field,
            )
        return Added(owner.who, record_id, created=known is None)

    def _write_new(
        self, opened: _Save, owners: dict[ActorId, OpenOwner], fresh: dict[ActorId, dict[str, tuple[Record, str]]]
    ) -> None:
        written = {owners[who]: list(records.values()) for who, records in fresh.items() if records}
        count = sum(map(len, written.values()))
        if not count:
            return
        for owner, records in written.items():
            self._require_room(opened, owner, len(records))
        opened.catalog.reserve(count)
        try:
            self._states.ensure(next(iter(owners)).save)
            revision = self._states.changed(next(iter(owners)).save).revision
            rows = {owner: [add_row(*record, revision) for record in records] for owner, records in written.items()}
            if len(rows) == 1:
                ((owner, own),) = rows.items()
                self._append(owner, own)
            else:
                self._defer(opened, rows)
        finally:
            opened.catalog.release(count)
        for owner, records in written.items():
            entries = owner.records().entries
            for record, _ in records:
                self._remember(entries[record.head.record_id], record)

    def _trim(self, owner: OpenOwner) -> int:
        policy = self._retention(owner.who)
        dropped = policy.dropped(owner.records().entries.values()) if policy else []
        return self.forget(owner.who, dropped, at_once=False) if dropped else 0

    def _append(self, owner: OpenOwner, rows: Sequence[dict[str, Any]]) -> None:
        owner.append(rows)
        self._note(owner)
        self._tell(owner.who)

    def _defer(self, opened: _Save, rows: dict[OpenOwner, list[dict[str, Any]]]) -> None:
        numbered = {owner: owner.number(own) for owner, own in rows.items()}
        with opened.inbox_lock:
            opened.inbox.append((owner.who, own) for owner, own in numbered.items())
            for owner, own in numbered.items():
                owner.defer(own)
                opened.waiting[owner.who] = owner
        for owner in numbered:
            self._note(owner)
            self._tell(owner.who)

    def _move(self, opened: _Save, owner: OpenOwner, actors: Actors) -> None:
        with owner.lock:
            opened.moved.append(owner.move(self._disk.unsynced(), actors))
            self._note(owner)
            with opened.inbox_lock:
                opened.waiting.pop(owner.who, None)
                opened.moving.pop(owner.who, None)

    def _require_room(self, opened: _Save, owner: OpenOwner, count: int) -> None:
        most = self._limits.max_records_per_owner
        if len(owner.records().entries) + count > most:
            raise LimitReached(
                f"'{owner_shown(owner.who)}' has {len(owner.records().entries)} records and {count} more do not fit; "
                f"the limit is {most}; forget records or set a retention",
                reason=Reason.TOO_MANY_RECORDS,
                limit="records.max_records_per_owner",
                value=most,
            )

    def _note(self, owner: OpenOwner) -> None:
        self._saves[owner.who.save].catalog.note(owner.who, facts_of(owner))

    def _tell(self, who: ActorId) -> None:
        for changed in self._listeners:
            changed(who)

    def _remember(self, entry: Entry, record: Record) -> Record:
        with self._lock:
            self._records[entry] = record
            while len(self._records) > self._limits.max_cached_records:
                self._records.popitem(last=False)
        return record

    def _owner(self, who: ActorId, *, new: bool = False) -> OpenOwner:
        with self._lock:
            owner = self._owners.get(who)
            if owner is None:
                timelines = self._states.about(who.save).timelines
                owner = self._owners[who] = OpenOwner(
                    self._disk, who, self._actors.ensure, self._report, new=new, timelines=timelines
                )
            self._recent[who] = owner
            self._recent.move_to_end(who)
            while len(self._recent) > self._limits.max_cached_owners:
                self._recent.popitem(last=False)
            return owner

    def _save(self, save: str) -> _Save:
        opened = self._saves.get(save)
        if opened is not None:
            return opened
        with self._lock:
            if save not in self._saves:
                self._saves[save] = self._open_save(save)
            return self._saves[save]

    def _open_save(self, save: str) -> _Save:
        folder = save_folder(self._disk.root, save)
        opened = _Save(Catalog(most=self._limits.max_records_per_save), Inbox(self._disk, folder, save))
        known = self._known.facts(save)
        for name in self._disk.names(folder):
            size = self._disk.size(folder / name / FILE) if name.startswith("a-") else 0
            if size:
                self._note_folder(opened.catalog, folder / name, save, size, known.get(name))
        for who, rows in opened.inbox.load():
            self._defer_again(opened, who, rows)
        return opened

    def _defer_again(self, opened: _Save, who: ActorId, rows: Sequence[dict[str, Any]]) -> None:
        """Take in rows that the inbox held when the daemon ended."""
        owner = self._owner(who)
        try:
            owner.defer(rows)
        except Corrupt as error:
            opened.stuck.append((who, rows))
            self._report(Diagnostic("records_unreadable", error.message, Severity.ERROR, error.metadata))
            return
        opened.waiting[who] = owner
        opened.catalog.note(who, facts_of(owner))
        self._tell(who)

    def _note_folder(
        self, catalog: Catalog, folder: Path, save: str, size: int, known: tuple[ActorId, OwnerFacts] | None
    ) -> None:
        if known and known[1].size == size:
            catalog.note(*known)
            return
        try:
            who = known[0] if known else self._actors.in_folder(folder, save)
            if who is not None:
                catalog.note(who, facts_of(self._owner(who)))
                self._tell(who)
        except Corrupt as error:
            catalog.unreadable += 1
            self._report(Diagnostic("records_unreadable", error.message, Severity.ERROR, error.metadata))


def facts_of(owner: OpenOwner) -> OwnerFacts:
    """What the catalog must know of an owner."""
    records = owner.records()
    return OwnerFacts(owner.size, len(records.entries), records.addressed())


def _entry(owner: OpenOwner, record_id: str) -> Entry:
    entry = owner.records().entries.get(record_id)
    if entry is None:
        raise NotFound(
            f"'{owner_shown(owner.who)}' has no such record; it may have been forgotten",
            reason=Reason.RECORD_NOT_FOUND,
            field="record_id",
        )
    return entry


def lock_order(who: ActorId) -> tuple[str, ...]:
    """In which order owners are locked, so that two calls never wait for each other."""
    return (who.save, who.tenant, who.player, who.topic, who.actor, who.role)
