"""The rooms of conversations: chat and compaction, built when they are first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.chat.actor_part import ConversationPart
    from sidecar.chat.aim import Look, Route
    from sidecar.chat.archive import Archive
    from sidecar.chat.compactions import Compactions, FindWriter
    from sidecar.chat.conversations import Conversations
    from sidecar.chat.history_store import HistoryStore
    from sidecar.chat.memory_snapshots import MemorySnapshots
    from sidecar.chat.prompts import Prompts
    from sidecar.chat.role_store import RoleStore
    from sidecar.chat.service import ConversationService
    from sidecar.chat.turns.claims import Claims
    from sidecar.compaction.answers import ProcessAnswers
    from sidecar.compaction.counters import Counters
    from sidecar.compaction.fold_memo import FoldMemo
    from sidecar.compaction.service import CompactionService
    from sidecar.compaction.summaries import SummaryStore
    from sidecar.daemon.ground import Ground
    from sidecar.memory.document_store import DocumentStore
    from sidecar.memory.record_store import RecordStore
    from sidecar.memory.toolbox import Toolbox
    from sidecar.storage.keys import ActorId
    from sidecar.storage.workers import Workers


class ChatRooms:
    """What belongs to conversations, each built once, on the rooms that it is handed."""

    def __init__(
        self,
        ground: Ground,
        *,
        records: Callable[[], RecordStore],
        documents: DocumentStore,
        toolbox: Toolbox,
        roles: RoleStore,
        route: Route,
        look: Callable[[], Look | None],
        find_writer: FindWriter,
    ) -> None:
        """``records`` is where archived messages go; ``route`` tells where a role's turns go, ``look`` gives what asks
        servers for their windows, and ``find_writer`` finds the model that writes a role's summaries."""
        self._ground = ground
        self._records = records
        self._documents = documents
        self._toolbox = toolbox
        self._roles = roles
        self._find_writer = find_writer
        self._look = look
        self._route = route

    async def close(self) -> None:
        """Wait for the compactions that have begun."""
        if "models" in self.__dict__:
            await self.models.close()

    @cached_property
    def models(self) -> Workers:
        """Threads that wait for language models, so that neither the disk's nor a checkpoint ever do: behind a gate
        that nobody shuts."""
        from sidecar.storage.save_gate import SaveGate
        from sidecar.storage.workers import Workers

        compaction = self._ground.config.compaction
        return Workers(
            SaveGate(),
            threads=compaction.model_threads,
            queue=compaction.max_waiting_compactions,
            limit="compaction.max_waiting_compactions",
        )

    @cached_property
    def histories(self) -> HistoryStore:
        from sidecar.chat.history_store import HistoryStore

        ground = self._ground
        return HistoryStore(ground.disk, ground.actors, ground.saves, ground.config.chat, ground.report)

    @cached_property
    def archive(self) -> Archive:
        from sidecar.chat.archive import Archive

        return Archive(self._records, most=self._ground.config.chat.max_archived_messages, report=self._ground.report)

    @cached_property
    def summaries(self) -> SummaryStore:
        from sidecar.compaction.summaries import SummaryStore

        return SummaryStore(self._ground.disk, self._ground.actors, self._ground.saves)

    @cached_property
    def counters(self) -> Counters:
        from sidecar.compaction.counters import Counters

        return Counters(tokenizer=self._ground.config.compaction.tokenizer_path)

    @cached_property
    def memory_snapshots(self) -> MemorySnapshots:
        from sidecar.chat.memory_snapshots import MemorySnapshots

        return MemorySnapshots(self._documents)

    @cached_property
    def part(self) -> ConversationPart:
        from sidecar.chat.actor_part import ConversationPart

        forgets = (self.memory_snapshots, self.folds, self.answers, self.claims)
        return ConversationPart(self.histories, self.summaries, forgets=forgets)

    @cached_property
    def conversations(self) -> Conversations:
        from sidecar.chat.conversations import Conversations

        return Conversations(
            histories=self.histories,
            summaries=self.summaries,
            archive=self.archive,
            epoch=lambda save: self._ground.saves.state(save).epoch,
            cleared=self._cleared,
            report=self._ground.report,
        )

    def _cleared(self, who: ActorId) -> None:
        """The numbers of a cleared history may begin again: what was folded under them is no other's."""
        self.claims.erased(who)
        self.folds.erased(who)

    @cached_property
    def prompts(self) -> Prompts:
        from sidecar.chat.prompts import Prompts

        return Prompts(
            histories=self.histories,
            summaries=self.summaries,
            documents=self._documents,
            toolbox=self._toolbox,
            settings=self._ground.config.compaction,
            folds=self.folds,
        )

    @cached_property
    def folds(self) -> FoldMemo:
        """Shared with what forgets an actor."""
        from sidecar.compaction.fold_memo import FoldMemo

        return FoldMemo()

    @cached_property
    def answers(self) -> ProcessAnswers:
        """Of compactions; shared with what forgets an actor."""
        from sidecar.compaction.answers import ProcessAnswers

        return ProcessAnswers()

    @cached_property
    def claims(self) -> Claims:
        """Of turns; shared with what forgets an actor."""
        from sidecar.chat.turns.claims import Claims

        return Claims()

    @cached_property
    def compactions(self) -> Compactions:
        from sidecar.chat.compactions import Compactions

        return Compactions(
            conversations=self.conversations,
            prompts=self.prompts,
            roles=self._roles,
            snapshots=self.memory_snapshots,
            counters=self.counters,
            settings=self._ground.config.compaction,
            report=self._ground.report,
            find_writer=self._find_writer,
            route=self._route,
            look=self._look,
        )

    @cached_property
    def service(self) -> ConversationService:
        from sidecar.chat.service import ConversationService

        return ConversationService(
            conversations=self.conversations,
            histories=self.histories,
            roles=self._roles,
            counters=self.counters,
            saves=self._ground.saves,
            workers=self._ground.workers,
            limits=self._ground.config.chat,
            paging=self._ground.paging,
        )

    @cached_property
    def compaction_service(self) -> CompactionService:
        from sidecar.compaction.service import CompactionService

        return CompactionService(
            compactions=self.compactions,
            summaries=self.summaries,
            counters=self.counters,
            saves=self._ground.saves,
            workers=self._ground.workers,
            models=self.models,
            limits=self._ground.config.compaction,
            answers=self.answers,
        )
