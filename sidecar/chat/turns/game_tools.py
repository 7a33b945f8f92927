"""Tools that a game offers in its own turns: what is allowed, and how much of a description a model sees. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from sidecar.bounds import Bound, require_count, require_length
from sidecar.chat.prompt import Declaration
from sidecar.chat.roles import Role
from sidecar.chat.turns.arguments import InvalidSchema, read_schema
from sidecar.chat.turns.tools import TurnTool
from sidecar.compaction.clipping import clip
from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import chat_pb2

MAX_TOOLS = 128
MAX_DESCRIPTION_CHARS = 500
MAX_PARAMETERS_CHARS = 65_536
OWN_NAMES = frozenset({"memory", "remember_game_memory", "search_game_memory"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def tools_from(messages: Sequence[chat_pb2.GameTool], role: Role, path: str) -> list[TurnTool]:
    """The tools as a model is told of them. Raises InvalidInput that names the field below ``path``."""
    require_count(len(messages), path, Bound("tools", MAX_TOOLS))
    names: set[str] = set()
    tools = []
    for place, message in enumerate(messages):
        _require_name(message.name, names, f"{path}[{place}].name")
        names.add(message.name)
        tools.append(_tool_from(message, role, f"{path}[{place}]"))
    return tools


def _require_name(name: str, taken: set[str], field: str) -> None:
    if not _NAME.fullmatch(name):
        raise _invalid(field, 'it must have 1 to 64 letters, digits, "_" or "-"')
    if name.casefold() in OWN_NAMES or name in taken:
        raise _invalid(field, "the name is taken; give each tool one of its own")


def _tool_from(message: chat_pb2.GameTool, role: Role, path: str) -> TurnTool:
    given, parameters = message.parameters_json, _schema(message.parameters_json, f"{path}.parameters_json")
    written = json.dumps(parameters, ensure_ascii=False, sort_keys=True) if given.strip() else "{}"
    return TurnTool(
        declared=Declaration(message.name, clip(message.description, MAX_DESCRIPTION_CHARS), written, message.mutating),
        parameters=parameters,
        mutating=message.mutating,
        repeatable=message.repeatable,
        timeout_ms=_timeout(message, role, f"{path}.timeout_ms"),
        cut=_cut(message),
    )


def _schema(parameters: str, field: str) -> dict[str, object]:
    require_length(parameters, field, Bound("parameters_json", MAX_PARAMETERS_CHARS))
    try:
        return read_schema(parameters)
    except InvalidSchema as error:
        raise _invalid(field, f"it is no JSON schema: {error}", Reason.SCHEMA_INVALID) from error


def _timeout(message: chat_pb2.GameTool, role: Role, field: str) -> int:
    if not message.HasField("timeout_ms"):
        return role.tool_timeout_ms
    if message.timeout_ms < 0:
        raise _invalid(field, f"it is {message.timeout_ms}; it must be at least 0")
    return message.timeout_ms


def _cut(message: chat_pb2.GameTool) -> Cut | None:
    dropped = len(message.description) - MAX_DESCRIPTION_CHARS
    if dropped <= 0:
        return None
    detail = f"of the tool {message.name}"
    return Cut(CutKind.TOOL_DESCRIPTION, Unit.CODE_POINTS, MAX_DESCRIPTION_CHARS, dropped, detail)


def _invalid(field: str, why: str, reason: Reason = Reason.FIELD_INVALID) -> InvalidInput:
    return InvalidInput(f"{field}: {why}", reason=reason, field=field)
