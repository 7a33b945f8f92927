"""The one place where the rooms are built and handed to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sidecar.chat.roles import role_policy
from sidecar.daemon.calls import Service
from sidecar.gen.lorekeeper.v1 import memory_pb2
from sidecar.memory.actor_files import ActorFiles
from sidecar.memory.document_store import DocumentStore
from sidecar.memory.service import DocumentService
from sidecar.memory.toolbox import MemoryTool, Toolbox
from sidecar.settings import Config
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk, FileDisk, SessionDisk
from sidecar.storage.save_state import SaveStates
from sidecar.storage.workers import Workers
from sidecar.wire import Paging

CAPABILITIES = ("memory.documents", "memory.tool", "memory.actors", "system")


@dataclass(frozen=True)
class Rooms:
    """What the daemon serves, and how it is brought to rest."""

    services: tuple[Service, ...]
    counts: Callable[[], Mapping[str, int]]
    workers: Workers
    saves: SaveStates

    async def close(self) -> None:
        """Finish what has begun and write what is still to be written."""
        await self.workers.close()
        self.saves.close()


def open_disk(folder: Path, config: Config, writable: Callable[[bool], None]) -> Disk:
    """The data folder, or process memory when the storage mode is ``session``."""
    if config.storage.mode == "session":
        return SessionDisk(folder)
    return FileDisk(folder, durable=config.storage.durability == "full", writable=writable)


def build(disk: Disk, config: Config) -> Rooms:
    """All rooms on one disk. Nothing heavy is imported and nothing is read here."""
    actors, saves = Actors(disk), SaveStates(disk)
    workers = Workers(threads=config.storage.disk_threads, queue=config.storage.max_waiting_calls)
    documents = DocumentStore(disk, actors, saves, config.memory)
    files = ActorFiles(disk, actors, saves, parts=[documents])
    toolbox = Toolbox([MemoryTool(documents, remembers=lambda role: role_policy(role).memory_tool)])
    memory = DocumentService(
        store=documents,
        toolbox=toolbox,
        files=files,
        saves=saves,
        workers=workers,
        limits=config.memory,
        paging=Paging(config.daemon.default_page_size, config.daemon.max_page_size),
    )
    services = (Service(memory_pb2.DESCRIPTOR.services_by_name["MemoryService"], [memory]),)
    return Rooms(services, documents.open_counts, workers, saves)
