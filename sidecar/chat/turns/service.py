"""ChatService: BuildPrompt, Send and Converse. Thin: it translates, hands over, and translates back."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

from sidecar.chat.turns.calling import GAME_GONE, GameAnswer
from sidecar.chat.turns.conversation import (
    BadLine,
    CallIds,
    Cancel,
    Conversation,
    Line,
    Message,
    NewTools,
    Told,
    ToolAnswer,
)
from sidecar.chat.turns.endings import error_of, failed_of
from sidecar.chat.turns.events import Event, TurnFailed
from sidecar.chat.turns.game_tools import tools_from
from sidecar.chat.turns.loop import Planned
from sidecar.chat.turns.room import TurnRoom
from sidecar.chat.turns.showing import show_prompt
from sidecar.chat.turns.stream import Stream
from sidecar.chat.turns.tools import TurnTool
from sidecar.chat.turns.wire import event_to, failure_to, shown_to, turn_from, wordless_turn_from
from sidecar.errors import InvalidInput, LorekeeperError, Reason
from sidecar.gen.lorekeeper.v1 import chat_pb2
from sidecar.memory.tool_wire import tool_to
from sidecar.settings import ChatSettings
from sidecar.storage.keys import ActorId
from sidecar.wire import actor_from, state_to


class TurnService:
    """Turns with a language model."""

    details: ClassVar = {"Send": lambda error: failure_to(failed_of(error))}

    def __init__(self, room: TurnRoom, chat: ChatSettings) -> None:
        self._room = room
        self._parts = room.parts
        self._chat = chat

    async def BuildPrompt(self, request: chat_pb2.BuildPromptRequest, context: Any) -> chat_pb2.BuildPromptResponse:
        who = actor_from(request.actor)
        role = self._parts.roles.get(who.role)
        turn = wordless_turn_from(request.input, role, self._chat, self._parts.limits)
        shown = await show_prompt(self._parts, who, turn, tools_from(request.tools, role, "tools"))
        response = shown_to(shown, stable=turn.asked.system_prompt is None)
        if request.include_wire_json:
            response.wire_json = json.dumps(shown.body(), ensure_ascii=False)
        response.save.CopyFrom(self._state(who))
        return response

    async def Send(self, request: chat_pb2.SendRequest, context: Any) -> AsyncIterator[chat_pb2.SendResponse]:
        who = actor_from(request.actor)
        turn = turn_from(request.input, self._parts.roles.get(who.role), self._chat, self._parts.limits)
        stream = self._stream()
        turn_id, input_id = secrets.token_hex(8), turn.input_id

        async def tell(event: Event) -> None:
            await stream.tell(Told(turn_id, input_id, event))

        async def work() -> None:
            made = self._room.of(who).turn(turn, (), tell=tell, ask_game=_no_game, new_id=CallIds())
            await tell(await made.run())

        sequence = 0
        try:
            async for told in stream.read(work()):
                sequence += 1
                yield chat_pb2.SendResponse(save=self._state(who), event=_event(told, sequence))
        except TurnFailed as failed:
            raise _ended(failed) from failed

    async def Converse(
        self, requests: AsyncIterator[chat_pb2.ConverseRequest], context: Any
    ) -> AsyncIterator[chat_pb2.ConverseResponse]:
        who, tools = await self._opened(requests)
        turns, stream = self._room.of(who), self._stream()
        conversation = Conversation(tools=tools, turns=turns, tell=stream.tell, limits=self._parts.limits)
        yield chat_pb2.ConverseResponse(save=self._state(who), event=self._opening(who))
        sequence = 1
        async for told in stream.read(conversation.run(self._messages(requests, who))):
            sequence += 1
            yield chat_pb2.ConverseResponse(save=self._state(who), event=_event(told, sequence))

    async def _opened(self, requests: AsyncIterator[chat_pb2.ConverseRequest]) -> tuple[ActorId, Sequence[TurnTool]]:
        """The actor and the tools of the first message. Raises InvalidInput."""
        async for request in requests:
            if request.WhichOneof("message") != "open":
                break
            who = actor_from(request.open.actor, field="open.actor")
            return who, self._tools(request.open.tools, who, "open.tools")
        raise InvalidInput("the first message must be open", reason=Reason.FIELD_REQUIRED, field="open")

    async def _messages(
        self, requests: AsyncIterator[chat_pb2.ConverseRequest], who: ActorId
    ) -> AsyncIterator[Message]:
        """What the game says after the opening. Raises InvalidInput for what is no message at all."""
        async for request in requests:
            kind = request.WhichOneof("message")
            if kind == "line":
                yield self._line(request.line, who)
            elif kind == "tool_result":
                told = request.tool_result
                yield ToolAnswer(
                    told.call_id, GameAnswer(told.result, told.failed, "TOOL_FAILED" if told.failed else "")
                )
            elif kind == "cancel":
                yield Cancel(request.cancel.turn_id, request.cancel.drop_waiting)
            elif kind == "tools":
                yield NewTools(tuple(self._tools(request.tools.tools, who, "tools.tools")))
            else:
                raise InvalidInput(
                    "a message says nothing, or opens the conversation once more",
                    reason=Reason.FIELD_REQUIRED,
                    field=kind or "message",
                )

    def _line(self, message: chat_pb2.TurnInput, who: ActorId) -> Message:
        try:
            return Line(turn_from(message, self._parts.roles.get(who.role), self._chat, self._parts.limits))
        except LorekeeperError as error:
            return BadLine(message.input_id, failed_of(error))

    def _tools(self, messages: Sequence[chat_pb2.GameTool], who: ActorId, path: str) -> list[TurnTool]:
        return tools_from(messages, self._parts.roles.get(who.role), path)

    def _opening(self, who: ActorId) -> chat_pb2.TurnEvent:
        tools = list(map(tool_to, self._parts.toolbox.offered(who)))
        opened = chat_pb2.ConversationOpened(tools=tools, role_id=self._parts.roles.get(who.role).role_id)
        return chat_pb2.TurnEvent(sequence=1, conversation_opened=opened)

    def _stream(self) -> Stream[Told]:
        """Events of this call. It ends with the task that gRPC runs the call in: a call that is cancelled while an
        event is on its way out never comes back to the generator that made it."""
        stream: Stream[Told] = Stream(self._parts.background, most=self._parts.limits.max_waiting_events)
        call = asyncio.current_task()
        assert call is not None
        call.add_done_callback(lambda _: stream.end())
        return stream

    def _state(self, who: ActorId) -> Any:
        return state_to(self._parts.saves.state(who.save))


def _event(told: Told, sequence: int) -> chat_pb2.TurnEvent:
    return event_to(told.event, sequence=sequence, turn_id=told.turn_id, input_id=told.input_id)


def _ended(failed: TurnFailed) -> LorekeeperError:
    """The error that ends Send, with the whole story in its details."""
    error = error_of(failed.told)
    error.detail = failure_to(failed.told)
    error.retry_after_ms = failed.told.failure.retry_after_ms
    return error


async def _no_game(call: Planned) -> GameAnswer:
    return GameAnswer('{"ok": false, "error": "no game listens"}', failed=True, reason=GAME_GONE)
