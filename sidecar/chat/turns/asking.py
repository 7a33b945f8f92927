"""Asks the model: streams what it says to the game, and asks again where that may help.

Nothing is asked again once the game has been told any text or a tool has run: what was said and done stays said and
done. A prompt that was too long is built smaller, a backend that is down is retried and then replaced, a model that
takes no tool calls of the wire is told of the tools in its text, and one that takes roles in turns only is sent them
in turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from sidecar.chat.backends.failures import BackendFailed, Failure, FailureKind, failure_of
from sidecar.chat.backends.offline import offline_answer
from sidecar.chat.backends.profile import ToolChannel
from sidecar.chat.backends.retries import Smaller, may_fall_back, may_retry, smaller
from sidecar.chat.backends.taking_turns import RoleOrder
from sidecar.chat.backends.wire import Answer, Ask, WireMessage
from sidecar.chat.prompts import Prompt
from sidecar.chat.turns.ahead import Ahead, Pieces
from sidecar.chat.turns.choice import Chosen, fallback_of
from sidecar.chat.turns.events import Event, Said, TakenBack, Tell, Trouble, Warned, WasCut
from sidecar.chat.turns.exchange import Round, trimmed
from sidecar.chat.turns.meter import Meter, cut_in_silence
from sidecar.chat.turns.opening import Opening
from sidecar.chat.turns.parts import TurnParts
from sidecar.chat.turns.request import request_of, tokens_of
from sidecar.chat.turns.speech import Room, Speech
from sidecar.chat.turns.tools import TurnTool
from sidecar.compaction.cuts import Cut
from sidecar.compaction.tokens import CounterKind

_TRUNCATED = (
    "the backend read far fewer tokens than were sent: it cut the prompt in silence, perhaps the system prompt; give "
    "the server a larger window, or put its real one into context_tokens"
)


@dataclass(frozen=True)
class Heard:
    """One answer: what was said and called, and how it ended."""

    speech: Speech
    answer: Answer


class Asking:
    """The model's side of one turn."""

    def __init__(
        self,
        opening: Opening,
        chosen: Chosen,
        prompt: Prompt,
        *,
        tools: Mapping[str, TurnTool],
        tell: Tell,
        meter: Meter,
    ) -> None:
        self._opening = opening
        self._parts = opening.parts
        self._tools = tools
        self._tell = tell
        self._meter = meter
        self._room = Room(opening.role.max_response_chars)
        self._truncation_told = False
        self._ahead: tuple[Ask, Ahead] | None = None
        self._asked_last = Ask([])
        """A request that is made again as it was is one call to the server, and goes by its name."""
        self.chosen = chosen
        self.prompt = prompt
        self.model = chosen.model
        self.texts: list[str] = []
        """What the actor has said, an entry for each answer and for each sentence made from results."""
        self.spoke = False
        """Whether any of it is the model's own."""
        self.heard = Heard(self._speech(with_tools=False), Answer())
        """The last answer; an empty one before there is any."""

    def begin(self) -> None:
        """Asks already, for :meth:`first` to hear."""
        ask, pieces = self._asked([], with_tools=True)
        self._ahead = ask, Ahead(pieces)

    async def aclose(self) -> None:
        """Ends what was begun and is not going to be heard."""
        if self._ahead:
            await self._ahead[1].aclose()

    async def first(self) -> Heard:
        """The first answer, with every way to get one. Raises BackendFailed."""
        attempts = overflows = 0
        tried = {self.chosen.backend.backend_id}
        while True:
            speech = self._speech(with_tools=True)
            try:
                return await self._once(speech, [], with_tools=True)
            except BackendFailed as error:
                failure = error.failure
                if speech.began:
                    raise
                if failure.role_order > self.chosen.role_order:
                    self._learn_order(failure.role_order)
                elif self._takes_no_tools(failure):
                    await self._use_text_channel()
                elif failure.kind is FailureKind.CONTEXT_LENGTH_EXCEEDED and overflows < self._most_overflows:
                    overflows += 1
                    await self._rebuild(failure, overflows)
                elif may_retry(failure) and attempts < self.chosen.backend.max_retries:
                    attempts += 1
                    if not await self._wait(failure, attempts):
                        raise
                elif not may_fall_back(failure) or not await self._fall_back(tried):
                    raise
                else:
                    attempts = 0

    async def next(
        self, rounds: Sequence[Round], extra: Sequence[WireMessage] = (), *, with_tools: bool = True
    ) -> Heard:
        """A further answer, after calls or for a repair. Raises BackendFailed."""
        kept, _ = trimmed(rounds, self._opening.role.max_tool_messages)
        added = [message for one in kept for message in one.messages(native=self.chosen.native)]
        return await self._once(self._speech(with_tools=with_tools), [*added, *extra], with_tools=with_tools)

    async def once_more(self, rounds: Sequence[Round], request: Sequence[WireMessage]) -> str:
        """The whole answer again: what was said before does not count. Raises BackendFailed."""
        self._room.take_back()
        self.texts.clear()
        heard = await self.next(rounds, request, with_tools=False)
        await self.tell_cut()
        return heard.speech.text

    async def say(self, text: str, cut: Cut | None) -> None:
        """What the actor says where its model said nothing, within the role's bound; ``cut`` is what it leaves out."""
        kept = self._room.take(text)
        if kept:
            await self._say([Said(kept, starts_message=True)])
        self.texts.append(kept)
        if cut:
            await self._tell(WasCut(cut))

    async def end(self) -> str:
        """Ends a text of which some was beyond the role's bound, and tells it; the mark that ends the text."""
        mark = self._room.mark()
        if mark:
            await self._tell(Said(mark))
        await self.tell_cut()
        return mark

    async def tell_cut(self) -> None:
        """Tells what of the answer was beyond the role's bound."""
        for cut in self._room.cuts():
            await self._tell(WasCut(cut))

    async def _once(self, speech: Speech, added: Sequence[WireMessage], *, with_tools: bool) -> Heard:
        ask, heard = self._ahead or self._asked(added, with_tools=with_tools)
        self._ahead = None
        answer = Answer()
        self._meter.asked += 1
        with self._meter.timing("model"):
            async with aclosing(heard) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Answer):
                        answer = piece
                    else:
                        await self._say(speech.hear(piece))
        await self._say(speech.end())
        speech.add_native(answer.calls)
        self.model = answer.model or self.model
        await self._count(ask, answer, speech, added)
        self.heard = Heard(speech, answer)
        self.texts.append(speech.text)
        self.spoke = self.spoke or speech.spoke
        return self.heard

    def _asked(self, added: Sequence[WireMessage], *, with_tools: bool) -> tuple[Ask, Pieces]:
        ask = request_of(self._opening, self.chosen, self.prompt, added, with_tools=with_tools)
        if ask != self._asked_last:
            self._asked_last = ask
        return self._asked_last, self._pieces(self._asked_last)

    async def _pieces(self, ask: Ask) -> Pieces:
        if self.chosen.offline:
            for part in offline_answer(ask.messages, self._opening.role.offline_lines):
                yield part
            return
        async with aclosing(self._parts.client.answer(self.chosen.backend, ask, key=self.chosen.key)) as pieces:
            async for piece in pieces:
                yield piece

    async def _say(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, Said):
                self._meter.text_came()
            await self._tell(event)
            if isinstance(event, TakenBack):  # of this answer alone: what came before it is said again
                await self._say([Said(text, starts_message=True) for text in self.texts if text])

    async def _count(self, ask: Ask, answer: Answer, speech: Speech, added: Sequence[WireMessage]) -> None:
        counter = self._opening.counter(self.chosen)
        estimated = tokens_of(ask, self.prompt)
        said = counter.count(speech.text)
        self._meter.answered(answer.tokens, estimated=estimated, said=said, counter=counter.kind)
        if cut_in_silence(answer.tokens, estimated):
            await self._tell_truncation(estimated)
        elif answer.tokens and not added and counter.kind is CounterKind.CALIBRATED:
            self._parts.counting.of(self.chosen.backend).report(
                self.chosen.model, estimated=estimated, reported=answer.tokens.read()
            )
        if ask.tools and answer.calls:
            self._learn(ToolChannel.NATIVE)

    async def _tell_truncation(self, estimated: int) -> None:
        if self._truncation_told:
            return
        self._truncation_told = True
        details = {"sent": str(estimated), "read": str(self._meter.spent.last_prompt)}
        await self._tell(Warned(Trouble.CONTEXT_TRUNCATED, _TRUNCATED, details))

    def _speech(self, *, with_tools: bool) -> Speech:
        """Where the model has no tools, all that it writes is text."""
        if not with_tools:
            return Speech((), self._room)
        role = self._opening.role
        obeys = role.text_directives and "memory" in self._tools
        directive = str(role.memory_default_action) if obeys else ""
        return Speech(self._written(["memory"] if obeys else []), self._room, directive=directive)

    def _written(self, obeyed: Iterable[str]) -> Iterable[str]:
        """The tools that the model may call in its text: all, unless it is known to call them natively."""
        return obeyed if self.chosen.channel is ToolChannel.NATIVE else self._tools

    @property
    def _most_overflows(self) -> int:
        return self._opening.role.max_overflow_retries

    def _takes_no_tools(self, failure: Failure) -> bool:
        auto = self.chosen.backend.tool_channel is ToolChannel.AUTO
        return failure.tools_refused and auto and self.chosen.native

    async def _use_text_channel(self) -> None:
        self._learn(ToolChannel.TEXT)
        await self._build()

    def _learn(self, channel: ToolChannel) -> None:
        """How this model calls tools, for the rest of the turn and for those to come."""
        self._parts.known.learn_channel(self.chosen.backend, self.chosen.model, channel)
        self.chosen = replace(self.chosen, channel=channel)

    def _learn_order(self, order: RoleOrder) -> None:
        """In which order this model takes roles, for the rest of the turn and for those to come."""
        self._parts.known.learn_role_order(self.chosen.backend, self.chosen.model, order)
        self.chosen = replace(self.chosen, role_order=order)

    async def _rebuild(self, failure: Failure, attempt: int) -> None:
        window = self._opening.window(self.chosen)
        limits = smaller(failure, attempt=attempt, window=window, estimated=self.prompt.tokens)
        if failure.window:
            self._parts.known.limit_window(self.chosen.backend, self.chosen.model, failure.window)
        before = self.prompt.tokens
        await self._build(limits)
        details = {"tokens_before": str(before), "tokens_after": str(self.prompt.tokens), "window": str(limits.window)}
        message = "the prompt was too long for the backend and was built again, smaller"
        await self._tell(Warned(Trouble.PROMPT_REBUILT, message, details))

    async def _build(self, limits: Smaller | None = None) -> None:
        opening, chosen = self._opening, self.chosen
        with self._meter.timing("prompt"):
            self.prompt = await self._parts.workers.run(opening.who, lambda: opening.build(chosen, limits))

    async def _wait(self, failure: Failure, attempt: int) -> bool:
        """Waits before a retry; False where the backend asks for a longer wait than is allowed."""
        wait_ms = self._parts.waits.wait_ms(attempt, failure.retry_after_ms)
        if wait_ms is None:
            return False
        details = {"backend": self.chosen.backend.backend_id, "attempt": str(attempt), "failure": str(failure.kind)}
        await self._tell(Warned(Trouble.RETRY, f"{failure.message}; it is asked again", details, wait_ms))
        await asyncio.sleep(wait_ms / 1_000)
        return True

    async def _fall_back(self, tried: set[str]) -> bool:
        """Moves on to the next backend; False where there is none."""
        failed = self.chosen.backend
        other = fallback_of(self._parts.backends, failed, tried)
        if other is None:
            return False
        tried.add(other.backend.backend_id)
        self.chosen = await ready(self._opening.parts, other)
        self.model = other.model
        details = {"from": failed.backend_id, "to": other.backend.backend_id}
        await self._tell(Warned(Trouble.FALLBACK, "the backend is down; another one took over", details))
        await self._build()
        return True


async def ready(parts: TurnParts, chosen: Chosen) -> Chosen:
    """The choice with its window, its tool channel and the order of roles that it takes."""
    window = await parts.known.window(chosen.backend, chosen.model, chosen.key)
    known, where = parts.known, (chosen.backend, chosen.model)
    return replace(chosen, window=window, channel=known.channel(*where), role_order=known.role_order(*where))


def empty_answer() -> BackendFailed:
    """The model said nothing at all."""
    return BackendFailed(failure_of(FailureKind.EMPTY_RESPONSE))
