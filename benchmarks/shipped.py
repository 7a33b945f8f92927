"""A built program against the same daemon unbuilt: start and idle memory without a model, in one run.

python benchmarks/shipped.py dist/lorekeeper/lorekeeper [--rounds 9] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc
import psutil
from grpc_health.v1 import health_pb2, health_pb2_grpc

UNBUILT = Path(sys.executable).with_name("lorekeeper")


def started(program: Path) -> tuple[float, float]:
    """Seconds until the daemon answers SERVING, and its resident megabytes a moment later, all rooms open."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        command = [str(program), "serve", "--stdin-lifeline", "--data-dir", folder]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "LOREKEEPER_EMBEDDING_MODEL": "none"},
        )
        with grpc.insecure_channel(json.loads(process.stdout.readline())["address"]) as channel:
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        seconds = time.perf_counter() - began
        time.sleep(1.5)
        resident = psutil.Process(process.pid).memory_info().rss / 1e6
        process.stdin.close()
        process.wait()
        process.stdout.close()
        return seconds, resident


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pairs = [(started(UNBUILT), started(options.program.resolve())) for _ in range(options.rounds)]
    unbuilt, built = (statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
    unbuilt_mb, built_mb = (statistics.median(pair[i][1] for pair in pairs) for i in (0, 1))
    measured = {
        "unbuilt_serving_ms": unbuilt * 1_000,
        "built_serving_ms": built * 1_000,
        "serving_ratio": built / unbuilt,
        "unbuilt_mb": unbuilt_mb,
        "built_mb": built_mb,
    }
    if options.json:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        goal = "goal at most 1.2" if name == "serving_ratio" else ""
        print(f"{name:<22}{value:>10.2f}   {goal}")


if __name__ == "__main__":
    main()
