"""Two hundred conversations open at once: nothing is lost, nothing comes out of order."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from turn_client import BACKEND, TurnClient

from sidecar.gen.lorekeeper.v1 import chat_pb2, chat_pb2_grpc, common_pb2

STREAMS = 200
TURNS = 2


async def converse(stub: Any, metadata: Any, number: int) -> list[chat_pb2.TurnEvent]:
    """All events of one conversation."""
    call = stub.Converse(metadata=metadata)
    actor = common_pb2.Actor(save_id="crowd", actor_id=f"actor {number}")
    await call.write(chat_pb2.ConverseRequest(open=chat_pb2.ConverseOpen(actor=actor)))
    for turn in range(TURNS):
        line = chat_pb2.TurnInput(text=f"line {turn} of {number}", backend_id=BACKEND)
        await call.write(chat_pb2.ConverseRequest(line=line))
    await call.done_writing()
    return [response.event async for response in call]


async def converse_all(address: str, token: str) -> list[list[chat_pb2.TurnEvent]]:
    metadata = (("authorization", f"Bearer {token}"),)
    async with grpc.aio.insecure_channel(address) as channel:
        stub = chat_pb2_grpc.ChatServiceStub(channel)
        return list(await asyncio.gather(*(converse(stub, metadata, number) for number in range(STREAMS))))


def test_every_stream_of_two_hundred_hears_its_own_events_whole_and_in_order(
    daemon: Any, actor: Any, server: Any
) -> None:
    TurnClient(daemon.client, actor, server)
    for number, events in enumerate(asyncio.run(converse_all(daemon.address, daemon.token))):
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        ends = [event.completed.text for event in events if event.HasField("completed")]
        assert ends == [f"You said: line {turn} of {number}" for turn in range(TURNS)]
