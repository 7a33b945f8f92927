"""``status``, ``stop`` and ``token``: about the daemon that runs on a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sidecar.cli.client import connected
from sidecar.cli.options import as_json, data_dir

if TYPE_CHECKING:
    from sidecar.daemon.lifeline import OtherProcess

# Longer than the longest daemon.drain_seconds.
_MOST_SECONDS = 330
_LOOK_SECONDS = 0.05


@click.command()
@data_dir
@as_json
def status(data_dir: Path, as_json: bool) -> None:
    """Tell what the daemon on a data folder is doing. Ends with 1 where none runs."""
    from sidecar.gen.lorekeeper.v1 import system_pb2, system_pb2_grpc

    with connected(data_dir) as client:
        system = system_pb2_grpc.SystemServiceStub(client.channel)
        info = client.call(system.GetInfo, system_pb2.GetInfoRequest())
        stats = client.call(system.GetStats, system_pb2.GetStatsRequest())
    value = {
        "address": client.handshake.address,
        "pid": info.pid,
        "version": info.version,
        "contract": info.contract_version,
        "data_dir": info.data_dir,
        "persistent": info.persistent,
        "uptime_seconds": round(stats.uptime_seconds, 1),
        "resident_mb": round(stats.resident_bytes / 1_000_000, 1),
        "cpu_seconds": round(stats.cpu_seconds, 2),
        "running_calls": stats.running_calls,
    }
    methods = [
        {"method": m.method, "count": m.count, "errors": m.errors, "p50_ms": m.p50_ms, "p99_ms": m.p99_ms}
        for m in stats.methods
    ]
    if as_json:
        click.echo(json.dumps(value | {"counts": dict(stats.counts), "methods": methods}))
    else:
        _show_status(value | dict(stats.counts), methods)


def _show_status(value: Mapping[str, Any], methods: Sequence[Mapping[str, Any]]) -> None:
    for name, shown in value.items():
        click.echo(f"{name.replace('_', ' '):<16}{shown}")
    for m in methods:
        click.echo(
            f"  {m['method']:<40}{m['count']:>8} calls{m['errors']:>6} failed"
            f"{m['p50_ms']:>9.2f} ms p50{m['p99_ms']:>9.2f} ms p99"
        )


@click.command()
@data_dir
@as_json
def stop(data_dir: Path, as_json: bool) -> None:
    """Ask the daemon on a data folder to end, and wait until it has."""
    from sidecar.daemon.lifeline import OtherProcess
    from sidecar.gen.lorekeeper.v1 import system_pb2, system_pb2_grpc

    with connected(data_dir) as client:
        daemon = OtherProcess.find(client.handshake.pid)
        system = system_pb2_grpc.SystemServiceStub(client.channel)
        answer = client.call(system.Shutdown, system_pb2.ShutdownRequest(reason="lorekeeper stop"))
    if daemon is not None:
        _wait_for_end_of(daemon)
    if as_json:
        click.echo(json.dumps({"stopped": client.handshake.pid, "running_calls": answer.running_calls}))
    else:
        click.echo(f"The daemon (process {client.handshake.pid}) has ended.")


def _wait_for_end_of(daemon: OtherProcess) -> None:
    deadline = time.monotonic() + _MOST_SECONDS
    while daemon.lives():
        if time.monotonic() > deadline:
            raise click.ClickException(
                f"the daemon (process {daemon.pid}) has not ended after {_MOST_SECONDS} seconds; see its log"
            )
        time.sleep(_LOOK_SECONDS)


@click.command()
@data_dir
@as_json
def token(data_dir: Path, as_json: bool) -> None:
    """Print the token of the running daemon, for 'grpcurl -H "authorization: Bearer $(lorekeeper token)"'."""
    with connected(data_dir) as client:
        handshake = client.handshake
    click.echo(handshake.line() if as_json else handshake.token)
