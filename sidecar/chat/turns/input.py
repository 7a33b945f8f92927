"""What a game asks of one turn, checked. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from sidecar.chat.prompts import PromptRequest
from sidecar.chat.roles import RecallOptions, Role
from sidecar.chat.turns.arguments import Schema
from sidecar.memory.moments import Moment


class ToolChoice(IntEnum):
    """Whether tools may, must or must not be called; the numbers are those of the contract."""

    AUTO = 1
    NONE = 2
    ANY = 3
    NAMED = 4


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
    tool_choice: ToolChoice = ToolChoice.AUTO
    tool_name: str = ""
    max_roundtrips: int | None = None
    form: AnswerForm | None = None
    backend_id: str = ""
    model: str = ""
    api_key: str = field(default="", repr=False)
    temperature: float | None = None
    timeout_ms: int | None = None
    persist: bool | None = None

    @property
    def text(self) -> str:
        """The player's line."""
        return self.asked.line.text

    def persists(self, role: Role) -> bool:
        """Whether what is said survives the daemon."""
        return role.persist_history if self.persist is None else self.persist
