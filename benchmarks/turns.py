"""What a turn through the daemon costs beside the model server's own time, as ratios to a bare gRPC echo.

    python benchmarks/turns.py [--turns 300] [--streams 200] [--json]

The model server of this benchmark answers at once, so that all time is the daemon's: "added" is the time to the first
text through the daemon less the time to the first text straight from the server, heard by the same kind of client over
one connection that stays open. "Paced" are many streams at once whose server takes its time like a model: each word
tells when the server had the request and when it sent the word, so that what is left is what the daemon added.
"""

from __future__ import annotations

import argparse
import asyncio
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
THINKING_SECONDS, WORD_SECONDS = 2.0, 0.2
GOALS = {"added_ratio": 5.0, "stream_mb": 1.0, "paced_first_p99_ms": 100.0, "paced_word_p99_ms": 100.0}


async def serve() -> None:
    """A model server that says its words without thinking, unless its model is ``paced``; prints its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        while True:
            request = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(request.partition(b"content-length:")[2].split(b"\r\n")[0])
            paced = b'"model": "paced"' in await reader.readexactly(length)
            received = time.monotonic()
            writer.write(f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode())
            for number in range(WORDS):
                if paced:
                    await asyncio.sleep(WORD_SECONDS if number else THINKING_SECONDS)
                word = f"{received} {time.monotonic()}" if paced else "word "
                _send(writer, {"choices": [{"delta": {"content": word}}]})
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


async def straight(port: int, turns: int) -> float:
    """Median seconds to the first text straight from the server."""
    import httpx

    url, body = f"http://127.0.0.1:{port}/v1/chat/completions", {"model": "m", "messages": [], "stream": True}

    async def first(client: httpx.AsyncClient) -> float:
        began, seconds = time.perf_counter(), 0.0
        async with client.stream("POST", url, json=body) as response:
            async for _ in response.aiter_bytes():
                seconds = seconds or time.perf_counter() - began
        return seconds

    async with httpx.AsyncClient(trust_env=False) as client:
        for _ in range(20):
            await first(client)
        return statistics.median([await first(client) for _ in range(turns)])


class Talk:
    """One Converse stream, for one actor."""

    def __init__(self, stub, token, actor: str, *, persist: bool, model: str = "") -> None:
        self._said: SimpleQueue = SimpleQueue()
        self._model = model
        self._persist = persist
        who = common_pb2.Actor(actor_id=actor, role_id="Merchant")
        self._said.put(chat_pb2.ConverseRequest(open=chat_pb2.ConverseOpen(actor=who)))
        self.events = stub.Converse(iter(self._said.get, None), metadata=token)
        next(self.events)

    def turn(self) -> tuple[float, list[int]]:
        """Seconds to the first text, and the numbers of all events."""
        began, first, numbers = time.perf_counter(), 0.0, []
        for event in self._events_of_a_turn():
            numbers.append(event.sequence)
            if event.HasField("text") and not first:
                first = time.perf_counter() - began
        return first, numbers

    def paced_turn(self) -> list[float]:
        """For each word the seconds that the daemon added: to the first one also on the way to the server."""
        began, added = time.monotonic(), []
        for event in self._events_of_a_turn():
            if event.HasField("text"):
                received, sent = map(float, event.text.text.split())
                added.append(time.monotonic() - sent + (0 if added else received - began))
        return added

    def _events_of_a_turn(self):
        text = f"Hello {time.monotonic()}"
        line = chat_pb2.TurnInput(text=text, backend_id="bench", persist=self._persist, model=self._model)
        self._said.put(chat_pb2.ConverseRequest(line=line))
        for response in self.events:
            yield response.event
            kind = response.event.WhichOneof("event")
            if kind == "completed":
                return
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


def paced_streams(stub, token, streams: int, turns: int) -> tuple[list[float], list[float]]:
    """Seconds that the daemon added to the first words, and to all later ones; the streams begin one after another."""
    talks = [Talk(stub, token, f"paced {number}", persist=False, model="paced") for number in range(streams)]
    firsts: list[float] = []
    others: list[float] = []

    def play(number: int, talk: Talk) -> None:
        time.sleep(number / streams * (THINKING_SECONDS + WORDS * WORD_SECONDS))
        for _ in range(turns):
            first, *rest = talk.paced_turn()
            firsts.append(first)
            others.extend(rest)
        talk.end()

    threads = [threading.Thread(target=play, args=each) for each in enumerate(talks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return firsts, others


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
        floor, direct = p50(lambda: echo(b"x" * 700), 1_000), asyncio.run(straight(port, turns))
        through = one_stream(stub, token, turns, persist=False)
        durable = statistics.median(one_stream(stub, token, turns, persist=True))
        before = psutil.Process(process.pid).memory_info().rss
        began = time.perf_counter()
        crowd = many_streams(stub, token, streams, 5)
        took = time.perf_counter() - began
        resident = psutil.Process(process.pid).memory_info().rss
        firsts, words = paced_streams(stub, token, streams, 2)
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
        "paced_first_p50_ms": statistics.median(firsts) * 1_000,
        "paced_first_p99_ms": statistics.quantiles(firsts, n=100)[98] * 1_000,
        "paced_word_p50_ms": statistics.median(words) * 1_000,
        "paced_word_p99_ms": statistics.quantiles(words, n=100)[98] * 1_000,
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
