"""One turn, from the player's line to the stored answer.

    open    the prompt is built and sent, the line is stored          ──> Started
    rounds  the model speaks and calls tools                          ──> Said, Called, Answered, …
    close   the answer is checked and stored                          ──> Completed

Whatever ends a turn early, the player's line stays stored once, and what the game's tools have done is told in the
transcript.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextlib import aclosing

from sidecar.chat.backends.failures import BackendFailed, Failure, FailureKind, failure_of
from sidecar.chat.backends.wire import ASSISTANT, USER, WireMessage
from sidecar.chat.prompts import Prompt
from sidecar.chat.recall import Recalled
from sidecar.chat.roles import for_source
from sidecar.chat.tool_offers import Offer
from sidecar.chat.turns.asking import Asking, empty_answer, ready
from sidecar.chat.turns.calling import AskGame, Calling
from sidecar.chat.turns.choice import Chosen, chosen_backend
from sidecar.chat.turns.events import (
    Completed,
    Event,
    Failed,
    Finish,
    Started,
    TakenBack,
    Tell,
    Trouble,
    TurnFailed,
    Warned,
    WasCut,
    turn_failure,
)
from sidecar.chat.turns.exchange import REPAIR_REQUEST
from sidecar.chat.turns.folding import Folding
from sidecar.chat.turns.input import TurnInput
from sidecar.chat.turns.ledger import Kept, Ledger
from sidecar.chat.turns.loop import LoopRules, ToolLoop
from sidecar.chat.turns.meter import Meter
from sidecar.chat.turns.opening import Opening
from sidecar.chat.turns.parts import TurnParts
from sidecar.chat.turns.recalling import recalled_for
from sidecar.chat.turns.rounds import Rounds
from sidecar.chat.turns.structured import checked_answer
from sidecar.chat.turns.tools import TurnTool, allowed, own_tool
from sidecar.compaction.cuts import Cut
from sidecar.errors import Corrupt, LorekeeperError
from sidecar.storage.keys import ActorId

_FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH, "content_filter": Finish.CONTENT_FILTER}


class Turn:
    """Runs once. ``tools`` are the game's; ``new_id`` makes ids of calls that are unique in the conversation."""

    def __init__(
        self,
        parts: TurnParts,
        folding: Folding,
        who: ActorId,
        turn: TurnInput,
        tools: Sequence[TurnTool],
        *,
        tell: Tell,
        ask_game: AskGame,
        new_id: Callable[[str], str],
    ) -> None:
        self._parts = parts
        self._folding = folding
        self._who = who
        self._turn = turn.with_tools(tools)
        self._game_tools = tools
        self._tell_game = tell
        self._ask_game = ask_game
        self._new_id = new_id
        role = parts.roles.get(who.role)
        self._role = for_source(role, turn.asked.line.source)
        self._claim = parts.claims.begin(who)
        self._ledger = Ledger(parts, self._claim, role, turn)
        self._meter = Meter()
        self._cuts: list[Cut] = []
        self._asking: Asking | None = None
        self._calling: Calling | None = None

    async def run(self) -> Completed:
        """Raises TurnFailed, LorekeeperError where the daemon itself cannot go on, and CancelledError.

        InvalidInput where the tool that must be called is none of those offered: nothing is stored then.
        """
        offer = self._parts.prompts.offer(self._who, self._role, self._turn.asked)
        try:
            turn = self._turn
            chosen = chosen_backend(
                self._parts.backends, self._role, backend_id=turn.backend_id, model=turn.model, api_key=turn.api_key
            )
            limit_ms = turn.timeout_ms or chosen.backend.total_timeout_ms
            async with asyncio.timeout(limit_ms / 1_000 if limit_ms else None):
                return await self._run(chosen, offer)
        except BaseException as error:
            await asyncio.shield(self._parts.background.start(self._keep_end()))
            told = self._told(error)
            if told is None:
                raise
            raise TurnFailed(told) from error

    def failed(self, failure: Failure) -> Failed:
        """The turn's end where something outside of it ended it."""
        return self._complete(Failed(failure))

    async def _run(self, chosen: Chosen, offer: Offer) -> Completed:
        with self._meter.timing("prompt"):
            recalled, cuts = await recalled_for(self._parts.recall, self._who, self._turn, self._role)
            chosen = await ready(self._parts, chosen)
            opening = self._opening(recalled)
            prompt, keeping = await self._open(opening, chosen)
        if prompt.snapshot.folded and not self._role.summary.background:
            await keeping
            prompt = await self._fold_first(opening, chosen, prompt)
        asking, loop, rounds = self._begin(opening, chosen, prompt, offer)
        async with aclosing(asking):
            asking.begin()
            kept = await keeping
            await self._tell_start(chosen, prompt, recalled, (*cuts, *kept.cuts))
            await rounds.run()
        text, response = await self._answer(asking, loop, rounds)
        return await self._close(asking, loop, text, response)

    async def _open(self, opening: Opening, chosen: Chosen) -> tuple[Prompt, asyncio.Task[Kept]]:
        """The prompt, and the line that is being stored meanwhile: both from one look at the history."""
        loop = asyncio.get_running_loop()
        built: asyncio.Future[Prompt] = loop.create_future()

        def build_and_keep() -> Kept:
            loop.call_soon_threadsafe(_hand_over, built, opening.build(chosen))
            return self._ledger.keep_line()

        keeping = self._parts.background.start(self._parts.workers.run(self._who, build_and_keep))
        await asyncio.wait([built, keeping], return_when=asyncio.FIRST_COMPLETED)
        if not built.done():
            await keeping  # raises what went wrong
        return built.result(), keeping

    async def _fold_first(self, opening: Opening, chosen: Chosen, prompt: Prompt) -> Prompt:
        """The prompt after folding."""
        with self._meter.timing("compaction"):
            folded = await self._folding.fold(self._who, prompt.budget.history, through=prompt.newest)
        if folded.use.failure:
            message = "the summary could not be written by a model; its lines were shortened by rule"
            await self._tell(Warned(Trouble.SUMMARY_FALLBACK, message, {"failure": str(folded.use.failure)}))
        with self._meter.timing("prompt"):
            anew = await self._parts.workers.run(self._who, lambda: opening.build(chosen))
        return prompt.after_fold(anew, folded)

    def _begin(self, opening: Opening, chosen: Chosen, prompt: Prompt, offer: Offer) -> tuple[Asking, ToolLoop, Rounds]:
        tools = self._tools(offer)
        loop = ToolLoop(tools, self._rules(), self._new_id)
        asking = Asking(opening, chosen, prompt, tools=tools, tell=self._tell, meter=self._meter)
        calling = Calling(opening, self._claim, tell=self._tell, ask_game=self._ask_game, block=loop.block)
        self._asking, self._calling = asking, calling
        return asking, loop, Rounds(opening, asking, loop, calling, self._ledger, tell=self._tell, meter=self._meter)

    async def _answer(self, asking: Asking, loop: ToolLoop, rounds: Rounds) -> tuple[str, str]:
        """The whole text, and the JSON where some was asked for."""
        if not any(text.strip() for text in asking.texts):
            if not loop.outcomes:
                raise empty_answer()
            await asking.say(*loop.summary())
        await self._warn_of_length(asking)
        if self._turn.form:
            response = await self._structured(asking, rounds)
            return response, response
        return "\n\n".join(text.strip() for text in asking.texts if text.strip()) + await asking.end(), ""

    async def _structured(self, asking: Asking, rounds: Rounds) -> str:
        """JSON that keeps to the schema; the model may repair it once."""
        assert self._turn.form is not None
        text, form = asking.texts[-1], self._turn.form.check
        found = checked_answer(text, form)
        await asking.tell_cut()
        if not found.errors:
            return found.json_text
        await self._tell(TakenBack("the answer did not keep to the schema; the model is asked once more"))
        details = {f"error_{place}": error for place, error in enumerate(found.errors, 1)}
        await self._tell(Warned(Trouble.ANSWER_REPAIRED, "the answer did not keep to the schema", details))
        repair = [WireMessage(ASSISTANT, text), WireMessage(USER, REPAIR_REQUEST + "; ".join(found.errors))]
        again = await asking.once_more(rounds.rounds, repair)
        await self._warn_of_length(asking)
        found = checked_answer(again, form)
        if found.errors:
            message = "the answer does not keep to the schema, also after the model was asked once more"
            failure = turn_failure(FailureKind.ANSWER_INVALID, message)
            raise TurnFailed(Failed(failure, raw_text=again, schema_errors=tuple(found.errors)))
        return found.json_text

    async def _warn_of_length(self, asking: Asking) -> None:
        if asking.heard.answer.finish == "length":
            message = "the answer ended at its longest allowed length; raise max_output_tokens to hear all of it"
            await self._tell(Warned(Trouble.ANSWER_CUT, message))

    async def _close(self, asking: Asking, loop: ToolLoop, text: str, response: str) -> Completed:
        def keep() -> tuple[Kept, int]:
            kept = self._ledger.keep_answer(text, loop.outcomes)
            return kept, self._document_version()

        kept, version = await self._parts.workers.run(self._who, keep)
        for cut in kept.cuts:
            await self._tell(WasCut(cut))
        return Completed(
            text=text,
            response_json=response,
            finish=_finish(asking),
            spent=self._meter.spent,
            timings=self._meter.timings(),
            document_version=version,
            roundtrips=self._meter.asked,
            tool_calls=sum(outcome.ran for outcome in loop.outcomes),
            cuts=tuple(self._cuts),
            backend_id=asking.chosen.backend.backend_id,
            model=asking.model,
            compaction_pending=self._fold_later(asking.prompt),
            message_order=kept.order,
        )

    def _document_version(self) -> int:
        """0 also where it cannot be read: a role that shows it has read it before, and no other fails for it."""
        with contextlib.suppress(Corrupt):
            return self._parts.documents.read(self._who).version
        return 0

    def _fold_later(self, prompt: Prompt) -> bool:
        """Has folded or archived what left the window; whether the summary will change."""
        folds = bool(prompt.snapshot.folded) and self._role.summary.background
        if folds or (prompt.snapshot.left_out and self._role.archive):
            self._folding.start(self._who, prompt.budget.history)
        return folds

    def _opening(self, recalled: Recalled) -> Opening:
        return Opening(self._parts, self._who, self._role, self._turn, recalled, self._ledger.line_kept)

    def _tools(self, offer: Offer) -> dict[str, TurnTool]:
        """The tools of this turn: the daemon's and the game's, as far as it may call them."""
        own = [
            own_tool(tool.spec, mutating=tool.mutating, timeout_ms=self._role.tool_timeout_ms)
            for tool in self._parts.toolbox.offered(self._who)
        ]
        return allowed([*own, *self._game_tools], [tool.name for tool in offer.allowed])

    def _rules(self) -> LoopRules:
        asked, limits = self._turn.max_roundtrips, self._parts.limits
        return LoopRules(
            max_roundtrips=self._role.max_roundtrips if asked is None else asked,
            max_failed_rounds=self._role.max_failed_rounds,
            suppress_duplicates=self._role.suppress_duplicate_calls,
            hard_rounds=limits.max_rounds,
            max_calls=limits.max_calls,
        )

    async def _tell_start(self, chosen: Chosen, prompt: Prompt, recalled: Recalled, cuts: Sequence[Cut]) -> None:
        hits = tuple(recalled.hits[: prompt.recalled])
        await self._tell(Started(chosen.backend.backend_id, chosen.model, prompt, hits))
        if recalled.degraded:
            message = "the search for memories was less than it could be"
            await self._tell(Warned(Trouble.RECALL_DEGRADED, message, {"reason": str(recalled.degraded)}))
        counting = self._parts.counting.of(chosen.backend).cuts(prompt.counter)
        for cut in (*cuts, *prompt.cuts, *counting, *(tool.cut for tool in self._game_tools if tool.cut)):
            await self._tell(WasCut(cut))

    async def _tell(self, event: Event) -> None:
        if isinstance(event, WasCut):
            self._cuts.append(event.cut)
        await self._tell_game(event)

    async def _keep_end(self) -> None:
        """What cannot be kept is not told: the failure that ended the turn is the one to hear of."""
        finished = self._calling.finished if self._calling else []
        with contextlib.suppress(TurnFailed, LorekeeperError):
            await self._parts.workers.run(self._who, lambda: self._ledger.keep_end(finished))

    def _told(self, error: BaseException) -> Failed | None:
        """What the game is told; None for what is no failure of the turn's own."""
        if isinstance(error, TurnFailed):
            return self._complete(error.told)
        if isinstance(error, BackendFailed):
            return self._complete(Failed(error.failure, error.backend_id))
        if isinstance(error, TimeoutError):
            return self._complete(Failed(failure_of(FailureKind.TIMEOUT)))
        return None

    def _complete(self, told: Failed) -> Failed:
        return Failed(
            failure=told.failure,
            backend_id=told.backend_id or (self._asking.chosen.backend.backend_id if self._asking else ""),
            executed_tools=tuple(self._calling.executed) if self._calling else (),
            raw_text=told.raw_text,
            schema_errors=told.schema_errors,
            spent=self._meter.spent,
            reason=told.reason or str(told.failure.kind),
        )


def _hand_over(built: asyncio.Future[Prompt], prompt: Prompt) -> None:
    if not built.done():
        built.set_result(prompt)


def _finish(asking: Asking) -> Finish:
    if not asking.spoke:
        return Finish.TOOLS_ONLY
    told = asking.heard.answer.finish
    return _FINISHES.get(told, Finish.STOP if told else Finish.UNSPECIFIED)
