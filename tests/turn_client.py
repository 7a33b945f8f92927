"""Turns as a game plays them: events of Send by kind, and a Converse stream in which both sides speak."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from client import Client
from google.rpc import status_pb2
from wire_server import WireServer

from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2, chat_pb2_grpc, common_pb2, role_pb2

SECONDS = 30.0
BACKEND = "scripted"


class TurnClient:
    """ChatService of one daemon, for one actor with a role of its own, and one scripted server."""

    def __init__(
        self, client: Client, actor: common_pb2.Actor, server: WireServer | None = None, **backend: Any
    ) -> None:
        self.stub = chat_pb2_grpc.ChatServiceStub(client.channel)
        self.actor = common_pb2.Actor(save_id=actor.save_id, actor_id=actor.actor_id, role_id=actor.actor_id)
        if server is not None:
            self.put_backend(base_url=server.base_url, **backend)

    def put_backend(self, backend_id: str = BACKEND, **values: Any) -> backend_pb2.BackendInfo:
        values = {"model": "scripted", "context_tokens": 8_192, **values}
        backend = backend_pb2.Backend(backend_id=backend_id, **values)
        return self.stub.PutBackend(chat_pb2.PutBackendRequest(backend=backend)).backend

    def put_role(self, **values: Any) -> None:
        values = {"backend_id": BACKEND, "persist_history": True, **values}
        role = role_pb2.Role(role_id=self.actor.role_id, **values)
        self.stub.PutRole(chat_pb2.PutRoleRequest(role=role))

    def send(self, text: str, **values: Any) -> Turn:
        """A turn to its end. Its failure is in ``failed``."""
        turn = Turn()
        try:
            for response in self.start(text, **values):
                turn.add(response.event)
        except grpc.RpcError as error:
            turn.error = error
        return turn

    def start(self, text: str, **values: Any) -> Any:
        """The stream of a turn, to be read or cancelled."""
        values = {"backend_id": BACKEND, "persist": True, **values}
        return self.stub.Send(chat_pb2.SendRequest(actor=self.actor, input=chat_pb2.TurnInput(text=text, **values)))

    def converse(self, *tools: chat_pb2.GameTool) -> Talk:
        """An open conversation, past its opening."""
        talk = Talk(self.stub)
        talk.say(open=chat_pb2.ConverseOpen(actor=self.actor, tools=tools))
        talk.opened = talk.next()
        return talk

    def messages(self) -> list[tuple[str, str]]:
        listed = self.stub.ListMessages(chat_pb2.ListMessagesRequest(actor=self.actor))
        return [(message.role, message.content) for message in listed.messages]

    def append(self, *messages: tuple[str, str]) -> None:
        """Messages of the past: role and content of each."""
        told = [chat_pb2.NewMessage(role=role, content=content) for role, content in messages]
        self.stub.AppendMessages(chat_pb2.AppendMessagesRequest(actor=self.actor, messages=told))

    def transcript(self) -> list[tuple[str, str, str]]:
        """Kind, key and content of each row."""
        listed = self.stub.ListTranscript(chat_pb2.ListTranscriptRequest(actor=self.actor))
        return [
            (chat_pb2.TranscriptKind.Name(row.kind).removeprefix("TRANSCRIPT_KIND_"), row.key, row.content)
            for row in listed.entries
        ]


class Turn:
    """The events of one turn."""

    def __init__(self) -> None:
        self.events: list[chat_pb2.TurnEvent] = []
        self.error: Any = None

    def add(self, event: chat_pb2.TurnEvent) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [event.WhichOneof("event") for event in self.events]

    def all(self, kind: str) -> list[Any]:
        return [getattr(event, kind) for event in self.events if event.WhichOneof("event") == kind]

    @property
    def started(self) -> chat_pb2.TurnStarted:
        return self.all("started")[0]

    @property
    def completed(self) -> chat_pb2.TurnCompleted:
        assert self.error is None, self.error
        return self.all("completed")[0]

    @property
    def deltas(self) -> list[str]:
        return [delta.text for delta in self.all("text")]

    @property
    def warnings(self) -> list[str]:
        prefix = "TURN_WARNING_CODE_"
        return [chat_pb2.TurnWarningCode.Name(each.code).removeprefix(prefix) for each in self.all("warning")]

    @property
    def failed(self) -> chat_pb2.TurnFailure:
        """The failure of Converse, or of Send from its status."""
        told = self.all("turn_failed")
        if told:
            return told[0]
        assert self.error is not None, self.kinds
        trailers = dict(self.error.trailing_metadata() or ())
        status = status_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b""))
        failure = chat_pb2.TurnFailure()
        assert any(detail.Unpack(failure) for detail in status.details), self.error
        return failure

    @property
    def code(self) -> str:
        return chat_pb2.TurnFailureCode.Name(self.failed.code).removeprefix("TURN_FAILURE_CODE_")


class Talk:
    """One Converse stream."""

    def __init__(self, stub: Any) -> None:
        self._said: queue.Queue[chat_pb2.ConverseRequest | None] = queue.Queue()
        self._heard: queue.Queue[Any] = queue.Queue()
        self.call = stub.Converse(self._requests())
        self.opened: chat_pb2.TurnEvent = chat_pb2.TurnEvent()
        self.sequences: list[int] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, **message: Any) -> None:
        self._said.put(chat_pb2.ConverseRequest(**message))

    def line(self, text: str, **values: Any) -> None:
        values = {"backend_id": BACKEND, "persist": True, **values}
        self.say(line=chat_pb2.TurnInput(text=text, **values))

    def answer(self, call_id: str, result: str = '{"ok": true}', *, failed: bool = False) -> None:
        self.say(tool_result=chat_pb2.GameToolResult(call_id=call_id, result=result, failed=failed))

    def done(self) -> None:
        """The game has said its last word."""
        self._said.put(None)

    def next(self) -> chat_pb2.TurnEvent:
        """The next event; a call that has ended is raised."""
        event = self._heard.get(timeout=SECONDS)
        if isinstance(event, BaseException):
            raise event
        assert event is not None, "the conversation is over"
        self.sequences.append(event.sequence)
        return event

    def until(self, *kinds: str) -> chat_pb2.TurnEvent:
        """The next event of one of these kinds; others are passed over."""
        while (event := self.next()).WhichOneof("event") not in kinds:
            pass
        return event

    def turn(self, answer: Callable[[chat_pb2.ToolCallEvent], str] | None = None) -> Turn:
        """The events up to the end of the turn that runs; ``answer`` is what the game's tools do."""
        turn = Turn()
        while not turn.events or turn.kinds[-1] not in ("completed", "turn_failed"):
            event = self.next()
            turn.add(event)
            called = event.tool_call if event.WhichOneof("event") == "tool_call" else None
            if called and called.origin == chat_pb2.TOOL_ORIGIN_GAME and answer:
                self.answer(called.call_id, answer(called))
        return turn

    def over(self) -> bool:
        """Whether the daemon has ended the stream."""
        return self._heard.get(timeout=SECONDS) is None

    def _requests(self) -> Iterator[chat_pb2.ConverseRequest]:
        while (request := self._said.get()) is not None:
            yield request

    def _listen(self) -> None:
        try:
            for response in self.call:
                self._heard.put(response.event)
            self._heard.put(None)
        except grpc.RpcError as error:
            self._heard.put(error)


def tool(name: str, *, parameters: str = "", mutating: bool = False, **more: Any) -> chat_pb2.GameTool:
    return chat_pb2.GameTool(
        name=name, description=f"Does {name}.", parameters_json=parameters, mutating=mutating, **more
    )
