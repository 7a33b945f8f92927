"""Records on the disk: one journal an owner, the only authority, and what is needed to answer quickly from it.

    add of one owner      its journal: one write, one fsync
    add of many owners    the save's inbox: one write, one fsync; moved to the journals in the background
    everything else       the owner's journal

Owners are opened when they are first needed and kept in a bounded cache. A journal that cannot be read is DATA_LOSS
for its owner alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sidecar.diagnostics import Report
from sidecar.errors import AlreadyExists, LimitReached, NotFound, NotReady, Reason
from sidecar.memory.forked_rows import as_meant
from sidecar.memory.open_owner import FILE, OpenOwner
from sidecar.memory.open_save import OpenSave
from sidecar.memory.open_saves import OpenSaves
from sidecar.memory.owner_records import Entry, add_row, forget_row, owner_shown, share_row_of
from sidecar.memory.record_catalog import Catalog, KnownFacts
from sidecar.memory.records import Record, Share, hash_of_row, record_row
from sidecar.memory.retention import RetentionPolicy
from sidecar.memory.sharing import merged_shares
from sidecar.memory.whole_records import WholeRecords
from sidecar.settings import RecordSettings
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.keys import ActorId, actor_folder, ordinal
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
    content_hash: str
    created: bool


class Written(NamedTuple):
    """What became of the records of a call, in their order, and how many the owners' retention dropped for them."""

    records: list[Added]
    dropped: int


class _New(NamedTuple):
    """A record to be written, as its journal will hold it, and the hash of its content."""

    record: Record
    row: Mapping[str, Any]
    digest: str


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
        self._states = saves
        self._limits = limits
        self._retention = retention
        self._open = OpenSaves(disk, actors, saves, limits, known, report, self._tell)
        self._whole = WholeRecords(most=limits.max_cached_records)
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
        return next(self.stored_many(owner, [entry]))

    def stored_many(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[Stored]:
        """The whole records of entries whose owner is locked. Raises Corrupt."""
        whole = self._whole.of(owner, entries)
        return (Stored(owner.who, record, entry) for entry, record in zip(entries, whole, strict=True))

    def still_there(self, found: Iterable[tuple[ActorId, Entry]]) -> Iterator[Stored]:
        """The whole records of entries that were found a moment ago, those of one owner side by side; what was
        forgotten since is left out. Raises Corrupt."""
        for who, own in groupby(found, key=itemgetter(0)):
            with self.opened(who) as owner:
                now = owner.records().entries
                known = ((now.get(entry.head.record_id), entry.content_hash) for _, entry in own)
                same = [entry for entry, content in known if entry is not None and entry.content_hash == content]
                yield from list(self.stored_many(owner, same))

    def remembered(self, owner: OpenOwner, entry: Entry) -> Stored | None:
        """The whole record of an entry where it is in memory."""
        record = self._whole.kept(entry)
        return Stored(owner.who, record, entry) if record else None

    def owner_at_hand(self, who: ActorId) -> OpenOwner | None:
        """An owner that was read already."""
        return self._open.owner_at_hand(who)

    def catalog_at_hand(self, save: str) -> Catalog | None:
        """The owners of a save that is open already."""
        opened = self._open.save_at_hand(save)
        return opened.catalog if opened else None

    def catalog(self, save: str) -> Catalog:
        """The owners of a save."""
        return self._open.save(save).catalog

    def waiting_owners(self, save: str) -> list[ActorId]:
        """The owners whose rows are not all in their journals yet."""
        return self._open.save(save).waiting_owners() if self._open.has_left_behind(save) else []

    @contextmanager
    def opened(self, who: ActorId) -> Iterator[OpenOwner]:
        """The owner, locked and read. Raises Corrupt."""
        owner = self._open.owner(who)
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
        self,
        save: str,
        batch: Sequence[tuple[ActorId, Record]],
        *,
        field: str = "records[{}].record_id",
        asked: str = "",
    ) -> Written:
        """Add records, all or none; those that are there already change nothing. ``field`` names an id in errors.
        ``asked`` tells the call, where it has an idempotency key: what it added once, it never adds again.

        Raises AlreadyExists for an id with other content, LimitReached, Corrupt.
        """
        opened = self._open.save(save)
        if self._open.waiting_bytes() > self._limits.max_waiting_bytes:
            self._open.help_to_move(2 * len(batch))  # who adds faster than the disk moves helps to move
        with self.opened_together([who for who, _ in batch]) as owners:
            return self._add(opened, owners, batch, field, asked)

    def supersede(self, who: ActorId, record_id: str, replacement: Record, *, asked: str = "") -> Written:
        """Add a record that replaces another one. The same replacement again changes nothing. ``asked`` as in add.

        Raises NotFound, NotReady where it was replaced by another, AlreadyExists, LimitReached, Corrupt.
        """
        record = replace(replacement, head=replace(replacement.head, supersedes=record_id))
        with self.opened(who) as owner:
            if not owner.records().was_added(record.head.record_id, asked):
                _require_current(_entry(owner, record_id), record.head.record_id)
            opened = self._open.save(who.save)
            return self._add(opened, {who: owner}, [(who, record)], "replacement.record_id", asked)

    def archive(self, who: ActorId, turns: Sequence[Record], *, most: int) -> int:
        """Add archived turns of an actor's conversation, each once, also where it was forgotten since; the oldest
        beyond ``most`` are forgotten, and how many those were is answered. They count for no capacity and no retention.
        Raises Corrupt."""
        with self.opened(who) as owner:
            records = owner.records()
            known = records.entries
            new = [turn for turn in turns if not records.was_archived(turn.head.record_id)]
            if not new:
                return 0
            self._states.ensure(who.save)
            revision = self._states.changed(who.save).revision
            rows = [record_row(turn) for turn in new]
            self._append(owner, [add_row(row, hash_of_row(row), revision) for row in rows])
            held = [record_id for record_id, entry in known.items() if entry.head.archived]
            return self.forget(who, held[: max(0, len(held) - most)], at_once=False)

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
            if known:
                revision = self._states.changed(who.save).revision
                owner.forgetting([entries[record_id] for record_id in known])
                self._append(owner, [forget_row(known, revision)])
            # Also what an earlier call forgot whose disk failed behind the first half of it.
            if owner.holds_forgotten and (at_once or owner.worth_compacting()):
                owner.compact(most_gone=self._limits.kept_answers)
                self._open.save(who.save).note(owner)
            return len(known)

    def trim(self, who: ActorId) -> int:
        """Forget what the owner's retention no longer keeps; how many records that were. Raises Corrupt."""
        with self.opened(who) as owner:
            return self._trim(owner)

    # whole saves

    def flush(self, save: str, *, most: int | None = None) -> int:
        """Move rows from the inbox to the journals of at most ``most`` owners; how many still wait."""
        opened = self._open.save_at_hand(save)
        return opened.move(most) if opened else 0

    def settle(self, save: str) -> None:
        """Bring every acknowledged row into its owner's journal: before a checkpoint, an export, an erasure."""
        if self._open.has_left_behind(save):
            while self._open.save(save).move():
                pass

    def waiting_saves(self) -> list[str]:
        """Saves whose inbox holds rows."""
        return self._open.waiting()

    def waits_long(self) -> bool:
        """Whether more waits in the inboxes than half of what may."""
        return self._open.waiting_bytes() * 2 > self._limits.max_waiting_bytes

    def counted(self, who: ActorId) -> dict[str, int]:
        """How many records and archived turns an erasure would remove; 0 where they cannot be read."""
        if not self._disk.size(actor_folder(self._disk.root, who) / FILE):
            return {"records": 0, "archived": 0}
        catalog = self._open.save(who.save).catalog
        archived = catalog.archived(who)
        return {"records": catalog.count(who) - archived, "archived": archived}

    def erased(self, who: ActorId) -> None:
        """Forget what is kept in memory: the owner's folder is gone."""
        self._open.erased(who)
        self._whole.clear()

    def exchanged(self, save: str) -> None:
        """Read everything again: the folders of a save were exchanged (a restore) or removed."""
        self._open.exchanged(save)
        self._whole.clear()

    # inside

    def _add(
        self,
        opened: OpenSave,
        owners: Mapping[ActorId, OpenOwner],
        batch: Sequence[tuple[ActorId, Record]],
        field: str,
        asked: str,
    ) -> Written:
        """Add records of locked owners."""
        fresh: dict[OpenOwner, dict[str, _New]] = {owner: {} for owner in owners.values()}
        meant = [(who, as_meant(record, opened.timelines, who.save)) for who, record in batch]
        added = [
            _decided(owners[who], record, fresh[owners[who]], field.format(place), asked)
            for place, (who, record) in enumerate(meant)
        ]
        written = {owner: list(records.values()) for owner, records in fresh.items() if records}
        if written:
            self._write(opened, written, asked)
        return Written(added, sum(map(self._trim, written)))

    def _write(self, opened: OpenSave, written: Mapping[OpenOwner, Sequence[_New]], asked: str) -> None:
        for owner, records in written.items():
            self._require_room(owner, len(records))
        count = sum(map(len, written.values()))
        opened.catalog.reserve(count)
        try:
            save = next(iter(written)).who.save
            self._states.ensure(save)
            revision = self._states.changed(save).revision
            rows = {
                owner: [add_row(one.row, one.digest, revision, asked) for one in new] for owner, new in written.items()
            }
            self._write_rows(opened, rows)
        finally:
            opened.catalog.release(count)
        for owner, records in written.items():
            entries = owner.records().entries
            for one in records:
                self._whole.keep(entries[one.record.head.record_id], one.record)

    def _write_rows(self, opened: OpenSave, rows: Mapping[OpenOwner, Sequence[dict[str, Any]]]) -> None:
        if len(rows) == 1:
            for owner, own in rows.items():
                self._append(owner, own)
            return
        opened.defer(rows)
        for owner in rows:
            self._tell(owner.who)

    def _trim(self, owner: OpenOwner) -> int:
        policy = self._retention(owner.who)
        dropped = policy.dropped(owner.records().entries.values()) if policy else []
        return self.forget(owner.who, dropped, at_once=False) if dropped else 0

    def _append(self, owner: OpenOwner, rows: Sequence[dict[str, Any]]) -> None:
        owner.append(rows)
        self._open.save(owner.who.save).note(owner)
        self._tell(owner.who)

    def _require_room(self, owner: OpenOwner, count: int) -> None:
        records, most = owner.records(), self._limits.max_records_per_owner
        held = len(records.entries) - records.archived
        if held + count > most:
            raise LimitReached(
                f"'{owner_shown(owner.who)}' has {held} records and {count} more do not fit; "
                f"the limit is {most}; forget records or set a retention",
                reason=Reason.TOO_MANY_RECORDS,
                limit="records.max_records_per_owner",
                value=most,
            )

    def _tell(self, who: ActorId) -> None:
        for changed in self._listeners:
            changed(who)


def _decided(owner: OpenOwner, record: Record, fresh: dict[str, _New], field: str, asked: str) -> Added:
    """Whether a record is new to a locked owner; if so it is put among the ``fresh`` ones. What the same call has added
    before is told as it was then."""
    record_id, row = record.head.record_id, record_row(record)
    digest = hash_of_row(row)
    records = owner.records()
    if records.was_added(record_id, asked):
        return Added(owner.who, record_id, digest, created=True)
    entry = records.entries.get(record_id)
    known = entry.content_hash if entry else fresh[record_id].digest if record_id in fresh else None
    if known is None:
        fresh[record_id] = _New(record, row, digest)
    elif known != digest:
        raise AlreadyExists(
            f"{field} names a record of '{owner_shown(owner.who)}' with other content; "
            "use another id, or SupersedeRecord",
            reason=Reason.CONTENT_CONFLICT,
            field=field,
        )
    return Added(owner.who, record_id, digest, created=known is None)


def _require_current(entry: Entry, successor: str) -> None:
    """Raises NotReady where an entry was superseded by another one than ``successor``."""
    if entry.superseded_by and entry.superseded_by != successor:
        raise NotReady(
            "the record was superseded before; supersede the one that superseded_by_id names",
            reason=Reason.RECORD_SUPERSEDED,
            field="record_id",
        )


def _entry(owner: OpenOwner, record_id: str) -> Entry:
    entry = owner.records().entries.get(record_id)
    if entry is None:
        raise NotFound(
            f"'{owner_shown(owner.who)}' has no such record; it may have been forgotten",
            reason=Reason.RECORD_NOT_FOUND,
            field="record_id",
        )
    return entry


def lock_order(who: ActorId) -> tuple[bytes, ...]:
    """In which order owners are locked, so that two calls never wait for each other, and listed."""
    return tuple(map(ordinal, (who.save, who.tenant, who.player, who.topic, who.actor, who.role)))
