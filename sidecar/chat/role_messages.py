"""Between the contract's ``Role`` and roles as a game writes them. Only ``service.py`` uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict

from sidecar.chat.role_changes import Changes, changed_recall, effective_changes
from sidecar.chat.role_store import KnownRole
from sidecar.chat.roles import RecallOptions
from sidecar.gen.lorekeeper.v1 import chat_pb2, role_pb2

# The contract's enums carry their own name in each value; a game's file does not have to.
_PREFIXES = {"memory_default_action": "MEMORY_DEFAULT_ACTION_", "tool_results": "TOOL_RESULT_POLICY_"}
_MODE = "SEARCH_MODE_"


def changes_from(message: role_pb2.Role) -> dict[str, Any]:
    """What the message sets; fields that it leaves out stay out."""
    changes: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    for name, prefix in _PREFIXES.items():
        if name in changes:
            changes[name] = _short(changes[name], prefix)
    if "allowed_tools" in changes:
        changes["allowed_tools"] = changes["allowed_tools"].get("names", [])
    if "recall" in changes:
        changes["recall"] = recall_changes(message.recall)
    return changes


def recall_changes(message: Any) -> dict[str, Any]:
    """What recall options set."""
    changes: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    if "mode" in changes:
        changes["mode"] = _short(changes["mode"], _MODE)
    return changes


def _short(value: str | int, prefix: str) -> str:
    """A value's name as a game's file has it; one that the contract does not have stays the number that was sent."""
    return str(value).removeprefix(prefix).lower()


def info_to(known: KnownRole) -> role_pb2.RoleInfo:
    """The role as it is in force, beside what was written of it."""
    written = {"role_id": known.role.role_id, **known.changes}
    return role_pb2.RoleInfo(
        role=_message_of(written),
        effective=_message_of(effective_changes(known.role)),
        source=role_pb2.RoleSource.ValueType(known.source),
    )


def recall_of(input_message: chat_pb2.TurnInput, default: RecallOptions | None) -> RecallOptions | None:
    """What a turn recalls: what it says itself, else what its role says."""
    if not input_message.HasField("recall"):
        return default
    return changed_recall(recall_changes(input_message.recall), "input.recall")


def _message_of(changes: Changes) -> role_pb2.Role:
    value: dict[str, Any] = dict(changes)
    for name, prefix in _PREFIXES.items():
        if name in value:
            value[name] = prefix + str(value[name]).upper()
    if "allowed_tools" in value:
        value["allowed_tools"] = {"names": list(value["allowed_tools"])}
    if "recall" in value:
        value["recall"] = _recall_value(value["recall"])
    return ParseDict(value, role_pb2.Role())


def _recall_value(recall: Mapping[str, Any]) -> dict[str, Any]:
    value = dict(recall)
    mode = value.pop("mode", "")
    return {**value, "mode": _MODE + mode.upper()} if mode else value
