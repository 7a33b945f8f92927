"""What happens in a turn, as data; ``wire.py`` puts it into the contract's words. No I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sidecar.chat.backends.failures import Failure, FailureKind
from sidecar.chat.prompts import Prompt
from sidecar.chat.recall import RecalledHit
from sidecar.chat.turns.loop import Planned
from sidecar.chat.turns.results import ToolOutcome
from sidecar.chat.turns.tools import Origin
from sidecar.compaction.cuts import Cut
from sidecar.compaction.tokens import CounterKind


class Trouble(StrEnum):
    """What can be wrong with a turn that goes on, by the names of the contract."""

    CONTEXT_TRUNCATED = "CONTEXT_TRUNCATED"
    PROMPT_REBUILT = "PROMPT_REBUILT"
    RETRY = "RETRY"
    FALLBACK = "FALLBACK"
    TOOL_NAME_REPAIRED = "TOOL_NAME_REPAIRED"
    TOOL_ARGUMENTS_INVALID = "TOOL_ARGUMENTS_INVALID"
    ROUNDTRIP_LIMIT = "ROUNDTRIP_LIMIT"
    FAILED_ROUNDS = "FAILED_ROUNDS"
    RECALL_DEGRADED = "RECALL_DEGRADED"
    UNEXPECTED_TOOL_RESULT = "UNEXPECTED_TOOL_RESULT"
    ANSWER_REPAIRED = "ANSWER_REPAIRED"
    ANSWER_CUT = "ANSWER_CUT"
    SUMMARY_FALLBACK = "SUMMARY_FALLBACK"


class Finish(StrEnum):
    """Why a model stopped, by the names of the contract."""

    UNSPECIFIED = "UNSPECIFIED"
    STOP = "STOP"
    LENGTH = "LENGTH"
    CONTENT_FILTER = "CONTENT_FILTER"
    TOOLS_ONLY = "TOOLS_ONLY"


@dataclass(frozen=True)
class Started:
    """A turn began; the player's line is stored."""

    backend_id: str
    model: str
    prompt: Prompt
    recalled: tuple[RecalledHit, ...] = ()


@dataclass(frozen=True)
class Said:
    """The next piece of the text."""

    text: str
    starts_message: bool = False


@dataclass(frozen=True)
class TakenBack:
    """What was said so far in this turn does not count."""

    reason: str


@dataclass(frozen=True)
class Called:
    """A tool is called."""

    call: Planned
    origin: Origin
    roundtrip: int
    timeout_ms: int


@dataclass(frozen=True)
class Answered:
    """A tool answered; ``shown`` is what the model is told."""

    outcome: ToolOutcome
    shown: str
    origin: Origin


@dataclass(frozen=True)
class WasCut:
    """Something was cut."""

    cut: Cut


@dataclass(frozen=True)
class Warned:
    """Something is not as it should be; the turn goes on."""

    code: Trouble
    message: str
    details: Mapping[str, str] = field(default_factory=dict)
    wait_ms: int = 0


@dataclass(frozen=True)
class Spent:
    """Tokens of all roundtrips together, as reported; the estimate is of the last request."""

    prompt: int = 0
    completion: int = 0
    cached: int | None = None
    reported: bool = False
    estimated: int = 0
    counter: CounterKind = CounterKind.HEURISTIC
    last_prompt: int = 0


@dataclass(frozen=True)
class Timings:
    """In milliseconds; ``first_text`` is None where there was no text."""

    prompt: float = 0.0
    first_text: float | None = None
    model: float = 0.0
    tools: float = 0.0
    compaction: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class Completed:
    """A turn ended well, and everything of it is stored."""

    text: str
    response_json: str
    finish: Finish
    spent: Spent
    timings: Timings
    document_version: int
    roundtrips: int
    tool_calls: int
    cuts: tuple[Cut, ...]
    backend_id: str
    model: str
    compaction_pending: bool
    message_order: int


@dataclass(frozen=True)
class Failed:
    """A turn failed; the player's line stays stored."""

    failure: Failure
    backend_id: str = ""
    executed_tools: tuple[str, ...] = ()
    raw_text: str = ""
    schema_errors: tuple[str, ...] = ()
    spent: Spent = field(default_factory=Spent)
    reason: str = ""


Event = Started | Said | TakenBack | Called | Answered | WasCut | Warned | Completed | Failed
Tell = Callable[[Event], Awaitable[None]]


class TurnFailed(Exception):
    """A turn cannot go on; ``told`` says why."""

    def __init__(self, told: Failed) -> None:
        super().__init__(told.failure.message)
        self.told = told


def turn_failure(kind: FailureKind, message: str) -> Failure:
    """A failure that no backend has caused."""
    return Failure(kind, message)
