"""Conversations of the daemon, as ratios to floors that are taken in the same run.

    python benchmarks/chat.py [--calls 500] [--json]

Floors: a bare grpc.aio echo, one append with fsync. Goals are those of the design.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from pathlib import Path

import grpc
from daemon import daemon, echo_server, fsync_floor, p50, timed

from sidecar.chat.history_store import HistoryStore
from sidecar.chat.rows import Row, message_kind
from sidecar.gen.lorekeeper.v1 import chat_pb2, chat_pb2_grpc, common_pb2
from sidecar.settings import ChatSettings
from sidecar.storage.actors import Actors
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.keys import actor_id
from sidecar.storage.save_state import SaveStates

LINE = "We keep the lantern lit until the last ship is in, as we always did, number {}."
GOALS = {
    "build_prompt_ratio": 3.0,
    "build_prompt_after_append_ratio": 3.0,
    "list_messages_ratio": 1.5,
    "append_ratio": 1.0,
    "append_at_cap_ratio": 1.0,
    "open_2000_rows_ms": 30.0,
}


def over_the_socket(times: int) -> dict[str, float]:
    """Prompts, pages and appends of one actor against the floors."""
    with (
        tempfile.TemporaryDirectory() as folder,
        echo_server() as echo,
        daemon(Path(folder)) as (handshake, _, _),
        grpc.insecure_channel(handshake["address"]) as channel,
    ):
        stub = chat_pb2_grpc.ChatServiceStub(channel)
        token = (("authorization", f"Bearer {handshake['token']}"),)
        mira, bo = (common_pb2.Actor(actor_id=name, role_id="SmartChat") for name in ("mira", "bo"))
        numbers = itertools.count()

        def append(actor: common_pb2.Actor, count: int = 1, persist: bool = True) -> None:
            messages = [chat_pb2.NewMessage(role="user", content=LINE.format(next(numbers))) for _ in range(count)]
            request = chat_pb2.AppendMessagesRequest(actor=actor, messages=messages, persist=persist)
            stub.AppendMessages(request, metadata=token)

        def build() -> None:
            turn = chat_pb2.TurnInput(text="And now?", context_tokens=4_000 * 4 // 3)
            stub.BuildPrompt(chat_pb2.BuildPromptRequest(actor=mira, input=turn), metadata=token)

        def built_after_append() -> float:
            append(mira, persist=False)
            return timed(build)

        def read() -> None:
            stub.ListMessages(chat_pb2.ListMessagesRequest(actor=mira, page_size=30), metadata=token)

        append(mira, 500)
        floor = p50(lambda: echo(b"x" * 700), times)
        durable = 2 * floor + fsync_floor(Path(folder))
        return {
            "echo_ms": floor * 1_000,
            "append_floor_ms": durable * 1_000,
            "append_ratio": p50(lambda: append(bo), min(times, 300)) / durable,
            "append_at_cap_ratio": p50(lambda: append(mira), min(times, 300)) / durable,
            "list_messages_ratio": p50(read, times) / floor,
            "build_prompt_ratio": p50(build, times) / floor,
            "build_prompt_after_append_ratio": statistics.median(built_after_append() for _ in range(100)) / floor,
        }


def opening() -> dict[str, float]:
    """Reading a history of 2,000 rows from the disk."""
    with tempfile.TemporaryDirectory() as folder:
        disk = FileDisk(Path(folder))
        who = actor_id(actor="mira")

        def store() -> HistoryStore:
            return HistoryStore(disk, Actors(disk), SaveStates(disk), ChatSettings(), lambda diagnostic: None)

        rows = [Row(message_kind("user"), "user", LINE.format(number)) for number in range(2_000)]
        disk.make_folder(disk.root)
        store().append(who, rows, messages=True)
        spent = []
        for _ in range(15):
            fresh = store()
            began = time.perf_counter()
            fresh.read(who)
            spent.append(time.perf_counter() - began)
        return {"open_2000_rows_ms": statistics.median(spent) * 1_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {**over_the_socket(options.calls), **opening()}
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        goal = GOALS.get(name)
        print(f"{name:34} {value:9.3f}" + (f"   goal {goal:g}   {'ok' if value <= goal else 'MISSED'}" if goal else ""))


if __name__ == "__main__":
    main()
