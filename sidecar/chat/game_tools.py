"""Tools that a game offers in its own turns: what is allowed, and how much of a description a model sees."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from sidecar.chat.prompt import Declaration
from sidecar.compaction.clipping import clip
from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.errors import InvalidInput, Reason

MAX_TOOLS = 128
MAX_DESCRIPTION_CHARS = 500
MAX_PARAMETERS_CHARS = 65_536
OWN_NAMES = frozenset({"memory", "remember_game_memory", "search_game_memory"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def checked_tools(tools: Sequence[Declaration]) -> tuple[tuple[Declaration, ...], tuple[Cut, ...]]:
    """The tools as a model is told of them, and what was cut. Raises InvalidInput with the path of the field."""
    if len(tools) > MAX_TOOLS:
        raise InvalidInput(
            f"tools has {len(tools)} entries; at most {MAX_TOOLS} are allowed in one call",
            reason=Reason.TOO_MANY_ITEMS,
            field="tools",
            limit="tools",
            value=MAX_TOOLS,
        )
    names: set[str] = set()
    for index, tool in enumerate(tools):
        _require_name(tool.name, names, f"tools[{index}].name")
        _require_schema(tool.parameters, f"tools[{index}].parameters_json")
        names.add(tool.name)
    shown = tuple(
        replace(tool, description=clip(tool.description, MAX_DESCRIPTION_CHARS), parameters=tool.parameters or "{}")
        for tool in tools
    )
    return shown, tuple(_cut(tool) for tool in tools if len(tool.description) > MAX_DESCRIPTION_CHARS)


def _require_name(name: str, taken: set[str], field: str) -> None:
    if not _NAME.fullmatch(name):
        raise _invalid(field, 'it must have 1 to 64 letters, digits, "_" or "-"')
    if name.casefold() in OWN_NAMES or name in taken:
        raise _invalid(field, "the name is taken; give each tool one of its own")


def _require_schema(parameters: str, field: str) -> None:
    if len(parameters) > MAX_PARAMETERS_CHARS:
        raise InvalidInput(
            f"{field} has {len(parameters)} code points; at most {MAX_PARAMETERS_CHARS} are allowed",
            reason=Reason.FIELD_TOO_LONG,
            field=field,
            limit="parameters_json",
            value=MAX_PARAMETERS_CHARS,
        )
    try:
        readable = not parameters or isinstance(json.loads(parameters), dict)
    except (ValueError, RecursionError):
        readable = False
    if not readable:
        raise _invalid(field, "it must be a JSON object")


def _invalid(field: str, why: str) -> InvalidInput:
    return InvalidInput(f"{field}: {why}", reason=Reason.FIELD_INVALID, field=field)


def _cut(tool: Declaration) -> Cut:
    dropped = len(tool.description) - MAX_DESCRIPTION_CHARS
    return Cut(CutKind.TOOL_DESCRIPTION, Unit.CODE_POINTS, MAX_DESCRIPTION_CHARS, dropped, f"of the tool {tool.name}")
