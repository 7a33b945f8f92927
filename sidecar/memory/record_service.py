"""MemoryService, the records: add, read, list, supersede, forget, share; groups and retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from sidecar.bounds import Bound, require_count, require_not_below_zero
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2
from sidecar.memory.embedding_marks import EmbeddingMark, EmbeddingMarks, Item
from sidecar.memory.groups import GroupStore, SaveGroups
from sidecar.memory.kept_answers import KeptAnswers, mark_of
from sidecar.memory.open_owner import entries_by_id
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_checks import checked_record, checked_shares, required_id
from sidecar.memory.record_filter import RecordFilter, checked_filter
from sidecar.memory.record_ids import ADD, SUPERSEDE, made_id, random_id
from sidecar.memory.record_store import Added, RecordStore, Stored, lock_order
from sidecar.memory.record_wire import (
    actor_in,
    filter_from,
    group_from,
    group_to,
    owners_in,
    policy_from,
    policy_to,
    record_from,
    record_to,
    share_to,
    shares_from,
    state_value,
)
from sidecar.memory.records import Record, searched_text
from sidecar.settings import RecordSettings
from sidecar.storage.keys import DEFAULT_SAVE, ActorId, checked_id, ordinal
from sidecar.storage.save_state import SaveStates
from sidecar.storage.workers import OwnKey, Workers
from sidecar.wire import Paging, actor_from, page, state_to

R = TypeVar("R")
_CREATED = memory_pb2.ADD_OUTCOME_CREATED
_UNCHANGED = memory_pb2.ADD_OUTCOME_UNCHANGED


class RecordService:
    """Everything runs in threads; the store takes care of calls that meet."""

    def __init__(
        self,
        *,
        store: RecordStore,
        groups: GroupStore,
        saves: SaveStates,
        workers: Workers,
        limits: RecordSettings,
        answers: KeptAnswers,
        paging: Paging,
        marks: EmbeddingMarks,
        cuts_of: Callable[[str, Record], Sequence[common_pb2.Cut]],
    ) -> None:
        """``cuts_of`` tells what of a record of a save cannot be found."""
        self._store = store
        self._groups = groups
        self._saves = saves
        self._workers = workers
        self._limits = limits
        self._answers = answers
        self._paging = paging
        self._marks = marks
        self._cuts_of = cuts_of

    async def AddRecords(self, request: memory_pb2.AddRecordsRequest, context: Any) -> memory_pb2.AddRecordsResponse:
        who = actor_from(request.actor)

        def add() -> memory_pb2.AddRecordsResponse:
            self._check_threshold(request)
            require_not_below_zero(request.turn, "turn")
            given = self._new_records(who, request)
            added, dropped = self._store.add(who.save, given, asked=mark_of(who.save, request))
            items = [Item(owner, record, one.content_hash) for (owner, record), one in zip(given, added, strict=True)]
            if request.HasField("near_duplicate_threshold"):
                self._marks.flag_from(items, request.near_duplicate_threshold)
            marks = self._marks.of_new(items)
            return memory_pb2.AddRecordsResponse(
                records=list(map(self._added_to, added, marks, items)), dropped=dropped
            )

        return await self._once(who.save, request, add)

    async def GetRecord(self, request: memory_pb2.GetRecordRequest, context: Any) -> memory_pb2.GetRecordResponse:
        who, record_id = actor_from(request.actor), required_id(request.record_id, "record_id")
        return await self._answer(
            who.save, lambda: memory_pb2.GetRecordResponse(record=self._marked([self._store.get(who, record_id)])[0])
        )

    async def ListRecords(self, request: memory_pb2.ListRecordsRequest, context: Any) -> memory_pb2.ListRecordsResponse:
        who = actor_from(request.actor)
        wanted = checked_filter(filter_from(request.filter), "filter", self._limits)

        def list_records() -> memory_pb2.ListRecordsResponse:
            matching = [found for owner in self._owners(who, request) for found in self._matching(owner, wanted)]
            chosen = page(
                matching,
                key=_list_key,
                size=request.page_size,
                token=request.page_token,
                paging=self._paging,
                weight=lambda found: found[1].length + 500,
            )
            return memory_pb2.ListRecordsResponse(
                records=self._marked(list(self._store.still_there(chosen.items))),
                next_page_token=chosen.next_token,
                total=len(matching),
            )

        return await self._answer(who.save, list_records)

    async def SupersedeRecord(
        self, request: memory_pb2.SupersedeRecordRequest, context: Any
    ) -> memory_pb2.SupersedeRecordResponse:
        who, record_id = actor_from(request.actor), required_id(request.record_id, "record_id")

        def supersede() -> memory_pb2.SupersedeRecordResponse:
            # What it replaces is its place: one input may replace several records.
            make_id = partial(made_id, turn=1, place=0, tool=f"{SUPERSEDE} {record_id}")
            owner, record = self._new_record(who, request.replacement, "replacement", request.idempotency_key, make_id)
            if owner != who:
                raise InvalidInput(
                    "replacement.owner must be the owner of the record that it replaces",
                    reason=Reason.FIELD_INVALID,
                    field="replacement.owner",
                )
            (added,), dropped = self._store.supersede(who, record_id, record, asked=mark_of(who.save, request))
            item = Item(owner, record, added.content_hash)
            (mark,) = self._marks.of([item])
            return memory_pb2.SupersedeRecordResponse(record=self._added_to(added, mark, item), dropped=dropped)

        return await self._once(who.save, request, supersede)

    async def ForgetRecords(
        self, request: memory_pb2.ForgetRecordsRequest, context: Any
    ) -> memory_pb2.ForgetRecordsResponse:
        who = actor_from(request.actor)
        self._check_forget(request)
        wanted = checked_filter(filter_from(request.filter), "filter", self._limits)
        if request.filter == memory_pb2.RecordFilter():
            wanted = RecordFilter(include_expired=True, include_superseded=True)

        def forget() -> memory_pb2.ForgetRecordsResponse:
            # All of them before any is forgotten: one owner may be unreadable.
            meant = {owner: self._meant(owner, request, wanted) for owner in self._owners(who, request)}
            forgotten = 0 if request.dry_run else sum(self._store.forget(owner, ids) for owner, ids in meant.items())
            return memory_pb2.ForgetRecordsResponse(matched=sum(map(len, meant.values())), forgotten=forgotten)

        lasting = None if request.dry_run else memory_pb2.ForgetRecordsResponse
        return await self._once(who.save, request, forget, lasting=lasting)

    async def ShareRecord(self, request: memory_pb2.ShareRecordRequest, context: Any) -> memory_pb2.ShareRecordResponse:
        who, record_id = actor_from(request.actor), required_id(request.record_id, "record_id")
        if not request.shares:
            raise InvalidInput("shares is required", reason=Reason.FIELD_REQUIRED, field="shares")

        def share() -> memory_pb2.ShareRecordResponse:
            moment = self._store.get(who, record_id).entry.head.moment
            shares = shares_from(request.shares, moment, who.save, "shares")
            shares = checked_shares(shares, moment, "shares", self._limits)
            stored, changed = self._store.share(who, record_id, shares)
            return memory_pb2.ShareRecordResponse(
                shares=[share_to(one) for one in stored.entry.shares], changed=changed
            )

        return await self._once(who.save, request, share)

    async def PutGroups(self, request: memory_pb2.PutGroupsRequest, context: Any) -> memory_pb2.PutGroupsResponse:
        save = checked_id(request.save_id, "save_id") or DEFAULT_SAVE
        require_count(len(request.groups), "groups", Bound("records.max_groups", self._limits.max_groups))
        groups = [
            group_from(message, save, f"groups[{number}]", self._limits.max_members)
            for number, message in enumerate(request.groups)
        ]
        return await self._once(
            save,
            request,
            lambda: memory_pb2.PutGroupsResponse(groups=self._groups.put(save, groups, request.remove_group_ids)),
            lasting=memory_pb2.PutGroupsResponse,
        )

    async def ListGroups(self, request: memory_pb2.ListGroupsRequest, context: Any) -> memory_pb2.ListGroupsResponse:
        save = checked_id(request.save_id, "save_id") or DEFAULT_SAVE
        member = actor_in(request.member, save, "member") if request.HasField("member") else None

        def list_groups() -> memory_pb2.ListGroupsResponse:
            known = self._groups.read(save)
            groups = known.of(member) if member else list(known.groups.values())
            chosen = page(
                groups,
                key=lambda group: group.group_id,
                size=request.page_size,
                token=request.page_token,
                paging=self._paging,
                weight=lambda group: 200 * (1 + len(group.members)),
            )
            return memory_pb2.ListGroupsResponse(
                groups=[group_to(group) for group in chosen.items], next_page_token=chosen.next_token
            )

        return await self._answer(save, list_groups)

    async def PutRetention(
        self, request: memory_pb2.PutRetentionRequest, context: Any
    ) -> memory_pb2.PutRetentionResponse:
        save = checked_id(request.save_id, "save_id") or DEFAULT_SAVE
        owner = actor_in(request.owner, save, "owner") if request.HasField("owner") else None
        policy = policy_from(request.policy, "policy") if request.HasField("policy") else None

        def put() -> memory_pb2.PutRetentionResponse:
            owners = [owner] if owner else self._store.catalog(save).owners()
            after = self._groups.read(save).with_retention(owner, policy)
            dropped = sum(self._would_drop(who, after) for who in owners)  # before any change: one may be unreadable
            if not request.dry_run:
                self._groups.put_retention(save, owner, policy)
                dropped = sum(map(self._store.trim, owners))
            in_force = after.retention_of(owner, after.of(owner)) if owner else after.retention
            return memory_pb2.PutRetentionResponse(dropped=dropped, policy=policy_to(in_force) if in_force else None)

        return await self._once(
            save, request, put, lasting=None if request.dry_run else memory_pb2.PutRetentionResponse
        )

    async def GetRetention(
        self, request: memory_pb2.GetRetentionRequest, context: Any
    ) -> memory_pb2.GetRetentionResponse:
        save = checked_id(request.save_id, "save_id") or DEFAULT_SAVE
        owner = actor_in(request.owner, save, "owner") if request.HasField("owner") else None

        def get() -> memory_pb2.GetRetentionResponse:
            known = self._groups.read(save)
            policy = self._groups.retention(owner) if owner else known.retention
            response = memory_pb2.GetRetentionResponse(own=owner in known.owners if owner else bool(policy))
            response.policy.CopyFrom(policy_to(policy) if policy else memory_pb2.RetentionPolicy())
            return response

        return await self._answer(save, get)

    async def _once(self, save: str, request: Any, work: Callable[[], R], *, lasting: type[R] | None = None) -> R:
        """The answer of ``work``, or the first answer to the same request with its idempotency key. With the type of
        its answer it is known after a restart, too."""
        known: R | None = self._answers.known(save, request)
        if known is not None:
            return known
        done = work if lasting is None else lambda: self._answers.lasting(save, request, lasting, work)
        response = await self._answer(save, done)
        self._answers.keep(save, request, response)
        return response

    async def _answer(self, save: str, work: Callable[[], R]) -> R:
        # The store itself lets calls of one owner wait for each other.
        response = await self._workers.run(OwnKey(save), work)
        message: Any = response
        message.save.CopyFrom(state_to(self._saves.state(save)))
        return response

    def _new_records(self, who: ActorId, request: memory_pb2.AddRecordsRequest) -> list[tuple[ActorId, Record]]:
        if not request.records:
            raise InvalidInput("records is required", reason=Reason.FIELD_REQUIRED, field="records")
        require_count(len(request.records), "records", Bound("records.max_batch", self._limits.max_batch))
        return [
            self._new_record(
                who,
                message,
                f"records[{place}]",
                request.idempotency_key,
                partial(made_id, turn=request.turn or 1, place=place, tool=ADD),
            )
            for place, message in enumerate(request.records)
        ]

    def _new_record(
        self, who: ActorId, message: memory_pb2.NewRecord, field: str, key: str, make_id: Callable[..., str]
    ) -> tuple[ActorId, Record]:
        owner = actor_in(message.owner, who.save, f"{field}.owner") if message.HasField("owner") else who
        record = checked_record(record_from(message, who.save, field), field, self._limits)
        if record.head.record_id:
            return owner, record
        # A retry with a key makes the same id, also after a restart.
        source = record.head.source_input_id or key
        made = make_id(owner, source, record.head.moment) if source else random_id()
        return owner, replace(record, head=replace(record.head, record_id=made))

    def _added_to(self, added: Added, mark: EmbeddingMark, item: Item) -> memory_pb2.AddedRecord:
        return memory_pb2.AddedRecord(
            record_id=added.record_id,
            outcome=_CREATED if added.created else _UNCHANGED,
            embedding_state=state_value(mark.state),
            near_duplicate_of=mark.near_duplicate_of,
            cuts=self._cuts_of(item.owner.save, item.record),
        )

    def _marked(self, found: Sequence[Stored]) -> list[memory_pb2.Record]:
        marks = self._marks.of([Item(one.owner, one.record, one.entry.content_hash) for one in found])
        return list(map(record_to, found, marks))

    def _check_threshold(self, request: memory_pb2.AddRecordsRequest) -> None:
        if not 0 <= request.near_duplicate_threshold <= 1:
            raise InvalidInput(
                "near_duplicate_threshold must be from 0 to 1",
                reason=Reason.FIELD_INVALID,
                field="near_duplicate_threshold",
            )

    def _owners(self, who: ActorId, request: Any) -> list[ActorId]:
        if request.all_owners:
            return sorted(self._store.catalog(who.save).owners(), key=lock_order)
        most = Bound("records.max_owners", self._limits.max_owners)
        owners = owners_in(request.owners, who.save, "owners", most)
        return sorted(owners or [who], key=lock_order)

    def _matching(self, who: ActorId, wanted: RecordFilter) -> list[tuple[ActorId, Entry]]:
        """An owner's records that pass the filter, by id."""
        with self._store.opened(who) as owner:
            return [
                (who, entry)
                for entry in entries_by_id(owner.records())
                if wanted.passes(entry.head, superseded_since=entry.superseded_since)
                and (not wanted.text or wanted.holds_text(searched_text(self._store.stored(owner, entry).record)))
            ]

    def _meant(self, owner: ActorId, request: memory_pb2.ForgetRecordsRequest, wanted: RecordFilter) -> list[str]:
        if not request.record_ids:
            return [entry.head.record_id for _, entry in self._matching(owner, wanted)]
        given = [required_id(record_id, f"record_ids[{n}]") for n, record_id in enumerate(request.record_ids)]
        with self._store.opened(owner) as opened:
            return [record_id for record_id in dict.fromkeys(given) if record_id in opened.records().entries]

    def _check_forget(self, request: memory_pb2.ForgetRecordsRequest) -> None:
        if bool(request.record_ids) == request.HasField("filter"):
            raise InvalidInput("give either record_ids or filter", reason=Reason.FIELD_REQUIRED, field="record_ids")
        if request.record_ids and request.all_owners:
            raise InvalidInput(
                "all_owners needs a filter; ids belong to one owner", reason=Reason.FIELD_INVALID, field="all_owners"
            )
        most = Bound("records.max_forget_ids", self._limits.max_forget_ids)
        require_count(len(request.record_ids), "record_ids", most)

    def _would_drop(self, who: ActorId, groups: SaveGroups) -> int:
        policy = groups.retention_of(who, groups.of(who))
        with self._store.opened(who) as owner:
            return len(policy.dropped(owner.records().entries.values())) if policy else 0


def _list_key(found: tuple[ActorId, Entry]) -> str:
    """Sorts as the list does: by owner, then by id. No id holds the character between them."""
    who, entry = found
    return ordinal("\0").join((*lock_order(who), ordinal(entry.head.record_id))).decode("latin-1")
