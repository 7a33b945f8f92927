"""The rooms of records and search, built when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.daemon.ground import Ground
    from sidecar.daemon.search_rooms import SearchRooms
    from sidecar.gen.lorekeeper.v1.common_pb2 import Cut
    from sidecar.memory.groups import GroupStore
    from sidecar.memory.kept_answers import KeptAnswers
    from sidecar.memory.record_mover import RecordMover
    from sidecar.memory.record_service import RecordService
    from sidecar.memory.record_store import RecordStore
    from sidecar.memory.records import Record
    from sidecar.memory.toolbox import Tool
    from sidecar.saves.record_part import RecordPart
    from sidecar.search.index_status import IndexStatus
    from sidecar.search.indexer import Indexer
    from sidecar.search.indexes import Indexes
    from sidecar.search.save_languages import SaveLanguages
    from sidecar.search.views import Views
    from sidecar.search.words import WordSource
    from sidecar.storage.keys import ActorId


class RecordRooms:
    """What belongs to records, each built once, on the rooms that it is handed."""

    def __init__(
        self,
        ground: Ground,
        *,
        search: Callable[[], SearchRooms],
        languages_put: Callable[[str], Sequence[str]],
    ) -> None:
        """``languages_put`` tells the languages that a save's settings name, by the name of the save's folder."""
        self._ground = ground
        self._languages_put = languages_put
        self._search = search

    def close(self) -> None:
        """End what follows behind the calls; what it leaves is taken up at the next use."""
        if "store" in self.__dict__:
            self.mover.close()
            self.indexer.close()
            self.indexes.close()

    @cached_property
    def store(self) -> RecordStore:
        from sidecar.memory.record_store import RecordStore

        return RecordStore(
            self._ground.disk,
            self._ground.actors,
            self._ground.saves,
            self._ground.config.records,
            known=self.indexes,
            retention=self.groups.applied_retention,
            report=self._ground.report,
        )

    @cached_property
    def groups(self) -> GroupStore:
        from sidecar.memory.groups import GroupStore

        return GroupStore(self._ground.disk, self._ground.saves, self._ground.config.records)

    @cached_property
    def mover(self) -> RecordMover:
        from sidecar.memory.record_mover import RecordMover

        return RecordMover(self.store, self._ground.report)

    @cached_property
    def indexes(self) -> Indexes:
        from sidecar.search.indexes import Indexes

        in_memory = self._ground.config.storage.mode == "session"
        return Indexes(
            self._ground.disk.root,
            in_memory=in_memory,
            version=self._words_version,
            report=self._ground.report,
            most_open=self._ground.config.search.max_open_indexes,
        )

    @cached_property
    def languages(self) -> SaveLanguages:
        from sidecar.search.save_languages import SaveLanguages

        return SaveLanguages(self._ground.disk.root, self._ground.config.search.language, self._languages_put)

    @cached_property
    def indexer(self) -> Indexer:
        from sidecar.search.indexer import Indexer

        return Indexer(self.store, self.indexes, self.words, self._ground.config.search, self._ground.report)

    @cached_property
    def words(self) -> WordSource:
        from sidecar.search.words import WordSource

        return WordSource(self.store, self.indexes.of, self.languages)

    @cached_property
    def views(self) -> Views:
        from sidecar.search.views import Views

        return Views(self.words, self._ground.config.search)

    def tools(
        self,
        offers: Callable[[str, str], bool],
        archived_for: Callable[[str], bool],
        sources_of: Callable[[ActorId], Sequence[ActorId]],
    ) -> list[Tool]:
        """The tools of a model; ``offers`` tells whether a role has one, by its name, ``archived_for`` whether its
        archived turns are searched, and ``sources_of`` whom it lets an actor search."""
        from sidecar.memory.remember_tool import RememberTool
        from sidecar.search.tool import SearchTool

        limits, search = self._ground.config.records, self._search()
        searched = SearchTool(
            search.finder.from_thread,
            limits,
            offers,
            archived_for,
            options_of=search.options_of,
            owners_of=lambda save: self.store.catalog(save).owners(),
            sources_of=sources_of,
        )
        return [RememberTool(self.store, limits, offers), searched]

    @cached_property
    def answers(self) -> KeptAnswers:
        from sidecar.memory.kept_answers import KeptAnswers

        return KeptAnswers(self._ground.disk, self._ground.config.records.kept_answers)

    @cached_property
    def save_part(self) -> RecordPart:
        from sidecar.saves.record_part import RecordPart

        return RecordPart(
            self._ground.disk,
            self.store,
            self.groups,
            self.indexes,
            self.indexer,
            self.views,
            self.answers,
            languages=self.languages,
        )

    @cached_property
    def service(self) -> RecordService:
        from sidecar.memory.record_service import RecordService

        self.follow_behind()
        return RecordService(
            store=self.store,
            groups=self.groups,
            saves=self._ground.saves,
            workers=self._ground.workers,
            limits=self._ground.config.records,
            answers=self.answers,
            paging=self._ground.paging,
            marks=self._search().marks,
            cuts_of=self._cuts_of,
        )

    @cached_property
    def status(self) -> IndexStatus:
        from sidecar.search.index_status import IndexStatus

        return IndexStatus(self.store, self.indexes, self.indexer, self.words.version)

    def followed_store(self) -> RecordStore:
        """The store, what is written to it being indexed behind."""
        self.follow_behind()
        return self.store

    def follow_behind(self) -> None:
        """Have the inboxes emptied, the index kept up to date and vectors made from now on."""
        self.mover, self.indexer  # noqa: B018 - building them is what starts them
        self._search().follow_behind()

    def settings_changed(self, save: str) -> None:
        """The settings of a save are others: what its languages have to do with is made again where they changed."""
        before = self.words.version(save)
        self.languages.forget(save)
        if self.words.version(save) != before:
            self.indexer.again(save)

    def _cuts_of(self, save: str, record: Record) -> list[Cut]:
        text = self.words.cut_text(save, record)
        if not text:
            return []
        from sidecar.search.answers import words_cut

        return [words_cut("terms", text)]

    def _words_version(self, folder: str) -> str:
        from sidecar.search.words import words_version

        return words_version(self.languages.analyzer_of_folder(folder))
