"""What a game asks of one turn, checked. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sidecar.chat.prompt_request import PromptRequest
from sidecar.chat.roles import RecallOptions, Role, borrows_history
from sidecar.chat.turns.arguments import Schema
from sidecar.chat.turns.tools import TurnTool
from sidecar.memory.moments import Moment


@dataclass(frozen=True)
class AnswerForm:
    """The JSON that an answer must be."""

    schema: Mapping[str, Any]
    check: Schema


@dataclass(frozen=True)
class TurnInput:
    """One line of the player and how its turn is to go. ``None``: what the role or the backend says."""

    asked: PromptRequest
    input_id: str = ""
    moment: Moment | None = None
    speaker: str = ""
    recall: RecallOptions | None = None
    max_roundtrips: int | None = None
    form: AnswerForm | None = None
    backend_id: str = ""
    model: str = ""
    api_key: str = field(default="", repr=False)
    temperature: float | None = None
    timeout_ms: int | None = None
    persist: bool | None = None

    def with_tools(self, tools: Sequence[TurnTool]) -> TurnInput:
        """The same line with the tools that the game offers beside it."""
        return replace(self, asked=replace(self.asked, game_tools=tuple(tool.declared for tool in tools)))

    @property
    def text(self) -> str:
        """The player's line."""
        return self.asked.line.text

    def persists(self, role: Role) -> bool:
        """Whether what is said survives the daemon: never where ``role`` is only lent its history."""
        if borrows_history(role, self.asked.line.source):
            return False
        return role.persist_history if self.persist is None else self.persist
