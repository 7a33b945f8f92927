"""The tool loop as rules: which calls run, which are refused, and when the tools are taken away. No I/O.

    calls ──plan──> run | refused | duplicate ──(they run)──> outcomes ──settle──> ask again | ask for words only

A call is never run when its arguments cannot be read or do not keep to the tool's schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sidecar.chat.backends.wire import WireCall
from sidecar.chat.turns.arguments import BadArguments, InvalidSchema, canonical, checked, read_arguments
from sidecar.chat.turns.results import ToolOutcome, told_error
from sidecar.chat.turns.tools import Origin, TurnTool
from sidecar.compaction.clipping import clipped
from sidecar.compaction.cuts import Cut, CutKind, Unit

_MAX_ERROR_CHARS = 200
# A name that a model made up is sent back to it and stored: in the letters that every server takes, on one line.
_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_-]")
_MAX_NAME_CHARS = 64


class Refusal(StrEnum):
    """Why a call was not run."""

    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    ARGUMENTS_INVALID = "ARGUMENTS_INVALID"
    TOO_MANY_CALLS = "TOO_MANY_CALLS"
    BUSY = "BUSY"


class Final(StrEnum):
    """Why the model is asked for words only."""

    ROUNDTRIP_LIMIT = "ROUNDTRIP_LIMIT"
    FAILED_ROUNDS = "FAILED_ROUNDS"


@dataclass(frozen=True)
class LoopRules:
    """``max_roundtrips`` 0 is no bound of the role's own; ``hard_rounds`` always holds."""

    max_roundtrips: int = 20
    max_failed_rounds: int = 3
    suppress_duplicates: bool = True
    hard_rounds: int = 200
    max_calls: int = 64

    @property
    def rounds(self) -> int:
        """How many rounds of calls a turn may have."""
        return min(self.max_roundtrips or self.hard_rounds, self.hard_rounds)


@dataclass(frozen=True)
class Planned:
    """One call, and what is to become of it: it runs unless ``answer`` stands already.

    ``cut`` is what of the tool's schema a refusal leaves out.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    arguments_json: str = "{}"
    tool: TurnTool | None = None
    answer: ToolOutcome | None = None
    repaired: bool = False
    cut: Cut | None = None

    @property
    def mutating(self) -> bool:
        return self.tool is not None and self.tool.changes(self.arguments)

    def wire(self) -> WireCall:
        """The call as the model is reminded of it."""
        return WireCall(self.name, self.arguments_json, self.call_id)


class ToolLoop:
    """The calls of one turn. ``tools`` may be called; ``new_id`` makes ids that are unique in the conversation."""

    def __init__(self, tools: Mapping[str, TurnTool], rules: LoopRules, new_id: Callable[[str], str]) -> None:
        self._tools = tools
        self._rules = rules
        self._new_id = new_id
        self._succeeded: dict[str, int] = {}
        self._mutations = 0
        self._failed_rounds = 0
        self._blocked = False
        self.rounds = 0
        self.outcomes: list[ToolOutcome] = []

    def plan(self, calls: Sequence[WireCall]) -> list[Planned]:
        """What is to become of each call, in their order."""
        return [self._planned(call, place) for place, call in enumerate(calls)]

    def settle(self, planned: Sequence[Planned], outcomes: Sequence[ToolOutcome]) -> Final | None:
        """Takes a round's outcomes in; why the tools are taken away now, or None."""
        self.rounds += 1
        for call, outcome in zip(planned, outcomes, strict=True):
            self._remember(call, outcome)
        told = [outcome for outcome in outcomes if not outcome.duplicate]
        if told:
            self._failed_rounds = 0 if any(outcome.succeeded for outcome in told) else self._failed_rounds + 1
        if self._failed_rounds >= self._rules.max_failed_rounds:
            return Final.FAILED_ROUNDS
        return Final.ROUNDTRIP_LIMIT if self.rounds >= self._rules.rounds else None

    def block(self) -> None:
        """No further call runs: one of the daemon's own tools is still at work after its time."""
        self._blocked = True

    def excuse(self, final: Final) -> tuple[str, Cut | None]:
        """What the actor says where even the question for words brought none, and what of it was cut."""
        last = self.outcomes[-1]
        why = f"it took {self.rounds} rounds of tool calls"
        if final is Final.FAILED_ROUNDS:
            why = f"{self._failed_in_a_row()} tool calls in a row failed"
        error, cut = _error_of(last)
        return f"I could not finish this request: {why}, {last.name} the last. {error}".strip(), cut

    def summary(self) -> tuple[str, Cut | None]:
        """What is said of a turn in which only tools spoke, and what of it was cut."""
        last = self.outcomes[-1]
        error, cut = _error_of(last)
        return f"Tool call failed: {last.name}: {error}" if error else f"Tool call completed: {last.name}.", cut

    def _failed_in_a_row(self) -> int:
        ended = [outcome.succeeded for outcome in reversed(self.outcomes) if not outcome.duplicate]
        return (*ended, True).index(True)

    def _planned(self, call: WireCall, place: int) -> Planned:
        call_id = self._new_id(call.call_id)
        tool, repaired = self._meant(call.name)
        if tool is None:
            why = f"there is no such tool here; your tools: {', '.join(self._tools) or 'none'}"
            name = _NOT_IN_NAMES.sub("_", call.name)[:_MAX_NAME_CHARS]
            return Planned(call_id, name, answer=_answer(call_id, name, Refusal.UNKNOWN_TOOL, why))
        arguments: dict[str, Any] = {}
        cut = None
        try:
            arguments = read_arguments(call.arguments)
            if tool.origin is Origin.GAME:
                arguments = checked(arguments, tool.schema)
            answer = self._stopped(call_id, tool, arguments, place)
        except (BadArguments, InvalidSchema) as error:
            answer = _answer(call_id, tool.name, Refusal.ARGUMENTS_INVALID, str(error))
            cut = error.cut if isinstance(error, BadArguments) else None
        text = json.dumps(arguments, ensure_ascii=False)
        return Planned(call_id, tool.name, arguments, text, tool, answer, repaired, cut)

    def _meant(self, name: str) -> tuple[TurnTool | None, bool]:
        """The tool of that name, or the only one whose name differs in case alone, and whether it was repaired."""
        if name in self._tools:
            return self._tools[name], False
        alike = [known for known in self._tools if known.casefold() == name.strip().casefold()]
        return (self._tools[alike[0]], True) if len(alike) == 1 else (None, False)

    def _stopped(self, call_id: str, tool: TurnTool, arguments: dict[str, Any], place: int) -> ToolOutcome | None:
        if self._blocked:
            return _answer(call_id, tool.name, Refusal.BUSY, "an earlier tool is still at work; answer in words")
        if place >= self._rules.max_calls:
            why = f"one answer may call at most {self._rules.max_calls} tools; call the others in the next one"
            return _answer(call_id, tool.name, Refusal.TOO_MANY_CALLS, why)
        return self._duplicate(call_id, tool, arguments)

    def _duplicate(self, call_id: str, tool: TurnTool, arguments: dict[str, Any]) -> ToolOutcome | None:
        if tool.repeatable or not self._rules.suppress_duplicates:
            return None
        since = self._succeeded.get(canonical(tool.name, arguments))
        if since is None or (not tool.changes(arguments) and self._mutations > since):
            return None
        note = "this call succeeded before with the same arguments and was not run again; go on with its result"
        result = json.dumps({"ok": True, "duplicate": True, "message": note})
        return ToolOutcome(call_id, tool.name, result, succeeded=True, duplicate=True, ran=False)

    def _remember(self, call: Planned, outcome: ToolOutcome) -> None:
        self.outcomes.append(outcome)
        if not outcome.ran:
            return
        if call.mutating:
            self._mutations += 1
        if outcome.succeeded:
            self._succeeded[canonical(call.name, call.arguments)] = self._mutations


def _answer(call_id: str, name: str, refusal: Refusal, why: str) -> ToolOutcome:
    result = json.dumps({"ok": False, "error": why}, ensure_ascii=False)
    return ToolOutcome(call_id, name, result, succeeded=False, reason=str(refusal), ran=False)


def _error_of(outcome: ToolOutcome) -> tuple[str, Cut | None]:
    """The error's own words where the call failed, and what of them was cut."""
    if outcome.succeeded:
        return "", None
    error = told_error(outcome.result)
    shown, dropped = clipped(error, _MAX_ERROR_CHARS)
    detail = f"the error of {outcome.name}, in the words that stand for an answer"
    cut = Cut(CutKind.TOOL_RESULT, Unit.CODE_POINTS, len(error) - dropped, dropped, detail)
    return shown, cut if dropped else None
