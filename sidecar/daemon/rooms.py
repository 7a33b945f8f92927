"""The one place where the rooms are built and handed to each other.

A room is imported and built when it is first needed, by a call or by the warm-up after the start: that is what lets
a daemon serve before Python has read all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sidecar.diagnostics import Diagnostic, Report
from sidecar.settings import Config
from sidecar.storage.disk import Disk, FileDisk, SessionDisk

if TYPE_CHECKING:
    from sidecar.embedding.engine import EmbeddingEngine
    from sidecar.embedding.service import EmbeddingService
    from sidecar.embedding.vectors import VectorStore
    from sidecar.memory.document_store import DocumentStore
    from sidecar.memory.groups import GroupStore
    from sidecar.memory.record_mover import RecordMover
    from sidecar.memory.record_service import RecordService
    from sidecar.memory.record_store import RecordStore
    from sidecar.memory.service import DocumentService
    from sidecar.search.indexer import Indexer, Indexes
    from sidecar.search.recall import Recall
    from sidecar.search.service import SearchService
    from sidecar.search.views import Views
    from sidecar.search.words import WordSource
    from sidecar.storage.actors import Actors
    from sidecar.storage.save_state import SaveStates
    from sidecar.storage.workers import Workers
    from sidecar.wire import Paging

CAPABILITIES = (
    "embedding",
    "memory.actors",
    "memory.documents",
    "memory.groups",
    "memory.records",
    "memory.retention",
    "memory.tool",
    "search.lexical",
    "system",
)
_EMBEDDING = "lorekeeper.v1.EmbeddingService"


def open_disk(folder: Path, config: Config, writable: Callable[[bool], None]) -> Disk:
    """The data folder, or process memory when the storage mode is ``session``."""
    if config.storage.mode == "session":
        return SessionDisk(folder)
    return FileDisk(folder, durable=config.storage.durability == "full", writable=writable)


class Rooms:
    """Every room on one disk, each built once."""

    def __init__(self, disk: Disk, config: Config, *, serving: Callable[[str, bool], None], report: Report) -> None:
        """``serving`` is told when a service becomes able or unable to answer."""
        self._disk = disk
        self._config = config
        self._serving = serving
        self._report = report

    def servicers(self) -> Mapping[str, Callable[[], Sequence[object]]]:
        """For each service that is built: what makes the objects that answer it."""
        return {
            "lorekeeper.v1.MemoryService": lambda: [self.memory_service, self.record_service],
            "lorekeeper.v1.SearchService": lambda: [self.search_service],
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
        if "engine" in self.__dict__:
            await self.engine.close()
            self.vectors.close()
        await self.workers.close()
        if "records" in self.__dict__:
            self.record_mover.close()
            self.indexer.close()
            self.indexes.close()
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
        return Workers(threads=storage.disk_threads, queue=storage.max_waiting_calls)

    @cached_property
    def documents(self) -> DocumentStore:
        from sidecar.memory.document_store import DocumentStore

        return DocumentStore(self._disk, self.actors, self.saves, self._config.memory)

    @cached_property
    def records(self) -> RecordStore:
        from sidecar.memory.record_store import RecordStore

        return RecordStore(
            self._disk,
            self.actors,
            self.saves,
            self._config.records,
            known=self.indexes,
            retention=self.groups.retention,
            report=self._report,
        )

    @cached_property
    def record_mover(self) -> RecordMover:
        from sidecar.memory.record_mover import RecordMover

        return RecordMover(self.records, self._report)

    @cached_property
    def groups(self) -> GroupStore:
        from sidecar.memory.groups import GroupStore

        return GroupStore(self._disk, self.saves, self._config.records)

    @cached_property
    def indexes(self) -> Indexes:
        from sidecar.search.indexer import Indexes

        in_memory = self._config.storage.mode == "session"
        return Indexes(self._disk.root, in_memory=in_memory, version=self._words_version, report=self._report)

    @cached_property
    def indexer(self) -> Indexer:
        from sidecar.search.indexer import Indexer

        return Indexer(self.records, self.indexes, self.words, self._config.search, self._report)

    @cached_property
    def words(self) -> WordSource:
        from sidecar.search.words import WordSource

        return WordSource(self.records, self.indexes.of, self._config.search.language)

    @cached_property
    def recall(self) -> Recall:
        from sidecar.search.recall import Recall

        return Recall(self.records, self.groups, self.saves, self.words, self.views)

    @cached_property
    def views(self) -> Views:
        from sidecar.search.views import Views

        return Views(self.words, self._config.search)

    @cached_property
    def memory_service(self) -> DocumentService:
        from sidecar.chat.roles import role_policy
        from sidecar.memory.actor_files import ActorFiles
        from sidecar.memory.remember_tool import RememberTool
        from sidecar.memory.service import DocumentService
        from sidecar.memory.toolbox import MemoryTool, Toolbox
        from sidecar.search.tool import SearchTool

        def offers(role: str, tool: str) -> bool:
            policy = role_policy(role)
            return policy.memory_tool and (policy.allowed_tools is None or tool in policy.allowed_tools)

        toolbox = Toolbox(
            [
                MemoryTool(self.documents, remembers=lambda role: role_policy(role).memory_tool),
                RememberTool(self.records, self._config.records, offers),
                SearchTool(self.recall, self._config.records, offers),
            ]
        )
        files = ActorFiles(self._disk, self.actors, self.saves, parts=[self.documents, self.records, self.indexes])
        return DocumentService(
            store=self.documents,
            toolbox=toolbox,
            files=files,
            saves=self.saves,
            workers=self.workers,
            limits=self._config.memory,
            paging=self._paging,
        )

    @cached_property
    def record_service(self) -> RecordService:
        from sidecar.memory.kept_answers import KeptAnswers
        from sidecar.memory.record_service import RecordService

        self._follow_behind()
        return RecordService(
            store=self.records,
            groups=self.groups,
            saves=self.saves,
            workers=self.workers,
            limits=self._config.records,
            answers=KeptAnswers(self._config.records.kept_answers),
            paging=self._paging,
        )

    @cached_property
    def search_service(self) -> SearchService:
        from sidecar.search.at_hand import AtHand
        from sidecar.search.index_status import IndexStatus
        from sidecar.search.recall import Recall
        from sidecar.search.service import SearchService

        self._follow_behind()
        at_hand = AtHand(self.records, self.groups, self.saves, self.views)
        return SearchService(
            recall=self.recall,
            at_hand=at_hand,
            recall_at_hand=Recall(at_hand, self.groups, self.saves, self.words, self.views),
            status=IndexStatus(self.records, self.indexes, self.indexer, self._words_version),
            saves=self.saves,
            workers=self.workers,
            limits=self._config.search,
            record_limits=self._config.records,
        )

    def _follow_behind(self) -> None:
        """Have the inboxes emptied and the index kept up to date from now on."""
        self.record_mover, self.indexer  # noqa: B018 - building them is what starts them

    def _words_version(self) -> str:
        return self.words.analyzer.version

    @cached_property
    def engine(self) -> EmbeddingEngine:
        from sidecar.embedding.catalogue import Catalogue
        from sidecar.embedding.engine import EmbeddingEngine
        from sidecar.embedding.model_host import HostState

        settings = self._config.embedding
        return EmbeddingEngine(
            settings,
            Catalogue(self._disk.root / "models", settings),
            watch=lambda state: self._serving(_EMBEDDING, state is HostState.READY),
        )

    @cached_property
    def vectors(self) -> VectorStore:
        from sidecar.embedding.vectors import VectorStore

        session = self._config.storage.mode == "session"
        return VectorStore(None if session else self._disk.root / "index" / "vectors.sqlite3")

    @cached_property
    def embedding_service(self) -> EmbeddingService:
        from sidecar.embedding.service import EmbeddingService

        return EmbeddingService(self.engine, self.vectors, self._paging)

    @property
    def _paging(self) -> Paging:
        from sidecar.wire import Paging

        return Paging(self._config.daemon.default_page_size, self._config.daemon.max_page_size)
