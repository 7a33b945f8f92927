"""Start, memory and latency of the daemon, as ratios to floors that are taken in the same run.

    python benchmarks/daemon.py [--rounds 9] [--calls 2000] [--json]

Floors: ``python -c "import grpc"``, a bare grpc.aio echo, one append with fsync. Goals are those of the design.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import grpc
import psutil

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, memory_pb2_grpc

ECHO = """
import asyncio, grpc
async def echo(request, context):
    return request
async def main():
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    method = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("floor.Echo", {"Echo": method}),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()
asyncio.run(main())
"""
MIRA = common_pb2.Actor(actor_id="mira", role_id="Merchant")


@contextmanager
def echo_server():
    """The floor of a call: its channel's method, in another process."""
    process = subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
            yield channel.unary_unary("/floor.Echo/Echo")
    finally:
        process.kill()
        process.wait()


@contextmanager
def daemon(folder: Path, *arguments: str):
    """A daemon without a model on ``folder``: its handshake, its process and the seconds until the line was there."""
    command = [str(Path(sys.executable).with_name("lorekeeper")), "serve", "--stdin-lifeline", *arguments]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--data-dir", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "LOREKEEPER_EMBEDDING_MODEL": "none"},
    )
    line = process.stdout.readline()
    seconds = time.perf_counter() - began
    try:
        yield json.loads(line), process, seconds
    finally:
        process.stdin.close()
        process.wait()


def p50(call, times: int) -> float:
    """Median seconds of ``call``, after a warm-up."""
    for _ in range(max(20, times // 10)):
        call()
    return statistics.median(timed(call) for _ in range(times))


def timed(call) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def fsync_floor(folder: Path) -> float:
    """Median seconds of one append with fsync."""
    descriptor = os.open(folder / "floor", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def append() -> None:
        os.write(descriptor, b"x" * 300)
        os.fsync(descriptor)

    try:
        return p50(append, 200)
    finally:
        os.close(descriptor)


def starts(rounds: int) -> dict[str, float]:
    """Start to the handshake line and to a SERVING answer, against importing grpc."""
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    floors, lines, serving = [], [], []
    for _ in range(rounds):
        floors.append(timed(lambda: subprocess.run([sys.executable, "-c", "import grpc"], check=True)))
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            with daemon(Path(folder)) as (handshake, _, seconds):
                lines.append(seconds)
                with grpc.insecure_channel(handshake["address"]) as channel:
                    health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
                serving.append(time.perf_counter() - began)
    floor = statistics.median(floors)
    return {
        "import_grpc_ms": floor * 1_000,
        "start_ratio": statistics.median(lines) / floor,
        "serving_ratio": statistics.median(serving) / floor,
    }


def calls(times: int) -> dict[str, float]:
    """Memory of an idle daemon, and reading and editing a document against a bare echo."""
    with (
        tempfile.TemporaryDirectory() as folder,
        echo_server() as echo,
        daemon(Path(folder)) as (handshake, process, _),
        grpc.insecure_channel(handshake["address"]) as channel,
    ):
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        token = (("authorization", f"Bearer {handshake['token']}"),)
        texts = itertools.cycle(("hello " * 100, "hullo " * 100))

        def edit() -> None:
            write = memory_pb2.Edit(write=memory_pb2.Write(content=next(texts)))
            stub.EditDocument(memory_pb2.EditDocumentRequest(actor=MIRA, edits=[write]), metadata=token)

        edit()
        resident = psutil.Process(process.pid).memory_info().rss
        floor = p50(lambda: echo(b"x" * 700), times)
        read = p50(lambda: stub.GetDocument(memory_pb2.GetDocumentRequest(actor=MIRA), metadata=token), times)
        return {
            "resident_mb": resident / 1e6,
            "echo_ms": floor * 1_000,
            "get_document_ratio": read / floor,
            "edit_document_ms": p50(edit, 200) * 1_000,
            "fsync_ms": fsync_floor(Path(folder)) * 1_000,
            "idle_cpu_percent": idle_cpu(process.pid),
        }


def idle_cpu(pid: int, seconds: float = 5.0) -> float:
    """Share of one core that the daemon takes while nobody calls."""
    return psutil.Process(pid).cpu_percent(seconds)


GOALS = {
    "start_ratio": 1.5,
    "serving_ratio": 1.5,
    "resident_mb": 60.0,
    "get_document_ratio": 1.5,
    "idle_cpu_percent": 1.0,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured = starts(options.rounds) | calls(options.calls)
    if options.json:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        goal = f"goal under {GOALS[name]:g}" if name in GOALS else ""
        print(f"{name:<22}{value:>10.2f}   {goal}")


if __name__ == "__main__":
    main()
