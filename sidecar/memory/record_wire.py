"""Between the contract's record messages and our own types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.json_format import ParseDict

from sidecar.bounds import Bound, require_count, require_not_below_zero
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2
from sidecar.memory.embedding_marks import NO_MARK, EmbeddingMark
from sidecar.memory.groups import Group
from sidecar.memory.moments import Moment
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_checks import checked_share_of_one, checked_text, required_id
from sidecar.memory.record_filter import RecordFilter
from sidecar.memory.record_store import Stored
from sidecar.memory.records import Authority, Kind, Record, RecordHead, Share, ShareKind
from sidecar.memory.retention import RetentionPolicy
from sidecar.memory.whole_records import KEPT_CHARS
from sidecar.storage.keys import MAX_ID_CHARS, ActorId, checked_id
from sidecar.storage.recent import Recent
from sidecar.wire import actor_from, actor_to, moment_from, moment_to

V = TypeVar("V")
_MOST_WEIGHT = 10.0
_KINDS = {memory_pb2.RecordKind.Value(f"RECORD_KIND_{kind.name}"): kind for kind in Kind}
_AUTHORITIES = {memory_pb2.RecordAuthority.Value(f"RECORD_AUTHORITY_{one.name}"): one for one in Authority}
_SHARE_KINDS = {memory_pb2.ShareKind.Value(f"SHARE_KIND_{kind.name}"): kind for kind in ShareKind}
_KIND_VALUES = {kind: value for value, kind in _KINDS.items()}
_AUTHORITY_VALUES = {authority: value for value, authority in _AUTHORITIES.items()}
_SHARE_KIND_VALUES = {kind: value for value, kind in _SHARE_KINDS.items()}


def actor_in(message: common_pb2.Actor, save: str, field: str) -> ActorId:
    """An address in ``save``, which it need not name again. Raises InvalidInput for one of another save."""
    given = checked_id(message.save_id, f"{field}.save_id")
    if given not in ("", save):
        raise InvalidInput(
            f"{field}.save_id names another save than the request's actor; one call is about one save",
            reason=Reason.FIELD_INVALID,
            field=f"{field}.save_id",
        )
    return actor_from(message, save=save, field=field)


def owners_in(messages: Sequence[common_pb2.Actor], save: str, field: str, bound: Bound) -> list[ActorId]:
    """Addresses in ``save``, each once."""
    require_count(len(messages), field, bound)
    return list(dict.fromkeys(actor_in(message, save, f"{field}[{n}]") for n, message in enumerate(messages)))


def patterns_in(messages: Sequence[common_pb2.Actor], save: str, field: str, bound: Bound) -> tuple[ActorId, ...]:
    """Patterns of addresses in ``save``: their empty parts stay empty, for they match any value."""
    require_count(len(messages), field, bound)
    return tuple(_pattern_in(message, save, f"{field}[{n}]") for n, message in enumerate(messages))


def patterns_kept(kept: Iterable[Mapping[str, Any]], save: str) -> tuple[ActorId, ...]:
    """Patterns of addresses in ``save`` that were kept as the JSON of their messages, such as those of a role; those
    that name another save are left out."""
    messages = (ParseDict(dict(one), common_pb2.Actor()) for one in kept)
    return tuple(_pattern_in(message, save, "sources") for message in messages if message.save_id in ("", save))


def _pattern_in(message: common_pb2.Actor, save: str, field: str) -> ActorId:
    whole = actor_in(message, save, field)
    return whole if message.role_id.strip() else whole._replace(role="")


def record_from(message: memory_pb2.NewRecord, save: str, field: str) -> Record:
    """A record to be added, not checked yet. Raises InvalidInput for a part that cannot be read."""
    if not message.HasField("moment"):
        raise InvalidInput(f"{field}.moment is required", reason=Reason.FIELD_REQUIRED, field=f"{field}.moment")
    moment = moment_from(message.moment)
    head = RecordHead(
        record_id=message.record_id,
        scope=message.scope,
        kind=_required_value(_KINDS, message.kind, f"{field}.kind"),
        moment=moment,
        importance=message.importance if message.HasField("importance") else 0.5,
        tags=tuple(message.tags),
        expires=moment_from(message.expires_at) if message.HasField("expires_at") else None,
        source_input_id=message.source_input_id,
        conversation_id=message.conversation_id,
        ordinal=message.ordinal if message.HasField("ordinal") else None,
        authority=_authority_from(message.authority, f"{field}.authority"),
        audience=tuple(message.audience),
        speaker=message.speaker,
        pinned=message.pinned,
    )
    shares = shares_from(message.shares, moment, save, f"{field}.shares")
    return Record(head, message.payload_json or "{}", message.searchable_text, dict(message.metadata), shares)


def shares_from(messages: Iterable[memory_pb2.Share], moment: Moment, save: str, field: str) -> tuple[Share, ...]:
    """Shares of a record of ``moment``, not checked yet."""
    return tuple(_share_from(message, moment, save, f"{field}[{n}]") for n, message in enumerate(messages))


def _share_from(message: memory_pb2.Share, moment: Moment, save: str, field: str) -> Share:
    if not message.HasField("recipient"):
        raise InvalidInput(f"{field}.recipient is required", reason=Reason.FIELD_REQUIRED, field=f"{field}.recipient")
    return Share(
        recipient=actor_in(message.recipient, save, f"{field}.recipient"),
        kind=_required_value(_SHARE_KINDS, message.kind, f"{field}.kind"),
        moment=moment_from(message.moment) if message.HasField("moment") else moment,
        told_by=actor_in(message.told_by, save, f"{field}.told_by") if message.HasField("told_by") else None,
        confidence=message.confidence if message.HasField("confidence") else 1.0,
    )


def share_to(share: Share) -> memory_pb2.Share:
    """Who else knows a record."""
    message = memory_pb2.Share(
        recipient=actor_to(share.recipient),
        kind=_SHARE_KIND_VALUES[share.kind],
        moment=moment_to(share.moment),
        confidence=share.confidence,
    )
    if share.told_by:
        message.told_by.CopyFrom(actor_to(share.told_by))
    return message


class RecordMessages:
    """The messages of records that were sent lately, at most ``most``. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._messages: Recent[Entry, tuple[str, tuple[Share, ...], memory_pb2.Record]] = Recent(most)

    def of(self, stored: Stored) -> memory_pb2.Record:
        """The message of a record, which the caller must not change."""
        entry = stored.entry
        known = self._messages.get(entry)
        if known is not None and known[0] == entry.superseded_by and known[1] is entry.shares:
            return known[2]
        message = record_to(stored)
        if len(message.payload_json) + len(message.searchable_text) > KEPT_CHARS:
            return message
        self._messages.keep(entry, (entry.superseded_by, entry.shares, message))
        return message


def record_to(stored: Stored, mark: EmbeddingMark = NO_MARK) -> memory_pb2.Record:
    """A record as it is stored, with what became of it since."""
    record, head, entry = stored.record, stored.record.head, stored.entry
    message = memory_pb2.Record(
        record_id=head.record_id,
        owner=actor_to(stored.owner),
        scope=head.scope,
        kind=_KIND_VALUES[head.kind],
        payload_json=record.payload,
        moment=moment_to(head.moment) if head.moment.dated else None,
        importance=head.importance,
        searchable_text=record.text,
        tags=head.tags,
        source_input_id=head.source_input_id,
        metadata=record.metadata,
        supersedes_id=head.supersedes,
        superseded_by_id=entry.superseded_by,
        conversation_id=head.conversation_id,
        ordinal=head.ordinal,
        authority=_AUTHORITY_VALUES[head.authority],
        embedding_state=state_value(mark.state),
        near_duplicate_of=mark.near_duplicate_of,
        audience=head.audience,
        shares=[share_to(share) for share in entry.shares],
        speaker=head.speaker,
        pinned=head.pinned,
        revision=entry.revision,
    )
    if head.expires:
        message.expires_at.CopyFrom(moment_to(head.expires))
    return message


def state_value(state: int) -> memory_pb2.EmbeddingState.ValueType:
    """The contract's value, whose numbers are ours."""
    return memory_pb2.EmbeddingState.ValueType(state)


def filter_from(message: memory_pb2.RecordFilter) -> RecordFilter:
    """A filter, not checked yet. Raises InvalidInput for a kind or an authority that does not exist."""
    before, after = message.HasField("at_or_before"), message.HasField("at_or_after")
    return RecordFilter(
        scopes=frozenset(message.scopes),
        kinds=frozenset(_required_value(_KINDS, kind, f"filter.kinds[{n}]") for n, kind in enumerate(message.kinds)),
        tags=frozenset(message.tags),
        at_or_before=moment_from(message.at_or_before) if before else None,
        at_or_after=moment_from(message.at_or_after) if after else None,
        include_expired=message.include_expired,
        include_superseded=message.include_superseded,
        minimum_importance=message.minimum_importance if message.HasField("minimum_importance") else 0.0,
        conversation_id=message.conversation_id,
        source_input_id=message.source_input_id,
        authorities=frozenset(
            _required_value(_AUTHORITIES, value, f"filter.authorities[{n}]")
            for n, value in enumerate(message.authorities)
        ),
        text=message.text,
    )


def group_from(message: memory_pb2.Group, save: str, field: str, most_members: int) -> Group:
    """A checked group. Raises InvalidInput."""
    weight = message.recall_weight if message.HasField("recall_weight") else 1.0
    if not 0 <= weight <= _MOST_WEIGHT:
        raise InvalidInput(
            f"{field}.recall_weight must be from 0 to 10", reason=Reason.FIELD_INVALID, field=f"{field}.recall_weight"
        )
    return Group(
        group_id=required_id(message.group_id, f"{field}.group_id"),
        name=checked_text(message.name, f"{field}.name", Bound("max_id_chars", MAX_ID_CHARS)),
        members=patterns_in(message.members, save, f"{field}.members", Bound("records.max_members", most_members)),
        recall_weight=weight,
        retention=policy_from(message.retention, f"{field}.retention") if message.HasField("retention") else None,
    )


def group_to(group: Group) -> memory_pb2.Group:
    """A group as it was put."""
    message = memory_pb2.Group(
        group_id=group.group_id,
        name=group.name,
        members=[actor_to(member) for member in group.members],
        recall_weight=group.recall_weight,
    )
    if group.retention:
        message.retention.CopyFrom(policy_to(group.retention))
    return message


def policy_from(message: memory_pb2.RetentionPolicy, field: str) -> RetentionPolicy:
    """A checked policy. Raises InvalidInput for a bound below 0."""
    for name in ("max_records", "max_age_ticks"):
        require_not_below_zero(getattr(message, name), f"{field}.{name}")
    keep = message.keep_importance if message.HasField("keep_importance") else None
    return RetentionPolicy(
        max_records=message.max_records if message.HasField("max_records") else None,
        max_age_ticks=message.max_age_ticks if message.HasField("max_age_ticks") else None,
        keep_importance=None if keep is None else checked_share_of_one(keep, f"{field}.keep_importance"),
    )


def policy_to(policy: RetentionPolicy) -> memory_pb2.RetentionPolicy:
    """A policy; what has no bound is absent."""
    return memory_pb2.RetentionPolicy(
        max_records=policy.max_records,
        max_age_ticks=policy.max_age_ticks,
        keep_importance=policy.keep_importance,
    )


def _required_value(values: Mapping[Any, V], number: int, field: str) -> V:
    """Our value of an enum. Raises InvalidInput for one that is not told or does not exist."""
    value = values.get(number)
    if value is None:
        reason = Reason.FIELD_INVALID if number else Reason.FIELD_REQUIRED
        raise InvalidInput(f"{field} must be one of {', '.join(map(str, values.values()))}", reason=reason, field=field)
    return value


def _authority_from(number: int, field: str) -> Authority:
    return _required_value(_AUTHORITIES, number, field) if number else Authority.GAME
