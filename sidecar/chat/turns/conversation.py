"""A conversation that stays open: lines wait their turn, the game answers tool calls, and either may go away.

    the game ──> read ──> lines, one turn at a time ──> events ──> the game
                      └─> answers to tool calls, cancels, new tools

A line that is dropped, or that nobody hears the answer of any more, is stored all the same.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sidecar.chat.backends.failures import FailureKind
from sidecar.chat.turns.background import cancel_once
from sidecar.chat.turns.calling import GAME_GONE, TOO_LONG, AskGame, GameAnswer
from sidecar.chat.turns.endings import cancelled, failed_of
from sidecar.chat.turns.events import Completed, Event, Failed, Tell, Trouble, Warned, turn_failure
from sidecar.chat.turns.input import TurnInput
from sidecar.chat.turns.loop import Planned
from sidecar.chat.turns.tools import TurnTool
from sidecar.chat.turns.turn import Turn
from sidecar.settings import TurnSettings

_MAX_ID_CHARS = 128


@dataclass(frozen=True)
class Line:
    """What the player says."""

    turn: TurnInput


@dataclass(frozen=True)
class BadLine:
    """A line that cannot be used; it fails as a turn of its own."""

    input_id: str
    failed: Failed


@dataclass(frozen=True)
class ToolAnswer:
    """The game's answer to a call."""

    call_id: str
    answer: GameAnswer


@dataclass(frozen=True)
class Cancel:
    """The game ends a turn; an empty id means the one that runs."""

    turn_id: str = ""
    drop_waiting: bool = False


@dataclass(frozen=True)
class NewTools:
    """The game offers other tools from the next turn on."""

    tools: tuple[TurnTool, ...]


Message = Line | BadLine | ToolAnswer | Cancel | NewTools


@dataclass(frozen=True)
class Told:
    """An event with the turn that it belongs to."""

    turn_id: str
    input_id: str
    event: Event


class CallIds:
    """Ids of tool calls, unique in one conversation: the model's own where it is usable, else one made here.

    Nine letters and digits is what the strictest servers take.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()

    def __call__(self, wanted: str) -> str:
        usable = 0 < len(wanted) <= _MAX_ID_CHARS and wanted.isprintable() and wanted not in self._used
        call_id = wanted if usable else self._made()
        self._used.add(call_id)
        return call_id

    def _made(self) -> str:
        number = len(self._used) + 1
        while f"call{number:05}" in self._used:
            number += 1
        return f"call{number:05}"


@dataclass(frozen=True)
class _Waiting:
    """A line, and what stores it where no turn will answer it."""

    turn: TurnInput
    keep: Callable[[], None]


@dataclass
class _Running:
    """The turn that runs."""

    turn_id: str
    task: asyncio.Task[Completed] | None = None
    open_calls: dict[str, asyncio.Future[GameAnswer]] = field(default_factory=dict)


class Turns(Protocol):
    """What a conversation needs of the room of turns."""

    def turn(
        self, turn: TurnInput, tools: Sequence[TurnTool], *, tell: Tell, ask_game: AskGame, new_id: CallIds
    ) -> Turn:
        """A turn that answers the line."""
        ...

    def keeper(self, turn: TurnInput) -> Callable[[], None]:
        """What stores the line where no turn will answer it: nothing, once its actor's memory is another one."""
        ...


class Conversation:
    """One open stream; ``tell`` hands an event to the game."""

    def __init__(
        self,
        *,
        tools: Sequence[TurnTool],
        turns: Turns,
        tell: Callable[[Told], Awaitable[None]],
        limits: TurnSettings,
    ) -> None:
        self._tools = tuple(tools)
        self._turns = turns
        self._tell_game = tell
        self._limits = limits
        self._ids = CallIds()
        self._waiting: deque[_Waiting] = deque()
        self._changed = asyncio.Event()
        self._running: _Running | None = None
        self._heard_all = False

    async def run(self, messages: AsyncIterator[Message]) -> None:
        """Until the game has said all and every line is answered. Raises what is wrong with what the game says."""
        tasks = [asyncio.ensure_future(work) for work in (self._read(messages), self._answer_lines())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                cancel_once(task)
            for waiting in self._waiting:
                waiting.keep()
            self._waiting.clear()
            await asyncio.wait(tasks)

    async def _read(self, messages: AsyncIterator[Message]) -> None:
        async for message in messages:
            await self._take(message)
        self._heard_all = True
        self._changed.set()
        self._abandon_calls()

    async def _take(self, message: Message) -> None:
        if isinstance(message, Line):
            await self._take_line(message.turn)
        elif isinstance(message, BadLine):
            await self._tell(_new_id(), message.input_id, message.failed)
        elif isinstance(message, ToolAnswer):
            await self._take_answer(message)
        elif isinstance(message, Cancel):
            await self._cancel(message)
        else:
            self._tools = message.tools

    async def _take_line(self, turn: TurnInput) -> None:
        waiting = _Waiting(turn, self._turns.keeper(turn))
        if len(self._waiting) >= self._limits.max_waiting_lines:
            waiting.keep()
            most = self._limits.max_waiting_lines
            message = f"{most} lines wait already (turns.max_waiting_lines); wait for an answer, then send the next"
            failed = Failed(turn_failure(FailureKind.LIMIT_REACHED, message), reason="TOO_MANY_ITEMS")
            await self._tell(_new_id(), turn.input_id, failed)
            return
        self._waiting.append(waiting)
        self._changed.set()

    async def _take_answer(self, answered: ToolAnswer) -> None:
        running = self._running
        future = running.open_calls.pop(answered.call_id, None) if running else None
        if future is None or future.done():
            message = "the game answered a tool call that is unknown, over, or answered already; it was passed over"
            turn_id = running.turn_id if running else ""
            await self._tell(turn_id, "", Warned(Trouble.UNEXPECTED_TOOL_RESULT, message))
            return
        future.set_result(self._bounded(answered.answer))

    def _bounded(self, answer: GameAnswer) -> GameAnswer:
        most = self._limits.max_result_chars
        if len(answer.result) <= most:
            return answer
        message = f"the tool's result is longer than {most} characters"
        return GameAnswer(f'{{"ok": false, "error": "{message}"}}', failed=True, reason=TOO_LONG)

    async def _cancel(self, cancel: Cancel) -> None:
        running = self._running
        if cancel.drop_waiting:
            dropped, self._waiting = list(self._waiting), deque()
            for waiting in dropped:
                waiting.keep()
                await self._tell(_new_id(), waiting.turn.input_id, _cancelled())
        if running and running.task and cancel.turn_id in ("", running.turn_id):
            cancel_once(running.task)

    async def _answer_lines(self) -> None:
        while True:
            while not self._waiting:
                if self._heard_all:
                    return
                self._changed.clear()
                await self._changed.wait()
            await self._answer(self._waiting.popleft().turn)

    async def _answer(self, line: TurnInput) -> None:
        """One turn, whose end is always told."""
        running = self._running = _Running(_new_id())

        async def tell(event: Event) -> None:
            await self._tell(running.turn_id, line.input_id, event)

        turn = self._turns.turn(line, self._tools, tell=tell, ask_game=self._ask_game, new_id=self._ids)
        task = running.task = asyncio.ensure_future(turn.run())
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancel_once(task)
            await asyncio.wait([task])
            raise
        finally:
            self._running = None
        await tell(turn.failed(cancelled()) if task.cancelled() else _end_of(task))

    async def _ask_game(self, call: Planned) -> GameAnswer:
        running = self._running
        if running is None or self._heard_all:
            return GameAnswer('{"ok": false, "error": "the game is gone"}', failed=True, reason=GAME_GONE)
        future: asyncio.Future[GameAnswer] = asyncio.get_running_loop().create_future()
        running.open_calls[call.call_id] = future
        try:
            return await future
        finally:
            running.open_calls.pop(call.call_id, None)

    def _abandon_calls(self) -> None:
        """The game has said its last word: what it did not answer it never will."""
        for future in list(self._running.open_calls.values()) if self._running else ():
            if not future.done():
                gone = '{"ok": false, "error": "the game ended the conversation before it answered"}'
                future.set_result(GameAnswer(gone, failed=True, reason=GAME_GONE))

    async def _tell(self, turn_id: str, input_id: str, event: Event) -> None:
        await self._tell_game(Told(turn_id, input_id, event))


def _end_of(task: asyncio.Task[Completed]) -> Event:
    """How a turn ended: well, or why not."""
    error = task.exception()
    return task.result() if error is None else failed_of(error)


def _cancelled() -> Failed:
    return Failed(cancelled(), reason=str(FailureKind.CANCELLED))


def _new_id() -> str:
    return secrets.token_hex(8)
