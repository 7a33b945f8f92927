"""The one place where the rooms are built and handed to each other.

A room is imported and built when it is first needed, by a call or by the warm-up after the start: that is what lets
a daemon serve before Python has read all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sidecar.settings import Config
from sidecar.storage.disk import Disk, FileDisk, SessionDisk
from sidecar.storage.save_gate import SaveGate

if TYPE_CHECKING:
    from sidecar.memory.actor_files import ActorFiles
    from sidecar.memory.document_store import DocumentStore
    from sidecar.memory.service import DocumentService
    from sidecar.saves.erasure import ActorCopies
    from sidecar.saves.parts import SaveParts
    from sidecar.saves.save_files import SaveFiles
    from sidecar.saves.save_settings import SaveSettingsStore
    from sidecar.saves.service import SaveService
    from sidecar.storage.actors import Actors
    from sidecar.storage.save_state import SaveStates
    from sidecar.storage.workers import Workers
    from sidecar.wire import Paging

CAPABILITIES = ("memory.documents", "memory.tool", "memory.actors", "saves", "system")


def open_disk(folder: Path, config: Config, writable: Callable[[bool], None]) -> Disk:
    """The data folder, or process memory when the storage mode is ``session``."""
    if config.storage.mode == "session":
        return SessionDisk(folder)
    return FileDisk(folder, durable=config.storage.durability == "full", writable=writable)


class Rooms:
    """Every room on one disk, each built once."""

    def __init__(self, disk: Disk, config: Config) -> None:
        self._disk = disk
        self._config = config
        self.gate = SaveGate()

    def recover(self) -> None:
        """End what a kill left half done, before anything is read."""
        if self._disk.names(self._disk.root / "exchange"):
            self.save_files.exchanges.recover()

    def servicers(self) -> Mapping[str, Callable[[], Sequence[object]]]:
        """For each service that is built: what makes the objects that answer it."""
        return {
            "lorekeeper.v1.MemoryService": lambda: [self.memory_service],
            "lorekeeper.v1.SaveService": lambda: [self.save_service],
        }

    def counts(self) -> dict[str, int]:
        """How much is open now, for GetStats."""
        return self.documents.open_counts()

    async def close(self) -> None:
        """Finish what has begun and write what is still to be written."""
        await self.workers.close()
        self.saves.close()

    @cached_property
    def actors(self) -> Actors:
        from sidecar.storage.actors import Actors

        return Actors(self._disk)

    @cached_property
    def saves(self) -> SaveStates:
        from sidecar.storage.save_state import SaveStates

        return SaveStates(self._disk)

    @cached_property
    def workers(self) -> Workers:
        from sidecar.storage.workers import Workers

        storage = self._config.storage
        return Workers(self.gate, threads=storage.disk_threads, queue=storage.max_waiting_calls)

    @cached_property
    def documents(self) -> DocumentStore:
        from sidecar.memory.document_store import DocumentStore

        return DocumentStore(self._disk, self.actors, self.saves, self._config.memory)

    @cached_property
    def memory_service(self) -> DocumentService:
        from sidecar.chat.roles import role_policy
        from sidecar.memory.service import DocumentService
        from sidecar.memory.toolbox import MemoryTool, Toolbox

        memory_tool = MemoryTool(self.documents, remembers=lambda role: role_policy(role).memory_tool)
        return DocumentService(
            store=self.documents,
            toolbox=Toolbox([memory_tool]),
            files=self.actor_files,
            saves=self.saves,
            workers=self.workers,
            limits=self._config.memory,
            paging=self._paging,
        )

    @cached_property
    def actor_files(self) -> ActorFiles:
        from sidecar.memory.actor_files import ActorFiles

        return ActorFiles(self._disk, self.actors, self.saves, parts=[self.documents, self.actor_copies])

    @cached_property
    def save_parts(self) -> SaveParts:
        from sidecar.saves.parts import SaveParts

        return SaveParts([self.documents])

    @cached_property
    def save_settings(self) -> SaveSettingsStore:
        from sidecar.saves.save_settings import SaveSettingsStore

        return SaveSettingsStore(self._disk, self.saves)

    @cached_property
    def save_files(self) -> SaveFiles:
        from sidecar.saves.save_files import SaveFiles

        return SaveFiles(self._disk, self.actors, self.saves, self.save_settings, self.save_parts, self._config.saves)

    @cached_property
    def actor_copies(self) -> ActorCopies:
        from sidecar.saves.erasure import ActorCopies

        return ActorCopies(self._disk, self.actors, self.save_files, self.save_parts)

    @cached_property
    def save_service(self) -> SaveService:
        from sidecar.saves.access import SaveAccess
        from sidecar.saves.erasure import Players
        from sidecar.saves.service import SaveService

        return SaveService(
            files=self.save_files,
            players=Players(self.actors, self.actor_files, self.actor_copies),
            settings=self.save_settings,
            states=self.saves,
            access=SaveAccess(self.gate, self.workers, self._config.saves),
            limits=self._config.saves,
            paging=self._paging,
        )

    @property
    def _paging(self) -> Paging:
        from sidecar.wire import Paging

        return Paging(self._config.daemon.default_page_size, self._config.daemon.max_page_size)
