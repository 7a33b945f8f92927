"""The life of a daemon: open the folder, bind, say where it is, serve until told to stop, end cleanly.

A start that finds a serving daemon on its folder prints that one's line and ends: ten starts make one daemon.
"""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from sidecar import __version__
from sidecar.daemon.attach import StillOwned, own_or_attach
from sidecar.daemon.calls import Edge, Open
from sidecar.daemon.config import Loaded
from sidecar.daemon.contract import SERVICES
from sidecar.daemon.diagnostic_hub import DiagnosticHub
from sidecar.daemon.handshake import FILE, Handshake, announce, write_file
from sidecar.daemon.health import Health
from sidecar.daemon.lifeline import parent_ended, watch_standard_input
from sidecar.daemon.reflection import Reflection
from sidecar.daemon.rooms import CAPABILITIES, Rooms, open_disk
from sidecar.daemon.save_door import SaveDoor
from sidecar.daemon.stats import CallStats
from sidecar.diagnostics import Diagnostic, Severity
from sidecar.errors import LorekeeperError, NotReady, Reason
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.format import open_format

if TYPE_CHECKING:
    from sidecar.chat.role_store import KnownRole
    from sidecar.daemon.logs import LogWriter

_HOST = "127.0.0.1"
# Nobody is there to wait for the answers any more.
_ORPHAN_DRAIN_SECONDS = 0.3
_NEVER_MS = 2**31 - 1
# So long a connection may take to say that it speaks the protocol.
_GREETING_MS = 10_000
# Open files that the daemon asks for: no system refuses so many, and some give 256 unasked.
_FILES = 8_192
# Long enough for a client to connect and ask for health.
_FIRST_CALLS_SECONDS = 0.05
_STANDARD_ERROR = 2
# The service that cannot do its work while the data folder refuses writes.
_STORING = "lorekeeper.v1.MemoryService"
_SYSTEM = "lorekeeper.v1.SystemService"
# The service that waits for its model.
_MODEL = "lorekeeper.v1.EmbeddingService"


class Exit(IntEnum):
    """Why ``lorekeeper serve`` ended; ``docs/process.md`` has the table."""

    OK = 0
    FAILED = 1
    USAGE = 2
    OWNED = 3
    FOLDER = 4
    FORMAT = 5
    PORT = 6


class CannotStart(Exception):
    """The daemon did not start; ``exit`` says why to programs, the message to people."""

    def __init__(self, exit_code: Exit, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Tls:
    """Certificate chain and key, PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class ServeOptions:
    """What ``lorekeeper serve`` was asked for. Any ``host`` but loopback needs ``tls``; ``roles`` are the game's."""

    data_dir: Path
    host: str = _HOST
    port: int = 0
    tls: Tls | None = None
    parent_pid: int | None = None
    stdin_lifeline: bool = False
    roles: Mapping[str, KnownRole] | None = None


def serve(options: ServeOptions, loaded: Loaded) -> None:
    """Run a daemon to its end, or attach to the one that is there. Raises CannotStart."""
    os.umask(0o077)
    # Comparing vectors is bound by memory: more threads only wait for each other, and for the game's.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # So long a thread that indexes may keep the event loop waiting; Python's own 5 ms are a third of a frame.
    sys.setswitchinterval(0.001)
    # Records are many objects without cycles: looking for some after every 700 is a third of the time of reading them.
    gc.set_threshold(10_000)
    _hold_standard_streams()
    _let_files_be_open()
    folder = _prepared(options.data_dir)
    try:
        owned = own_or_attach(folder, seconds=loaded.config.daemon.attach_seconds)
    except StillOwned as error:
        raise CannotStart(Exit.OWNED, str(error)) from error
    except LorekeeperError as error:
        raise CannotStart(Exit.FOLDER, error.message) from error
    if isinstance(owned, Handshake):
        announce(owned, reused=True)
        return
    try:
        asyncio.run(Daemon(options, loaded, folder).run())
    except LorekeeperError as error:
        raise CannotStart(Exit.FOLDER, error.message) from error
    finally:
        owned.release()


def _hold_standard_streams() -> None:
    """Put the null device in the place of a standard stream that was closed: no file of ours may get its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _let_files_be_open() -> None:
    """Have as many files and connections open as all limits allow together, where the system bounds them lower."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _prepared(folder: Path) -> Path:
    """The data folder's real path, made private to the user where it is missing."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(Exit.FOLDER, f"{folder} cannot be the data folder: {error.strerror}") from error
    return Path(os.path.realpath(folder))


class Daemon:
    """One daemon on a folder that this process owns."""

    def __init__(self, options: ServeOptions, loaded: Loaded, folder: Path) -> None:
        self._options = options
        self._loaded = loaded
        self._settings = loaded.config.daemon
        self._own_disk = FileDisk(folder)
        self._hub = DiagnosticHub(kept=self._settings.kept_diagnostics, max_watchers=self._settings.max_watchers)
        self._stats = CallStats()
        self._health = Health(("", *SERVICES), waiting=(_MODEL,), max_watchers=self._settings.max_health_watchers)
        self._stopping = asyncio.Event()
        self._why = ""
        self._reason = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until told to stop. Raises CannotStart, or LorekeeperError where the folder cannot be used."""
        self._loop = asyncio.get_running_loop()
        self._hub.attach(self._loop)
        rooms = self._open_rooms()
        server, handshake = await self._start(rooms)
        self._heed_signals()
        write_file(self._own_disk, handshake)
        announce(handshake)
        log = self._begin_log()
        try:
            await self._until_told(rooms)
        finally:
            await self._stop(server, rooms)
            log.close()

    def _open_rooms(self) -> Rooms:
        disk = open_disk(self._own_disk.root, self._loaded.config, self._writable)
        try:
            open_format(disk)
        except NotReady as error:
            if error.reason == Reason.FORMAT_TOO_NEW:
                raise CannotStart(Exit.FORMAT, error.message) from error
            raise
        rooms = Rooms(
            disk,
            self._loaded.config,
            serving=self._health.tell,
            report=self._hub.report,
            roles=self._options.roles,
            loop=self._loop,
        )
        rooms.recover()
        return rooms

    async def _start(self, rooms: Rooms) -> tuple[grpc.aio.Server, Handshake]:
        server = grpc.aio.server(
            maximum_concurrent_rpcs=self._settings.max_concurrent_calls, options=self._server_options()
        )
        address, tls_address = _bound(server, self._options)
        handshake = Handshake(
            address=address,
            tls_address=tls_address,
            token=secrets.token_urlsafe(32),
            pid=os.getpid(),
            version=__version__,
            data_dir=str(self._own_disk.root),
        )
        self._edge = Edge(
            token=handshake.token,
            stats=self._stats,
            services=self._services(rooms, handshake),
            door=SaveDoor(rooms.gate, seconds=self._loaded.config.saves.wait_seconds),
        )
        server.add_generic_rpc_handlers((self._edge, self._health, Reflection()))
        await server.start()
        return server, handshake

    def _services(self, rooms: Rooms, handshake: Handshake) -> dict[str, Open]:
        started = time.time()

        def system() -> Sequence[object]:
            from sidecar.daemon.system_service import About, SystemService

            about = About(handshake, secrets.token_hex(8), started, self._loaded, CAPABILITIES)
            return [SystemService(about=about, stats=self._stats, hub=self._hub, counts=rooms.counts, stop=self.stop)]

        unbuilt: dict[str, Open] = dict.fromkeys(SERVICES, lambda: ())
        return unbuilt | dict(rooms.servicers()) | {_SYSTEM: system}

    def _server_options(self) -> list[tuple[str, int]]:
        return [
            ("grpc.so_reuseport", 0),
            ("grpc.max_allowed_incoming_connections", self._settings.max_connections),
            ("grpc.server_handshake_timeout_ms", _GREETING_MS),
            ("grpc.max_receive_message_length", self._settings.max_message_bytes),
            ("grpc.max_send_message_length", -1),
            # A game that is paused or stopped in a debugger for an hour keeps its connection.
            ("grpc.keepalive_time_ms", _NEVER_MS),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ("grpc.http2.max_ping_strikes", 0),
        ]

    def _heed_signals(self) -> None:
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
            if hasattr(signal, name):
                _on_signal(self._loop, getattr(signal, name), partial(self.stop, name.lower()))

    async def _until_told(self, rooms: Rooms) -> None:
        """Serve until a signal, a call, the end of standard input or of the parent ends the daemon."""
        if self._options.stdin_lifeline:
            watch_standard_input(partial(self._loop.call_soon_threadsafe, self.stop, "lifeline"))
        if self._options.parent_pid is not None:
            self._begin(self._until_parent_ends(self._options.parent_pid))
        warming = asyncio.ensure_future(self._warm(rooms))
        await self._stopping.wait()
        warming.cancel()
        details = {"why": self._why} | ({"reason": self._reason} if self._reason else {})
        self._hub.report(Diagnostic("daemon_stopping", "the daemon ends", details=details))

    async def _warm(self, rooms: Rooms) -> None:
        """What the first calls need not wait for."""
        await asyncio.sleep(_FIRST_CALLS_SECONDS)
        self._hub.report(Diagnostic("daemon_started", "the daemon serves", details={"version": __version__}))
        await self._edge.warm()
        await rooms.load_model()

    def _begin_log(self) -> LogWriter:
        from sidecar.daemon.logs import LogWriter

        persistent = self._loaded.config.storage.mode == "persistent"
        folder = self._own_disk.root / "logs"
        return LogWriter(
            level=self._settings.log_level,
            file=folder / "daemon.log" if persistent else None,
            max_bytes=self._settings.log_bytes,
            files=self._settings.log_files,
        )

    async def _until_parent_ends(self, pid: int) -> None:
        await parent_ended(pid, poll_seconds=self._settings.parent_poll_seconds)
        self.stop("parent")

    def stop(self, why: str, reason: str = "") -> bool:
        """Begin the end; True where it had begun before. ``reason`` is the caller's own word. Call it on the event
        loop."""
        already = self._stopping.is_set()
        if not already:
            self._why, self._reason = why, reason
        self._stopping.set()
        return already

    async def _stop(self, server: grpc.aio.Server, rooms: Rooms) -> None:
        # 1. Tell health, so that nobody new attaches.
        self._health.end()
        # 2. End the streams that would never end by themselves.
        self._hub.close()
        # 3. Refuse new calls, and give those that run a moment.
        orphaned = self._why in ("lifeline", "parent")
        await server.stop(_ORPHAN_DRAIN_SECONDS if orphaned else self._settings.drain_seconds)
        # 4. Write what is still to be written.
        await rooms.close()
        for task in self._tasks:
            task.cancel()
        # 5. Leave nothing behind that says a daemon is here.
        self._own_disk.remove(self._own_disk.root / FILE)

    def _writable(self, writable: bool) -> None:
        """The disk began to refuse writes, or takes them again; called from the threads that write."""
        code, severity = ("storage_writable", Severity.INFORMATION) if writable else ("storage_refuses", Severity.ERROR)
        words = "takes writes again" if writable else "refuses writes: it is full or read-only"
        self._hub.report(Diagnostic(code, f"the data folder {words}", severity))
        self._loop.call_soon_threadsafe(self._health.tell, _STORING, writable)

    def _begin(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _bound(server: grpc.aio.Server, options: ServeOptions) -> tuple[str, str]:
    """The loopback address, and the one that is open to other machines where TLS allows one.

    Who runs on this machine (a second start, the commands) always has the loopback one.
    """
    if options.tls is None:
        return _bound_to(options.host, options.port, server.add_insecure_port), ""
    credentials = grpc.ssl_server_credentials([(options.tls.key, options.tls.certificate)])
    secure = partial(server.add_secure_port, server_credentials=credentials)
    return _bound_to(_HOST, 0, server.add_insecure_port), _bound_to(options.host, options.port, secure)


def _bound_to(host: str, port: int, bind: Callable[[str], int]) -> str:
    """Bind the port that was asked for, any free one for 0; the address."""
    try:
        return f"{host}:{bind(f'{host}:{port}')}"
    except RuntimeError as error:
        hint = "; see 'netsh interface ipv4 show excludedportrange protocol=tcp'" if sys.platform == "win32" else ""
        message = (
            f"{host}:{port} cannot be bound: another program has the port, the address is not this machine's, or the "
            f"TLS files do not fit{hint}. --port 0 takes any free port"
        )
        raise CannotStart(Exit.PORT, message) from error


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, act: Callable[[], object]) -> None:
    try:
        loop.add_signal_handler(number, act)
    except NotImplementedError:  # Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))
