"""What a turn stores, and when: nothing is stored twice, and never half an answer.

    at the start     the player's line, unless it repeats the last one
    before a round   each call that will run        ┐ rows of the transcript, so that a crash cannot hide
    after a round    each call's result             ┘ what the game has done
    at a good end    the answer and the block of tool results, in one write

Called in the actor's own thread, one call at a time. Work begun before a restore of the save, or before the
actor was erased or its history cleared, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.chat.backends.failures import FailureKind
from sidecar.chat.history import Added
from sidecar.chat.prompts import repeats_last
from sidecar.chat.roles import Role, ToolResults, for_source
from sidecar.chat.rows import Kind, Row
from sidecar.chat.turns.claims import Claim
from sidecar.chat.turns.events import Failed, TurnFailed, turn_failure
from sidecar.chat.turns.input import TurnInput
from sidecar.chat.turns.loop import Planned
from sidecar.chat.turns.parts import TurnParts
from sidecar.chat.turns.results import ToolOutcome, history_block
from sidecar.compaction.cuts import Cut
from sidecar.compaction.messages import ASSISTANT, TOOL, USER

_UNANSWERED = '{"ok": false, "error": "the turn ended before this tool answered; it may have run"}'


@dataclass(frozen=True)
class Kept:
    """Where the answer stands in the history, 0 where it is in none, and what the caps cut."""

    order: int = 0
    cuts: tuple[Cut, ...] = ()


class Ledger:
    """The rows of one turn. ``role`` is the actor's, before the line's source lends it anything."""

    def __init__(self, parts: TurnParts, claim: Claim, role: Role, turn: TurnInput) -> None:
        self._claim = claim
        self._who = claim.who
        self._role = for_source(role, turn.asked.line.source)
        self._persisted = turn.persists(role)
        self._turn = turn
        self._conversations = parts.conversations
        self._histories = parts.histories
        self._counter = parts.counting.common.best(turn.model)
        self._line_kept = False
        self._open: dict[str, Planned] = {}

    def line_kept(self) -> bool:
        """Whether the line is in the history."""
        return self._line_kept and self._role.history

    def keep_line(self) -> Kept:
        """The player's line; the second call in a turn does nothing. Raises TurnFailed, Corrupt, LimitReached."""
        if self._line_kept or not self._turn.asked.line.said().strip():
            return Kept()
        self._require_claim()
        resend = self._role.history and repeats_last(self._histories.read(self._who).messages(), self._turn.asked.line)
        added = Added() if resend else self._add([self._row(Kind.USER, USER, self._turn.asked.line.said())])
        self._line_kept = True
        return Kept(cuts=added.cuts(self._role.left_for))

    def keep_calls(self, calls: Sequence[Planned]) -> None:
        """The calls that are about to run."""
        running = [call for call in calls if call.answer is None]
        self._add_rows(
            [self._tool_row(Kind.TOOL_CALL, call.name, call.arguments_json, call.call_id) for call in running]
        )
        self._open |= {call.call_id: call for call in running}

    def keep_results(self, outcomes: Sequence[ToolOutcome]) -> None:
        """What the calls answered."""
        ran = [outcome for outcome in outcomes if outcome.ran]
        self._add_rows([self._tool_row(Kind.TOOL_RESULT, one.name, one.result, one.call_id) for one in ran])
        for outcome in ran:
            self._open.pop(outcome.call_id, None)

    def keep_end(self, outcomes: Sequence[ToolOutcome]) -> None:
        """The turn failed: the line stays, and calls are told that may have changed the game without an answer."""
        self.keep_line()
        answered = {outcome.call_id: outcome for outcome in outcomes}
        known = [answered[call_id] for call_id in self._open if call_id in answered]
        self.keep_results(known)
        open_calls, self._open = list(self._open.values()), {}
        self._add_rows([self._tool_row(Kind.TOOL_RESULT, one.name, _UNANSWERED, one.call_id) for one in open_calls])

    def keep_answer(self, text: str, outcomes: Sequence[ToolOutcome]) -> Kept:
        """The actor's words and the block of tool results: both or none."""
        self._require_claim()
        rows = [self._row(Kind.ASSISTANT, ASSISTANT, text)]
        block, cuts = history_block(outcomes, self._role.tool_results if self._role.history else ToolResults.NONE)
        if block:
            rows.append(self._row(Kind.USER, TOOL, block))
        added = self._add(rows)
        order = added.last_order - len(rows) + 1 if self._role.history else 0
        return Kept(order, (*cuts, *added.cuts(self._role.left_for)))

    def _add(self, rows: Sequence[Row]) -> Added:
        """Messages of the history; of a role without one, rows of the transcript."""
        if not self._role.history:
            return self._conversations.append_transcript(self._who, rows)
        return self._conversations.append(self._who, rows, role=self._role, counter=self._counter)

    def _add_rows(self, rows: Sequence[Row]) -> None:
        if rows:
            self._require_claim()
            self._conversations.append_transcript(self._who, rows)

    def _row(self, kind: Kind, key: str, content: str) -> Row:
        row = Row(
            kind,
            key,
            content,
            input_id=self._turn.input_id,
            moment=self._turn.moment,
            persisted=self._persisted,
        )
        return row._replace(speaker=self._turn.speaker) if kind is Kind.USER and key == USER else row

    def _tool_row(self, kind: Kind, name: str, content: str, call_id: str) -> Row:
        return self._row(kind, name, content)._replace(call_id=call_id)

    def _require_claim(self) -> None:
        if not self._claim.holds:
            message = (
                "the save was restored, the actor erased or its history cleared meanwhile; nothing that was said in "
                "this turn is kept, send it again"
            )
            raise TurnFailed(Failed(turn_failure(FailureKind.SAVE_CHANGED, message), reason="SAVE_CHANGED"))
