"""The middle of a turn: the model speaks, its calls run, and it is asked again, until it only speaks.

first answer ──calls──> run ──results──> next answer ──calls──> …  ──> words
                                └── no rounds left, or only failures ──> asked for words only
"""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.chat.backends.wire import USER, WireMessage
from sidecar.chat.turns.asking import Asking, Heard
from sidecar.chat.turns.batch import run_batch
from sidecar.chat.turns.calling import Calling
from sidecar.chat.turns.events import Answered, Tell, Trouble, Warned, WasCut
from sidecar.chat.turns.exchange import FINAL_REQUEST, Round, trimmed
from sidecar.chat.turns.ledger import Ledger
from sidecar.chat.turns.loop import Final, Planned, Refusal, ToolLoop
from sidecar.chat.turns.meter import Meter
from sidecar.chat.turns.opening import Opening
from sidecar.chat.turns.results import ToolOutcome, shown_result
from sidecar.chat.turns.tools import Origin
from sidecar.compaction.cuts import Cut, CutKind, Unit

_FINAL_WORDS = {
    Final.ROUNDTRIP_LIMIT: "the turn has no rounds of tool calls left; the model is asked for words only",
    Final.FAILED_ROUNDS: "every call failed in too many rounds; the model is asked for words only",
}


class Rounds:
    """One turn's rounds. ``rounds`` are what a further request repeats."""

    def __init__(
        self,
        opening: Opening,
        asking: Asking,
        loop: ToolLoop,
        calling: Calling,
        ledger: Ledger,
        *,
        tell: Tell,
        meter: Meter,
    ) -> None:
        self._opening = opening
        self._role = opening.role
        self._asking = asking
        self._loop = loop
        self._calling = calling
        self._ledger = ledger
        self._tell = tell
        self._meter = meter
        self.rounds: list[Round] = []

    async def run(self) -> None:
        """Until the model only speaks. Raises BackendFailed."""
        heard = await self._asking.first()
        while True:
            wanted = [*heard.speech.calls, *heard.speech.directives]
            if not wanted:
                return
            final = await self._run_calls(self._loop.plan(wanted), heard)
            if not heard.speech.calls and heard.speech.spoke:
                return
            if final:
                await self._last_words(final)
                return
            heard = await self._asking.next(self.rounds)

    async def _last_words(self, final: Final) -> None:
        await self._tell(Warned(Trouble[final.name], _FINAL_WORDS[final], {"rounds": str(self._loop.rounds)}))
        heard = await self._asking.next(self.rounds, [WireMessage(USER, FINAL_REQUEST)], with_tools=False)
        if not heard.speech.spoke:
            await self._asking.say(*self._loop.excuse(final))

    async def _run_calls(self, planned: Sequence[Planned], heard: Heard) -> Final | None:
        """Runs one round and keeps what the next request repeats of it; why the tools are taken away, or None."""
        workers, who = self._opening.parts.workers, self._opening.who
        self._calling.roundtrip = self._meter.asked
        for call in planned:
            await self._warn_of(call)
        await workers.run(who, lambda: self._ledger.keep_calls(planned))
        with self._meter.timing("tools"):
            outcomes = await run_batch(planned, self._run_call, parallel=self._role.max_parallel_calls)
        await workers.run(who, lambda: self._ledger.keep_results(outcomes))
        results = tuple(shown_result(one.result, self._role.max_tool_result_chars)[0] for one in outcomes)
        self.rounds.append(Round(heard.speech.text, tuple(call.wire() for call in planned), results))
        await self._tell_trimmed()
        return self._loop.settle(planned, outcomes)

    async def _run_call(self, call: Planned, place: int) -> ToolOutcome:
        outcome = await self._calling.run(call, place)
        await self._tell_outcome(call, outcome)
        return outcome

    async def _warn_of(self, call: Planned) -> None:
        """Tells of a call that was repaired, and of one that is answered without running."""
        if call.repaired:
            message = "the model got a tool's name wrong in upper and lower case; it was repaired"
            await self._tell(Warned(Trouble.TOOL_NAME_REPAIRED, message, {"tool": call.name}))
        if call.answer is None:
            return
        if call.answer.reason == Refusal.ARGUMENTS_INVALID:
            message = "the model called a tool with arguments that cannot be used; nothing was run, it is asked again"
            await self._tell(Warned(Trouble.TOOL_ARGUMENTS_INVALID, message, {"tool": call.name}))
        if call.cut:
            await self._tell(WasCut(call.cut))
        await self._tell_outcome(call, call.answer)

    async def _tell_outcome(self, call: Planned, outcome: ToolOutcome) -> None:
        most = self._role.max_tool_result_chars
        shown, dropped = shown_result(outcome.result, most)
        await self._tell(Answered(outcome, shown, call.tool.origin if call.tool else Origin.DAEMON))
        if dropped:
            detail = f"{call.name}: max_tool_result_chars is {most}"
            await self._tell(WasCut(Cut(CutKind.TOOL_RESULT, Unit.CODE_POINTS, most, dropped, detail)))

    async def _tell_trimmed(self) -> None:
        """Tells how many older results the next request does without, where that is news."""
        most = self._role.max_tool_messages
        kept, gone = trimmed(self.rounds, most)
        if gone > trimmed(self.rounds[:-1], most)[1]:
            count = sum(len(one.results) for one in kept)
            detail = f"max_tool_messages is {most}"
            await self._tell(WasCut(Cut(CutKind.TOOL_HISTORY, Unit.MESSAGES, count, gone, detail)))
