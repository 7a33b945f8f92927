"""The tools of one turn: the daemon's own and the game's, as a model is told of them. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from sidecar.chat.turns.arguments import Schema
from sidecar.compaction.cuts import Cut, CutKind, Unit

MAX_DESCRIPTION = 500
_TEXT_CONTRACT = """\
To call a tool, answer with one JSON object and nothing else: {"name": "<tool>", "arguments": {…}}
You have these tools:
"""
_MEMORY_RULE = """\
When you are asked to remember or note something, call memory before you answer, for example:
{"name": "memory", "arguments": {"action": "append", "content": "The player's name is Ada."}}
"""
_MEMORY = "memory"


class Origin(StrEnum):
    """Whose tool it is, by the names of the contract."""

    DAEMON = "DAEMON"
    GAME = "GAME"


@dataclass(frozen=True)
class TurnTool:
    """A tool that may be called. ``timeout_ms`` 0: no bound. ``parameters`` is its JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    origin: Origin = Origin.GAME
    mutating: bool = False
    repeatable: bool = False
    timeout_ms: int = 30_000

    @cached_property
    def schema(self) -> Schema:
        """What checks its arguments. Raises InvalidSchema."""
        return Schema(self.parameters)

    def changes(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments may change something: reading the memory does not."""
        reads = self.origin is Origin.DAEMON and str(arguments.get("action", "")).strip().lower() == "read"
        return self.mutating and not reads

    def shown_description(self) -> str:
        """As much of the description as a model is sent."""
        return self.description[:MAX_DESCRIPTION]

    def parameters_json(self) -> str:
        """The schema as text, sorted, so that the same tool always looks the same."""
        return json.dumps(self.parameters, ensure_ascii=False, sort_keys=True)


def allowed(tools: Iterable[TurnTool], names: Iterable[str] | None) -> dict[str, TurnTool]:
    """The tools by name, sorted; ``names`` leaves those that it has, None leaves all."""
    chosen = None if names is None else set(names)
    return {
        tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name) if chosen is None or tool.name in chosen
    }


def text_contract(tools: Mapping[str, TurnTool]) -> str:
    """How a model without native calls is told of the tools; empty where there are none."""
    if not tools:
        return ""
    lines = [
        f"- {tool.name}: {tool.shown_description()} Arguments: {tool.parameters_json()}\n" for tool in tools.values()
    ]
    own = tools.get(_MEMORY)
    return _TEXT_CONTRACT + "".join(lines) + (_MEMORY_RULE if own and own.origin is Origin.DAEMON else "")


def description_cuts(tools: Iterable[TurnTool]) -> list[Cut]:
    """Which descriptions are longer than a model is sent."""
    return [
        Cut(
            CutKind.TOOL_DESCRIPTION,
            Unit.CODE_POINTS,
            MAX_DESCRIPTION,
            len(tool.description) - MAX_DESCRIPTION,
            f"{tool.name}: a model is sent {MAX_DESCRIPTION} code points of a description",
        )
        for tool in tools
        if len(tool.description) > MAX_DESCRIPTION
    ]
