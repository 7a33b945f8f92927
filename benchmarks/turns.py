"""What a turn through the daemon costs beside the model server's own time, as ratios to a bare gRPC echo.

    python benchmarks/turns.py [--turns 300] [--streams 200] [--json]

The model server of this benchmark answers at once, so that all time is the daemon's: "added" is the time to the first
text through the daemon less the time to the first text straight from the server, over one connection that stays open.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import grpc
import psutil
from daemon import daemon, echo_server, p50

from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2, chat_pb2_grpc, common_pb2

WORDS = 20
GOALS = {"added_ratio": 5.0, "stream_mb": 1.0}


async def serve() -> None:
    """A model server that says its words without thinking; prints its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        while True:
            request = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(request.partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode())
            for _ in range(WORDS):
                _send(writer, {"choices": [{"delta": {"content": "word "}}]})
            _send(writer, {"choices": [{"delta": {}, "finish_reason": "stop"}]})
            writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _send(writer: asyncio.StreamWriter, value: dict) -> None:
    event = f"data: {json.dumps(value)}\n\n".encode()
    writer.write(b"%x\r\n%s\r\n" % (len(event), event))


@contextmanager
def model_server():
    """The server in a process of its own; its port."""
    process = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def straight(port: int, turns: int) -> float:
    """Median seconds to the first text straight from the server."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": True})

    def first() -> float:
        began = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        response = connection.getresponse()
        response.readline()
        seconds = time.perf_counter() - began
        response.read()
        return seconds

    for _ in range(20):
        first()
    return statistics.median(first() for _ in range(turns))


class Talk:
    """One Converse stream, for one actor."""

    def __init__(self, stub, token, actor: str, *, persist: bool) -> None:
        self._said: SimpleQueue = SimpleQueue()
        self._persist = persist
        who = common_pb2.Actor(actor_id=actor, role_id="Merchant")
        self._said.put(chat_pb2.ConverseRequest(open=chat_pb2.ConverseOpen(actor=who)))
        self.events = stub.Converse(iter(self._said.get, None), metadata=token)
        next(self.events)

    def turn(self) -> tuple[float, list[int]]:
        """Seconds to the first text, and the numbers of all events."""
        began, first, numbers = time.perf_counter(), 0.0, []
        line = chat_pb2.TurnInput(text=f"Hello {began}", backend_id="bench", persist=self._persist)
        self._said.put(chat_pb2.ConverseRequest(line=line))
        for response in self.events:
            numbers.append(response.event.sequence)
            kind = response.event.WhichOneof("event")
            if kind == "text" and not first:
                first = time.perf_counter() - began
            if kind == "completed":
                return first, numbers
            assert kind != "turn_failed", response.event.turn_failed
        raise AssertionError("the conversation ended")

    def end(self) -> None:
        self._said.put(None)


def one_stream(stub, token, turns: int, *, persist: bool) -> list[float]:
    talk = Talk(stub, token, f"one {persist}", persist=persist)
    for _ in range(20):
        talk.turn()
    seconds = [talk.turn()[0] for _ in range(turns)]
    talk.end()
    return seconds


def many_streams(stub, token, streams: int, turns: int) -> list[float]:
    """Seconds to the first text of all turns; every stream's events must come whole and in order."""
    talks = [Talk(stub, token, f"actor {number}", persist=False) for number in range(streams)]
    seconds: list[float] = []

    def play(talk: Talk) -> None:
        numbers = [1]
        for _ in range(turns):
            first, more = talk.turn()
            seconds.append(first)
            numbers += more
        assert numbers == list(range(1, len(numbers) + 1)), "events were lost or came out of order"
        talk.end()

    threads = [threading.Thread(target=play, args=(talk,)) for talk in talks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seconds) == streams * turns
    return seconds


def measure(turns: int, streams: int) -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory() as folder,
        echo_server() as echo,
        model_server() as port,
        daemon(Path(folder)) as (handshake, process, _),
        grpc.insecure_channel(handshake["address"]) as channel,
    ):
        stub = chat_pb2_grpc.ChatServiceStub(channel)
        token = (("authorization", f"Bearer {handshake['token']}"),)
        backend = backend_pb2.Backend(
            backend_id="bench", base_url=f"http://127.0.0.1:{port}/v1", model="m", context_tokens=8_192
        )
        stub.PutBackend(chat_pb2.PutBackendRequest(backend=backend), metadata=token)
        floor, direct = p50(lambda: echo(b"x" * 700), 1_000), straight(port, turns)
        through = one_stream(stub, token, turns, persist=False)
        durable = statistics.median(one_stream(stub, token, turns, persist=True))
        before = psutil.Process(process.pid).memory_info().rss
        began = time.perf_counter()
        crowd = many_streams(stub, token, streams, 5)
        took = time.perf_counter() - began
        resident = psutil.Process(process.pid).memory_info().rss
    added = statistics.median(through) - direct
    return {
        "echo_ms": floor * 1_000,
        "straight_ms": direct * 1_000,
        "added_ms": added * 1_000,
        "added_ratio": added / floor,
        "added_p99_ms": (statistics.quantiles(through, n=100)[98] - direct) * 1_000,
        "added_durable_ms": (durable - direct) * 1_000,
        "streams_turns_per_second": len(crowd) / took,
        "streams_first_text_p50_ms": statistics.median(crowd) * 1_000,
        "streams_first_text_p99_ms": statistics.quantiles(crowd, n=100)[98] * 1_000,
        "stream_mb": (resident - before) / 1e6 / streams,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    measured = measure(options.turns, options.streams)
    if options.json:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        goal = f"goal under {GOALS[name]:g}" if name in GOALS else ""
        print(f"{name:<28}{value:>10.2f}   {goal}")


if __name__ == "__main__":
    main()
