"""The tools of one turn: the daemon's own and the game's, as a model is told of them. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from sidecar.chat.prompt import Declaration
from sidecar.chat.turns.arguments import Schema
from sidecar.compaction.cuts import Cut
from sidecar.memory.tool import ToolSpec


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
