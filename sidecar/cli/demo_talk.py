"""The second act of ``demo``: a conversation with Mira, by a model server or by her own lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import click
import grpc

from sidecar.cli.client import Client
from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2, chat_pb2_grpc, common_pb2, role_pb2

LINES = ("Good evening, Mira. I am Ada, just off the ship.", "Could you open the back door for me?")
GATE = chat_pb2.GameTool(
    name="open_door",
    description="Opens a door of the shop.",
    parameters_json='{"type":"object","properties":{"door":{"type":"string"}},"required":["door"]}',
    mutating=True,
)
_OFFLINE_LINES = (
    "Good evening, Ada. Mind the step, and do not touch the lamps.",
    "The back door stays shut after dark. Come back in the morning.",
)
_SECONDS = 300.0
_BACKEND = "demo"


class Talk:
    """Plays lines in one Converse stream. ``begin`` is told who speaks, ``say`` each piece of text."""

    def __init__(self, client: Client, actor: common_pb2.Actor, *, url: str, model: str) -> None:
        self._stub = chat_pb2_grpc.ChatServiceStub(client.channel)
        self._metadata = client.metadata
        self._actor = actor
        self._backend = _BACKEND if url else "offline"
        self._prepare(url, model)

    def play(self, show: Callable[[str], None], step: Callable[[str, float, str], None]) -> None:
        """Say each line and show the answer as it comes. Raises click.ClickException."""
        said: SimpleQueue[chat_pb2.ConverseRequest | None] = SimpleQueue()
        said.put(chat_pb2.ConverseRequest(open=chat_pb2.ConverseOpen(actor=self._actor, tools=[GATE])))
        try:
            events = self._stub.Converse(_requests(said), metadata=self._metadata, timeout=_SECONDS)
            for line in LINES:
                show(f"\n  Ada:  {line}\n  Mira: ")
                began = time.perf_counter()
                text = chat_pb2.TurnInput(text=line, backend_id=self._backend, persist=True)
                said.put(chat_pb2.ConverseRequest(line=text))
                step("Converse", began, _turn(events, said, show))
            said.put(None)
        except grpc.RpcError as error:
            raise click.ClickException(f"{error.details()} ({error.code().name})") from error

    def _prepare(self, url: str, model: str) -> None:
        role = role_pb2.Role(
            role_id=self._actor.role_id, offline_lines=_OFFLINE_LINES, system_prompt="You are Mira, who sells lamps."
        )
        try:
            self._stub.PutRole(chat_pb2.PutRoleRequest(role=role), metadata=self._metadata)
            if url:
                backend = backend_pb2.Backend(backend_id=_BACKEND, base_url=url, model=model or self._first_model(url))
                self._stub.PutBackend(chat_pb2.PutBackendRequest(backend=backend), metadata=self._metadata)
        except grpc.RpcError as error:
            raise click.ClickException(f"{error.details()} ({error.code().name})") from error

    def _first_model(self, url: str) -> str:
        request = chat_pb2.ProbeBackendRequest(backend=backend_pb2.Backend(base_url=url))
        found = self._stub.ProbeBackend(request, metadata=self._metadata)
        if not found.model:
            words = " ".join(f"{problem.message} {problem.advice}" for problem in found.problems[:1])
            raise click.ClickException(f"{url} cannot be used. {words}")
        return str(found.model)


def _requests(said: SimpleQueue[chat_pb2.ConverseRequest | None]) -> Iterator[chat_pb2.ConverseRequest]:
    while (request := said.get()) is not None:
        yield request


def _turn(events: Any, said: SimpleQueue[chat_pb2.ConverseRequest | None], show: Callable[[str], None]) -> str:
    """One turn to its end; how it went, in a few words."""
    for response in events:
        kind = response.event.WhichOneof("event")
        event = getattr(response.event, kind)
        if kind == "text":
            show(event.text)
        elif kind == "tool_call":
            show(f"[{event.name} {event.arguments_json}] ")
            if event.origin == chat_pb2.TOOL_ORIGIN_GAME:
                done = chat_pb2.GameToolResult(call_id=event.call_id, result='{"ok": true}')
                said.put(chat_pb2.ConverseRequest(tool_result=done))
        elif kind == "completed":
            show("\n")
            return f"{event.model}: {event.roundtrips} request(s), {event.tool_calls} tool call(s)"
        elif kind == "turn_failed":
            raise click.ClickException(event.message)
    raise click.ClickException("the daemon ended the conversation")
