"""A second start on a data folder: find the daemon that owns it and make sure that it is the one."""

from __future__ import annotations

import time
from pathlib import Path

from sidecar.daemon.handshake import Handshake, read_file
from sidecar.storage.folder_lock import FolderLock

_CALL_SECONDS = 2.0
_PAUSE_SECONDS = 0.05
# Proxies never see loopback traffic.
_CHANNEL = (("grpc.enable_http_proxy", 0),)


class StillOwned(Exception):
    """Another process owns the folder and does not answer; ``pid`` is what ``daemon.json`` says, if it says."""

    def __init__(self, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{owner} already runs on this data folder but does not answer; end it, then start again")
        self.pid = pid


def own_or_attach(folder: Path, *, seconds: float) -> FolderLock | Handshake:
    """The lock, if this process owns the folder now, or the handshake of the daemon that does and that serves.

    Both owner and handshake are asked again and again, since the owner may be starting or ending. A daemon that serves
    is the owner also where somebody has removed the file of its lock; one that was killed is not asked. Raises
    StillOwned after ``seconds``.
    """
    lock = FolderLock(folder)
    deadline = time.monotonic() + seconds
    while True:
        owned = lock.acquire()
        handshake = read_file(folder)
        if handshake is not None and (not owned or handshake.lives()) and is_serving(handshake):
            lock.release()
            return handshake
        if owned:
            return lock
        if time.monotonic() >= deadline:
            raise StillOwned(handshake.pid if handshake else None)
        time.sleep(_PAUSE_SECONDS)


def is_serving(handshake: Handshake) -> bool:
    """Whether a daemon answers at the address, serves, takes the token, and owns the same folder."""
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    from sidecar.gen.lorekeeper.v1 import system_pb2, system_pb2_grpc

    token = (("authorization", f"Bearer {handshake.token}"),)
    with grpc.insecure_channel(handshake.address, options=_CHANNEL) as channel:
        try:
            health = health_pb2_grpc.HealthStub(channel)
            answer = health.Check(health_pb2.HealthCheckRequest(), timeout=_CALL_SECONDS)
            system = system_pb2_grpc.SystemServiceStub(channel)
            info = system.GetInfo(system_pb2.GetInfoRequest(), metadata=token, timeout=_CALL_SECONDS)
        except grpc.RpcError:
            return False
    serving: bool = answer.status == health_pb2.HealthCheckResponse.SERVING
    return serving and info.pid == handshake.pid and info.data_dir == handshake.told_data_dir
