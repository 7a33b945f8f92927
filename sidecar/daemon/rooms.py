"""The one place where the rooms are built and handed to each other.

A room is imported and built when it is first needed, by a call or by the warm-up after the start: that is what lets
a daemon serve before Python has read all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sidecar.diagnostics import Diagnostic, Report
from sidecar.settings import Config
from sidecar.storage.disk import Disk
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.save_gate import SaveGate

if TYPE_CHECKING:
    from sidecar.chat.role_store import KnownRole, RoleStore
    from sidecar.chat.search_recall import SearchRecall
    from sidecar.daemon.chat_rooms import ChatRooms
    from sidecar.daemon.ground import Ground
    from sidecar.daemon.record_rooms import RecordRooms
    from sidecar.daemon.save_rooms import SaveRooms
    from sidecar.daemon.search_rooms import SearchRooms
    from sidecar.daemon.turn_rooms import BackendRooms, TurnRooms
    from sidecar.embedding.engine import EmbeddingEngine
    from sidecar.embedding.model_host import HostState
    from sidecar.embedding.service import EmbeddingService
    from sidecar.embedding.vectors import VectorStore
    from sidecar.gen.lorekeeper.v1.save_pb2 import SaveSettings
    from sidecar.memory.actor_files import ActorFiles
    from sidecar.memory.document_store import DocumentStore
    from sidecar.memory.service import DocumentService
    from sidecar.memory.toolbox import Toolbox
    from sidecar.storage.actors import Actors
    from sidecar.storage.keys import ActorId
    from sidecar.storage.save_state import SaveStates
    from sidecar.storage.workers import Workers
    from sidecar.wire import Paging

CAPABILITIES = (
    "chat.backends",
    "chat.history",
    "chat.prompt",
    "chat.roles",
    "chat.turns",
    "compaction",
    "embedding",
    "memory.actors",
    "memory.documents",
    "memory.groups",
    "memory.records",
    "memory.retention",
    "memory.tool",
    "saves",
    "search.hybrid",
    "search.lexical",
    "system",
)
_EMBEDDING = "lorekeeper.v1.EmbeddingService"


def open_disk(folder: Path, config: Config, writable: Callable[[bool], None]) -> Disk:
    """The data folder, or process memory when the storage mode is ``session``."""
    if config.storage.mode == "session":
        from sidecar.storage.session_disk import SessionDisk

        return SessionDisk(folder)
    return FileDisk(folder, durable=config.storage.durability == "full", writable=writable)


class Rooms:
    """Every room on one disk, each built once."""

    def __init__(
        self,
        disk: Disk,
        config: Config,
        *,
        serving: Callable[[str, bool], None],
        report: Report,
        roles: Mapping[str, KnownRole] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """``serving`` is told when a service becomes able or unable to answer; ``roles`` are the game's own.

        ``loop`` is the one that the daemon serves on; without it no model writes summaries.
        """
        self._disk = disk
        self._config = config
        self._serving = serving
        self._report = report
        self._roles_file = roles
        self._loop = loop
        self.gate = SaveGate()

    def recover(self) -> None:
        """End what a kill left half done, before anything is read."""
        if self._disk.names(self._disk.root / "exchange"):
            self.save.recover()

    def servicers(self) -> Mapping[str, Callable[[], Sequence[object]]]:
        """For each service that is built: what makes the objects that answer it."""
        return {
            "lorekeeper.v1.MemoryService": lambda: [
                self.memory_service,
                self.records.service,
                self.save.erasing_service,
            ],
            "lorekeeper.v1.SearchService": lambda: [self.search.service],
            "lorekeeper.v1.SaveService": lambda: [
                self.save.service,
                self.save.transfer_service,
                self.save.erasing_service,
            ],
            "lorekeeper.v1.ChatService": lambda: [self.chat.service, self.turns.service, self.backends.service],
            "lorekeeper.v1.CompactionService": lambda: [self.chat.compaction_service],
            _EMBEDDING: lambda: [self.embedding_service],
        }

    async def load_model(self) -> None:
        """Load the embedding model that the configuration selects; without one the daemon goes on."""
        why = await self.engine.start()
        if why is not None:
            self._report(Diagnostic("embedding_without_model", why.message, details={"reason": str(why.reason)}))

    def counts(self) -> dict[str, int]:
        """How much is open now, for GetStats."""
        return self.documents.open_counts()

    async def close(self) -> None:
        """Finish what has begun and write what is still to be written."""
        if "backends" in self.__dict__:
            self.backends.hang_up()
        if "turns" in self.__dict__:
            await self.turns.close()
        if "chat" in self.__dict__:
            await self.chat.close()
        if "search" in self.__dict__:
            await self.search.close()
        if "engine" in self.__dict__:
            await self.engine.close()
        if "save" in self.__dict__:
            self.save.close()
        await self.workers.close()
        if "records" in self.__dict__:
            self.records.close()
        if "vectors" in self.__dict__:
            self.vectors.close()
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
    def ground(self) -> Ground:
        """What every room stands on."""
        from sidecar.daemon.ground import Ground

        return Ground(
            disk=self._disk,
            config=self._config,
            report=self._report,
            actors=self.actors,
            saves=self.saves,
            workers=self.workers,
            paging=self._paging,
        )

    @cached_property
    def documents(self) -> DocumentStore:
        from sidecar.memory.document_store import DocumentStore

        def versions_kept(who: ActorId) -> int:
            return self.roles.get(who.role).max_document_versions

        return DocumentStore(self._disk, self.actors, self.saves, self._config.memory, versions_kept=versions_kept)

    @cached_property
    def toolbox(self) -> Toolbox:
        from sidecar.memory.record_ids import REMEMBER
        from sidecar.memory.toolbox import MemoryTool, Toolbox

        def remembers(role: str) -> bool:
            return self.roles.get(role).offers_memory

        def offers(role_id: str, tool: str) -> bool:
            role = self.roles.get(role_id)
            own = role.remember_tool if tool == REMEMBER else role.search_tool
            allowed = role.allowed_tools
            return (role.memory_tool if own is None else own) and (allowed is None or tool in allowed)

        record_tools = self.records.tools(offers, self._archived_for, self._sources_of)
        return Toolbox([MemoryTool(self.documents, remembers), *record_tools])

    @cached_property
    def actor_files(self) -> ActorFiles:
        from sidecar.memory.actor_files import ActorFiles, ActorPart

        rooms = self.records
        parts: list[ActorPart] = [self.documents, self.chat.part, rooms.store, rooms.indexes, self.save.actor_copies]
        settle = rooms.store.settle
        return ActorFiles(
            self._disk,
            self.actors,
            self.saves,
            parts,
            vectors=self.search.vector_erasure,
            settle=settle,
            report=self._report,
        )

    @cached_property
    def memory_service(self) -> DocumentService:
        from sidecar.memory.service import DocumentService

        return DocumentService(
            store=self.documents,
            toolbox=self.toolbox,
            files=self.actor_files,
            saves=self.saves,
            workers=self.workers,
            limits=self._config.memory,
            paging=self._paging,
        )

    @cached_property
    def records(self) -> RecordRooms:
        from sidecar.daemon.record_rooms import RecordRooms

        return RecordRooms(
            self.ground,
            search=lambda: self.search,
            languages_put=lambda folder: self.save.settings.languages(folder),
        )

    @cached_property
    def search(self) -> SearchRooms:
        from sidecar.daemon.search_rooms import SearchRooms

        return SearchRooms(
            self.ground,
            records=self.records,
            engine=self.engine,
            vectors=self.vectors,
            settings_of=self._settings_of,
            archived_for=self._archived_for,
            sources_of=self._sources_of,
        )

    def _archived_for(self, role: str) -> bool:
        return self.roles.get(role).archive

    def _sources_of(self, who: ActorId) -> Sequence[ActorId]:
        """Patterns of the owners that the role of an actor lets it search."""
        from sidecar.memory.record_wire import patterns_kept

        return patterns_kept(self.roles.get(who.role).sources, who.save)

    def _settings_of(self, save: str) -> SaveSettings:
        from sidecar.saves.settings_rules import settings_to

        return settings_to(self.save.settings.read(save))

    @cached_property
    def save(self) -> SaveRooms:
        from sidecar.daemon.save_rooms import SaveRooms

        return SaveRooms(
            self.ground,
            gate=self.gate,
            parts=lambda: [self.documents, self.chat.part, self.records.save_part],
            actor_files=lambda: self.actor_files,
            vectors=lambda: self.search.vector_erasure,
            unstored=lambda: self.chat.part.unstored(),
            staying=lambda save: self.chat.part.staying(save),
            settings_changed=lambda save: self.records.settings_changed(save),
        )

    @cached_property
    def roles(self) -> RoleStore:
        from sidecar.chat.role_store import RoleStore

        return RoleStore(self._disk, max_roles=self._config.chat.max_roles, from_file=self._roles_file)

    @cached_property
    def chat(self) -> ChatRooms:
        from sidecar.daemon.chat_rooms import ChatRooms

        return ChatRooms(
            self.ground,
            records=self.records.followed_store,
            documents=self.documents,
            toolbox=self.toolbox,
            roles=self.roles,
            find_writer=lambda *asked: self.backends.summary_models.find(*asked),
            route=lambda role, backend_id: self.backends.route(role, backend_id),
            look=lambda: self.backends.looking,
        )

    @cached_property
    def backends(self) -> BackendRooms:
        from sidecar.daemon.turn_rooms import BackendRooms

        return BackendRooms(
            self.ground,
            counters=self.chat.counters,
            loop=self._loop,
        )

    @cached_property
    def turns(self) -> TurnRooms:
        from sidecar.daemon.turn_rooms import TurnRooms

        return TurnRooms(
            self.ground,
            chat=self.chat,
            backends=self.backends,
            roles=self.roles,
            documents=self.documents,
            toolbox=self.toolbox,
            recall=self.recall,
        )

    @cached_property
    def recall(self) -> SearchRecall:
        from sidecar.chat.search_recall import SearchRecall
        from sidecar.search.finder import Asker

        return SearchRecall(lambda request: self.search.service.search(request, Asker.PROMPT))

    @cached_property
    def engine(self) -> EmbeddingEngine:
        from sidecar.embedding.catalogue import Catalogue
        from sidecar.embedding.engine import EmbeddingEngine

        settings = self._config.embedding
        engine = EmbeddingEngine(
            settings,
            Catalogue(self._disk.root / "models", settings),
            watch=self._model_changed,
        )
        if self._loop is not None and settings.model != "none":
            engine.models.expect()  # load_model follows
        return engine

    def _model_changed(self, state: HostState) -> None:
        from sidecar.embedding.model_host import HostState

        self._serving(_EMBEDDING, state is HostState.READY)
        self.search.queue.model_changed()

    @cached_property
    def vectors(self) -> VectorStore:
        from sidecar.embedding.vectors import VectorStore

        session = self._config.storage.mode == "session"
        return VectorStore(None if session else self._disk.root / "index" / "vectors.sqlite3", self._report)

    @cached_property
    def embedding_service(self) -> EmbeddingService:
        from sidecar.embedding.service import EmbeddingService

        return EmbeddingService(self.engine, self.vectors, self._paging, self.search.behind)

    @property
    def _paging(self) -> Paging:
        from sidecar.wire import Paging

        return Paging(self._config.daemon.default_page_size, self._config.daemon.max_page_size)
