"""Runs the calls of a turn: the daemon's own tools in the actor's thread, the game's by asking the game.

A game answers when it will: until its time is over, or the turn. What it answers too late is told as a warning.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sidecar.chat.turns.claims import Claim
from sidecar.chat.turns.events import Called, Tell
from sidecar.chat.turns.loop import Planned
from sidecar.chat.turns.opening import Opening
from sidecar.chat.turns.results import ToolOutcome, succeeded
from sidecar.chat.turns.tools import Origin
from sidecar.errors import LorekeeperError, Reason, Stale
from sidecar.memory.tool import ToolAnswer
from sidecar.memory.toolbox import ToolCall

_log = logging.getLogger("lorekeeper")
TIMEOUT = "TIMEOUT"
FAILED = "TOOL_FAILED"
GAME_GONE = "GAME_GONE"
TOO_LONG = "RESULT_TOO_LONG"


@dataclass(frozen=True)
class GameAnswer:
    """What the game says that its tool did. ``reason`` is set where the game did not really answer."""

    result: str
    failed: bool = False
    reason: str = ""


AskGame = Callable[[Planned], Awaitable[GameAnswer]]


class Calling:
    """Runs one call at a time or several; each call is told to the game as it begins."""

    def __init__(
        self, opening: Opening, claim: Claim, *, tell: Tell, ask_game: AskGame, block: Callable[[], None]
    ) -> None:
        self._opening = opening
        self._claim = claim
        self._tell = tell
        self._ask_game = ask_game
        self._block = block
        self.roundtrip = 0
        self.executed: list[str] = []
        self.finished: list[ToolOutcome] = []

    async def run(self, call: Planned, place: int) -> ToolOutcome:
        """The outcome; a tool that fails or takes too long is an outcome too."""
        assert call.tool is not None
        await self._tell(Called(call, call.tool.origin, self.roundtrip, call.tool.timeout_ms))
        began = time.perf_counter()
        answer = await self._within_time(call, place)
        outcome = ToolOutcome(
            call.call_id,
            call.name,
            answer.result,
            succeeded=not answer.failed and succeeded(answer.result),
            reason=answer.reason,
            duration_ms=1_000 * (time.perf_counter() - began),
        )
        if call.tool.origin is Origin.GAME and call.mutating:
            self.executed.append(call.name)
        self.finished.append(outcome)
        return outcome

    async def _within_time(self, call: Planned, place: int) -> GameAnswer:
        assert call.tool is not None
        game = call.tool.origin is Origin.GAME
        limit = call.tool.timeout_ms / 1_000 or None
        try:
            async with asyncio.timeout(limit):
                return await (self._ask_game(call) if game else self._ask_daemon(call, place))
        except TimeoutError:
            if not game:
                self._block()
            message = f"the tool did not answer within {call.tool.timeout_ms} ms; it may still have run"
            return GameAnswer(f'{{"ok": false, "error": "{message}"}}', failed=True, reason=TIMEOUT)

    async def _ask_daemon(self, call: Planned, place: int) -> GameAnswer:
        who, parts = self._opening.who, self._opening.parts
        try:
            asked = self._asked(call, place)
            answer = await parts.workers.run(who, lambda: self._called(asked))
        except LorekeeperError as error:
            return GameAnswer(f'{{"ok": false, "error": "{error.reason}"}}', failed=True, reason=str(error.reason))
        except Exception:
            _log.exception("a tool of the daemon failed", extra={"code": "internal_failure"})
            return GameAnswer('{"ok": false, "error": "the tool failed"}', failed=True, reason=FAILED)
        reason = "" if answer.succeeded else str(answer.payload.get("Reason", FAILED))
        return GameAnswer(answer.json(), failed=not answer.succeeded, reason=reason)

    def _called(self, asked: ToolCall) -> ToolAnswer:
        """What the tool says, in the actor's own thread. Raises Stale where the turn may write nothing more."""
        if not self._claim.holds:
            raise Stale(
                "the save was restored, the actor erased or its history cleared meanwhile", reason=Reason.SAVE_CHANGED
            )
        return self._opening.parts.toolbox.call(self._opening.who, asked)

    def _asked(self, call: Planned, place: int) -> ToolCall:
        turn = self._opening.turn
        return ToolCall(
            name=call.name,
            arguments_json=call.arguments_json,
            turn=self.roundtrip,
            call_index=place,
            input_id=turn.input_id,
            moment=turn.moment,
        )
