"""The one place where the rooms are built and handed to each other.

A room is imported and built when it is first needed, by a call or by the warm-up after the start: that is what lets
a daemon serve before Python has read all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sidecar.diagnostics import Report
from sidecar.settings import Config
from sidecar.storage.disk import Disk, FileDisk, SessionDisk
from sidecar.storage.save_gate import SaveGate

if TYPE_CHECKING:
    from sidecar.memory.actor_files import ActorFiles, ActorPart
    from sidecar.memory.document_store import DocumentStore
    from sidecar.memory.groups import GroupStore
    from sidecar.memory.kept_answers import KeptAnswers
    from sidecar.memory.record_mover import RecordMover
    from sidecar.memory.record_service import RecordService
    from sidecar.memory.record_store import RecordStore
    from sidecar.memory.service import DocumentService
    from sidecar.saves.access import SaveAccess
    from sidecar.saves.erasure import ActorCopies
    from sidecar.saves.parts import SaveParts
    from sidecar.saves.save_files import SaveFiles
    from sidecar.saves.save_settings import SaveSettingsStore
    from sidecar.saves.service import SaveService
    from sidecar.saves.transfer_service import TransferService
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
    "memory.documents",
    "memory.tool",
    "memory.actors",
    "memory.records",
    "memory.groups",
    "memory.retention",
    "saves",
    "search.lexical",
    "system",
)


def open_disk(folder: Path, config: Config, writable: Callable[[bool], None]) -> Disk:
    """The data folder, or process memory when the storage mode is ``session``."""
    if config.storage.mode == "session":
        return SessionDisk(folder)
    return FileDisk(folder, durable=config.storage.durability == "full", writable=writable)


class Rooms:
    """Every room on one disk, each built once."""

    def __init__(self, disk: Disk, config: Config, report: Report) -> None:
        self._disk = disk
        self._config = config
        self._report = report
        self.gate = SaveGate()

    def recover(self) -> None:
        """End what a kill left half done, before anything is read."""
        if self._disk.names(self._disk.root / "exchange"):
            self.save_files.exchanges.recover()

    def servicers(self) -> Mapping[str, Callable[[], Sequence[object]]]:
        """For each service that is built: what makes the objects that answer it."""
        return {
            "lorekeeper.v1.MemoryService": lambda: [self.memory_service, self.record_service],
            "lorekeeper.v1.SearchService": lambda: [self.search_service],
            "lorekeeper.v1.SaveService": lambda: [self.save_service, self.transfer_service],
        }

    def counts(self) -> dict[str, int]:
        """How much is open now, for GetStats."""
        return self.documents.open_counts()

    async def close(self) -> None:
        """Finish what has begun and write what is still to be written."""
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
        return Workers(self.gate, threads=storage.disk_threads, queue=storage.max_waiting_calls)

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
    def record_answers(self) -> KeptAnswers:
        from sidecar.memory.kept_answers import KeptAnswers

        return KeptAnswers(self._config.records.kept_answers)

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
        return DocumentService(
            store=self.documents,
            toolbox=toolbox,
            files=self.actor_files,
            saves=self.saves,
            workers=self.workers,
            still=self.save_access.still,
            limits=self._config.memory,
            paging=self._paging,
        )

    @cached_property
    def actor_files(self) -> ActorFiles:
        from sidecar.memory.actor_files import ActorFiles

        parts: Sequence[ActorPart] = [self.documents, self.records, self.indexes, self.actor_copies]
        return ActorFiles(self._disk, self.actors, self.saves, parts)

    @cached_property
    def save_parts(self) -> SaveParts:
        from sidecar.saves.parts import SaveParts
        from sidecar.saves.record_part import RecordPart

        records = RecordPart(
            self._disk, self.records, self.groups, self.indexes, self.indexer, self.views, self.record_answers
        )
        return SaveParts([self.documents, records])

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
    def save_access(self) -> SaveAccess:
        from sidecar.saves.access import SaveAccess

        return SaveAccess(self.gate, self.workers, self._config.saves)

    @cached_property
    def save_service(self) -> SaveService:
        from sidecar.saves.erasure import Players
        from sidecar.saves.service import SaveService

        return SaveService(
            files=self.save_files,
            players=Players(self.actors, self.actor_files, self.actor_copies),
            settings=self.save_settings,
            states=self.saves,
            access=self.save_access,
            limits=self._config.saves,
            paging=self._paging,
        )

    @cached_property
    def record_service(self) -> RecordService:
        from sidecar.memory.record_service import RecordService

        self._follow_behind()
        return RecordService(
            store=self.records,
            groups=self.groups,
            saves=self.saves,
            workers=self.workers,
            limits=self._config.records,
            answers=self.record_answers,
            paging=self._paging,
        )

    @cached_property
    def search_service(self) -> SearchService:
        from sidecar.search.at_hand import AtHand
        from sidecar.search.index_status import IndexStatus
        from sidecar.search.recall import Recall
        from sidecar.search.service import SearchService

        self._follow_behind()
        at_hand = AtHand(self.records, self.groups, self.views)
        return SearchService(
            recall=self.recall,
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
    def transfer_service(self) -> TransferService:
        from sidecar.gen.lorekeeper.v1 import save_pb2
        from sidecar.saves.foreign_saves import ForeignSaves
        from sidecar.saves.importer import Importer
        from sidecar.saves.transfer_service import TransferService

        foreign = ForeignSaves(
            self._disk,
            self._config.saves,
            self._config.memory,
            self._config.records,
            known=lambda save: list(self.actors.of_save(save)),
            report=self._report,
        )
        return TransferService(
            disk=self._disk,
            files=self.save_files,
            importer=Importer(self._disk, self.save_files, self.saves, self._config.saves),
            foreign={
                save_pb2.IMPORT_FORMAT_COREAI: foreign.coreai,
                save_pb2.IMPORT_FORMAT_OPENGAMEAGENT: foreign.opengameagent,
            },
            states=self.saves,
            access=self.save_access,
            limits=self._config.saves,
        )

    @property
    def _paging(self) -> Paging:
        from sidecar.wire import Paging

        return Paging(self._config.daemon.default_page_size, self._config.daemon.max_page_size)
