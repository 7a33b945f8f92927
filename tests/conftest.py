"""What all tests share: daemons in processes of their own, and actors that nobody else uses."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_client import Chat
from client import Client
from daemon_process import DaemonProcess
from hypothesis import HealthCheck, settings
from turn_client import TurnClient
from wire_server import WireServer

from sidecar.gen.lorekeeper.v1 import common_pb2

# How fast examples are made says nothing on a busy machine, and a change is judged by the same examples as the one
# before it; ``--hypothesis-profile=search`` looks for new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeat", settings.get_profile("search"), derandomize=True)
settings.load_profile("repeat")


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Callable[..., DaemonProcess]]:
    """Makes daemons that are not started yet, on ``<tmp>/data`` unless told otherwise, and ends them all."""
    with contextlib.ExitStack() as ending:

        def make(*arguments: str, folder: Path | None = None, **more: Any) -> DaemonProcess:
            daemon = DaemonProcess(folder or tmp_path / "data", *arguments, stderr=tmp_path / "stderr.txt", **more)
            ending.callback(daemon.close)
            return daemon

        yield make


@pytest.fixture
def start_daemon(make_daemon: Callable[..., DaemonProcess]) -> Callable[..., DaemonProcess]:
    """Starts daemons: ``start_daemon("--set", "memory.max_versions=3", folder=…, environment=…)``."""
    return lambda *arguments, **more: make_daemon(*arguments, **more).start()


@pytest.fixture
def daemon(start_daemon: Callable[..., DaemonProcess]) -> DaemonProcess:
    """A daemon of this test alone, on an empty folder: it may be killed, stopped and restarted."""
    return start_daemon()


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """One daemon for all tests of a module, which keep to their own ``actor`` and leave it running."""
    folder = tmp_path_factory.mktemp("shared")
    daemon = DaemonProcess(folder / "data", stderr=folder / "stderr.txt").start()
    yield daemon
    assert daemon.running, daemon.stderr
    daemon.close()


@pytest.fixture
def actor(request: pytest.FixtureRequest) -> common_pb2.Actor:
    """An actor of this test alone."""
    return common_pb2.Actor(save_id="slot 1", actor_id=request.node.name[:500], role_id="Merchant")


@pytest.fixture
def client(shared_daemon: DaemonProcess) -> Client:
    """A client of the shared daemon."""
    return shared_daemon.client


@pytest.fixture
def chat(shared_daemon: DaemonProcess) -> Chat:
    """The shared daemon's conversations."""
    return Chat(shared_daemon.client)


@pytest.fixture
def game(shared_daemon: DaemonProcess, actor: common_pb2.Actor, server: WireServer) -> TurnClient:
    """Turns of this test's actor with the shared daemon and the scripted model server."""
    return TurnClient(shared_daemon.client, actor, server)


@pytest.fixture
def server() -> Iterator[WireServer]:
    """A model server of this test alone, which plays scripts."""
    with WireServer() as server:
        yield server
