"""A command's way to the running daemon: its handshake from ``daemon.json``, then ordinary gRPC calls."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import grpc

from sidecar.daemon.handshake import Handshake, read_file

_SECONDS = 10.0
_OPTIONS = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1))


@dataclass(frozen=True)
class Client:
    """Calls with the token and a deadline; failures end the command with the daemon's own words."""

    handshake: Handshake
    channel: grpc.Channel

    @property
    def metadata(self) -> Sequence[tuple[str, str]]:
        return (("authorization", f"Bearer {self.handshake.token}"),)

    def call(self, method: Any, request: Any, *, seconds: float = _SECONDS) -> Any:
        """The answer of a stub's method, for which it has so long. Raises click.ClickException."""
        try:
            return method(request, metadata=self.metadata, timeout=seconds)
        except grpc.RpcError as error:
            raise click.ClickException(f"{error.details()} ({error.code().name})") from error


def running(data_dir: Path) -> Handshake | None:
    """The handshake of the daemon that runs on the folder.

    None also where one that was killed left it: nobody would answer until the time is up.
    """
    found = read_file(data_dir)
    return found if found is not None and found.lives() else None


@contextmanager
def connected(data_dir: Path) -> Iterator[Client]:
    """A client of the daemon that runs on ``data_dir``. Raises click.ClickException where none does."""
    handshake = running(data_dir)
    if handshake is None:
        raise click.ClickException(f"no daemon runs on {data_dir}; {_start(data_dir)}")
    with grpc.insecure_channel(handshake.address, options=_OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_SECONDS)
        except grpc.FutureTimeoutError as error:
            raise click.ClickException(f"the daemon of {data_dir} does not answer; {_start(data_dir)}") from error
        yield Client(handshake, channel)


def _start(data_dir: Path) -> str:
    return f"start one with: lorekeeper serve --data-dir {shlex.quote(str(data_dir))}"
