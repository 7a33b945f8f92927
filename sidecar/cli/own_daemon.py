"""A daemon of a command's own, in another process, for as long as the command needs it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from sidecar.cli.client import Client, connected


@contextmanager
def own_daemon(folder: Path, *arguments: str) -> Iterator[tuple[Client, float]]:
    """A client of a daemon on ``folder``, and the seconds that its start took. Raises click.ClickException."""
    command = [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "sidecar"]
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "serve", "--data-dir", str(folder), "--stdin-lifeline", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout
    try:
        if not process.stdout.readline():
            raise click.ClickException("the daemon did not start; run 'lorekeeper serve' to see why")
        seconds = time.perf_counter() - began
        with connected(folder) as client:
            yield client, seconds
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()
