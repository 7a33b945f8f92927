"""Between the contract's messages about saves and our own types."""

from __future__ import annotations

from collections.abc import Mapping

from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import common_pb2, save_pb2
from sidecar.saves.checkpoint import Checkpoint, Kind, Method
from sidecar.saves.save_files import SaveFacts
from sidecar.storage.keys import DEFAULT_SAVE, checked_id
from sidecar.wire import moment_to, require_known, state_to, time_to

_ERASURE = frozenset(common_pb2.Erasure.DESCRIPTOR.fields_by_name)


def save_from(save_id: str) -> str:
    """The checked id of a save; a blank one is ``default``. Raises InvalidInput."""
    return checked_id(save_id, "save_id") or DEFAULT_SAVE


def required(value: str, field: str) -> str:
    """The value. Raises InvalidInput for a blank one."""
    if not value.strip():
        raise InvalidInput(f"{field} is required", reason=Reason.FIELD_REQUIRED, field=field)
    return value


def info_to(facts: SaveFacts, *, restoring: bool) -> save_pb2.SaveInfo:
    """A save at a glance."""
    info = save_pb2.SaveInfo(
        save=state_to(facts.state),
        save_id=facts.save,
        name=facts.name,
        actors=facts.actors,
        records=facts.records,
        checkpoints=facts.checkpoints,
        bytes=facts.bytes,
        forked_from=facts.forked_from,
        restoring=restoring,
        status=common_pb2.LOAD_STATUS_LOADED if facts.readable else common_pb2.LOAD_STATUS_FAILED,
    )
    if facts.latest:
        info.latest_moment.CopyFrom(moment_to(max(facts.latest, key=lambda moment: moment.tick)))
        info.latest_moments.extend(map(moment_to, facts.latest))
    if facts.created:
        info.created.CopyFrom(time_to(facts.created))
    if facts.updated:
        info.updated.CopyFrom(time_to(facts.updated))
    return info


def checkpoint_to(checkpoint: Checkpoint) -> save_pb2.Checkpoint:
    """What the contract tells of a checkpoint."""
    message = save_pb2.Checkpoint(
        checkpoint_id=checkpoint.checkpoint_id,
        save_id=checkpoint.save,
        name=checkpoint.wish.name,
        metadata=checkpoint.wish.metadata,
        created=time_to(checkpoint.created),
        kind=save_pb2.CheckpointKind.Value(f"CHECKPOINT_KIND_{checkpoint.wish.kind.name}"),
        state=state_to(checkpoint.state),
        method=method_to(checkpoint.method),
        actors=checkpoint.actors,
        records=checkpoint.records,
        bytes=checkpoint.bytes,
        rewritten=checkpoint.rewritten,
    )
    if checkpoint.wish.moment:
        message.moment.CopyFrom(moment_to(checkpoint.wish.moment))
    return message


def kind_from(value: save_pb2.CheckpointKind.ValueType) -> Kind | None:
    """The kind that is asked for; None for all. Raises InvalidInput."""
    require_known(save_pb2.CheckpointKind, value, "kind")
    return {
        save_pb2.CHECKPOINT_KIND_MANUAL: Kind.MANUAL,
        save_pb2.CHECKPOINT_KIND_AUTOMATIC: Kind.AUTOMATIC,
        save_pb2.CHECKPOINT_KIND_SAFETY: Kind.SAFETY,
    }.get(value)


def method_to(method: Method) -> save_pb2.CopyMethod.ValueType:
    return save_pb2.CopyMethod.Value(f"COPY_METHOD_{method.name}")


def erasure_to(removed: Mapping[str, int] | None) -> common_pb2.Erasure:
    """What was removed, of the things that the contract counts."""
    return common_pb2.Erasure(**{name: count for name, count in (removed or {}).items() if name in _ERASURE})
