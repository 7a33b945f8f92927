"""Between the contract's ``Backend`` and profiles. Only the services use it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sidecar.chat.backends.known import KnownBackends
from sidecar.chat.backends.probe import WORDS, Probed
from sidecar.chat.backends.profile import Backend, Kind, TailRole, ToolChannel
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2

_ENUMS = {
    "kind": (Kind, backend_pb2.BackendKind, "BACKEND_KIND_"),
    "tool_channel": (ToolChannel, backend_pb2.ToolChannel, "TOOL_CHANNEL_"),
    "tail_role": (TailRole, backend_pb2.TailRole, "TAIL_ROLE_"),
}
_LISTS = ("roles", "compaction_roles")


def backend_from(message: backend_pb2.Backend) -> Backend:
    """The profile as it was sent, not checked yet. Raises InvalidInput for an enum's value that is not known."""
    values: dict[str, Any] = {}
    present = {descriptor.name for descriptor, _ in message.ListFields()}
    for each in fields(Backend):
        sent = getattr(message, each.name)
        if each.name in _ENUMS:
            values |= _enum_from(each.name, sent)
        elif each.name in _LISTS:
            values[each.name] = tuple(sent)
        elif each.name == "headers":
            values[each.name] = dict(sent)
        elif each.name in present or not message.DESCRIPTOR.fields_by_name[each.name].has_presence:
            values[each.name] = sent
    return Backend(**values)


def backend_to(backend: Backend) -> backend_pb2.Backend:
    """The profile with its defaults filled in."""
    values: dict[str, Any] = {}
    for each in fields(backend):
        value = getattr(backend, each.name)
        if each.name in _ENUMS:
            _, enum, prefix = _ENUMS[each.name]
            values[each.name] = enum.Value(prefix + value.upper())
        elif value is not None:
            values[each.name] = value
    return backend_pb2.Backend(**values)


def info_to(backend: Backend, known: KnownBackends, *, key_present: bool) -> backend_pb2.BackendInfo:
    """The backend as it is in force."""
    return backend_pb2.BackendInfo(
        backend=backend_to(backend),
        key_present=key_present,
        context_tokens=known.told_window(backend),
        tool_channel=backend_pb2.ToolChannel.Value(f"TOOL_CHANNEL_{known.channel(backend).upper()}"),
    )


def probed_to(found: Probed, *, duration_ms: float) -> chat_pb2.ProbeBackendResponse:
    """What a probe has found."""
    response = chat_pb2.ProbeBackendResponse(
        reachable=found.reachable, server=found.server, model=found.model, duration_ms=duration_ms
    )
    for model in found.models:
        response.models.append(backend_pb2.BackendModel(model=model.name, context_tokens=model.window or None))
    if found.window:
        response.context_tokens = found.window
    for name in ("native_tools", "streaming", "json_schema", "usage"):
        value = getattr(found, name)
        if value is not None:
            setattr(response, name, value)
    for problem in found.gravest_first():
        message, advice = WORDS[problem]
        code = backend_pb2.BackendProblemCode.ValueType(problem)
        response.problems.append(backend_pb2.BackendProblem(code=code, message=message, advice=advice))
    return response


def _enum_from(name: str, value: Any) -> dict[str, Any]:
    cls, enum, prefix = _ENUMS[name]
    if value == 0:
        return {}
    try:
        return {name: cls(enum.Name(value).removeprefix(prefix).lower())}
    except ValueError as error:
        raise InvalidInput(
            f"{name} is not one of the contract's values", reason=Reason.FIELD_INVALID, field=name
        ) from error
