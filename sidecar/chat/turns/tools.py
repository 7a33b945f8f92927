"""The tools of one turn: the daemon's own and the game's, as a model is told of them. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from sidecar.chat.prompt import FRAME, Declaration
from sidecar.chat.turns.arguments import Schema
from sidecar.compaction.cuts import Cut
from sidecar.memory.tool import ToolSpec

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
    """A tool that may be called, as it is declared to the model. ``timeout_ms`` 0: no bound.

    ``parameters`` is its JSON schema; ``cut`` tells what of its description the model does not see.
    """

    declared: Declaration
    parameters: Mapping[str, Any]
    origin: Origin = Origin.GAME
    mutating: bool = False
    repeatable: bool = False
    timeout_ms: int = 30_000
    cut: Cut | None = None

    @property
    def name(self) -> str:
        return self.declared.name

    @cached_property
    def schema(self) -> Schema:
        """What checks its arguments. Raises InvalidSchema."""
        return Schema(self.parameters)

    def changes(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments may change something: reading the memory does not."""
        reads = self.origin is Origin.DAEMON and str(arguments.get("action", "")).strip().lower() == "read"
        return self.mutating and not reads


def own_tool(spec: ToolSpec, *, mutating: bool, timeout_ms: int) -> TurnTool:
    """A tool of the daemon's own."""
    parameters = json.dumps(spec.parameters, ensure_ascii=False, sort_keys=True)
    return TurnTool(
        Declaration(spec.name, spec.description, parameters),
        spec.parameters,
        origin=Origin.DAEMON,
        mutating=mutating,
        timeout_ms=timeout_ms,
    )


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
        f"- {tool.name}: {tool.declared.description} Arguments: {tool.declared.parameters}\n" for tool in tools.values()
    ]
    own = tools.get(_MEMORY)
    return _TEXT_CONTRACT + "".join(lines) + (_MEMORY_RULE if own and own.origin is Origin.DAEMON else "")


def forced_call(choice: str | Mapping[str, Any]) -> str:
    """What such a model is told beside the line it answers, where it must call a tool; empty where it need not.

    ``choice`` is in the wire's own form.
    """
    named = "" if isinstance(choice, str) else str(choice["function"]["name"])
    if not named and choice != "required":
        return ""
    return (
        f"{FRAME}\nThis time you must call {named or 'one of your tools'}: answer with its JSON object, not in words."
    )
