"""The rooms of search by words and by meaning, and of embedding behind the journals; built when first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.daemon.ground import Ground
    from sidecar.daemon.record_rooms import RecordRooms
    from sidecar.embedding.engine import EmbeddingEngine
    from sidecar.embedding.vectors import VectorStore
    from sidecar.gen.lorekeeper.v1.save_pb2 import SaveSettings
    from sidecar.search.at_hand import AtHand
    from sidecar.search.embedding_queue import EmbeddingQueue
    from sidecar.search.finder import Finder
    from sidecar.search.marks import Marks
    from sidecar.search.meaning import Meanings
    from sidecar.search.near_duplicates import NearDuplicates
    from sidecar.search.options import Options
    from sidecar.search.owner_texts import OwnerTexts
    from sidecar.search.service import SearchService
    from sidecar.search.vector_cache import VectorCache
    from sidecar.search.vector_erasure import VectorErasure
    from sidecar.search.vector_feed import VectorFeed
    from sidecar.search.vector_garbage import VectorGarbage
    from sidecar.search.vector_index import VectorIndex
    from sidecar.search.vector_maker import VectorMaker
    from sidecar.storage.keys import ActorId


class SearchRooms:
    """What belongs to search, each built once. Made where no event loop runs, nothing is embedded."""

    def __init__(
        self,
        ground: Ground,
        *,
        records: RecordRooms,
        engine: EmbeddingEngine,
        vectors: VectorStore,
        settings_of: Callable[[str], SaveSettings],
        archived_for: Callable[[str], bool],
        sources_of: Callable[[ActorId], Sequence[ActorId]],
    ) -> None:
        """``settings_of`` tells what a save has put as its defaults, ``archived_for`` whether a role's archived turns
        are searched, ``sources_of`` whom the role of an actor lets it search."""
        self._ground = ground
        self._archived_for = archived_for
        self._sources_of = sources_of
        self._records = records
        self._engine = engine
        self._vectors = vectors
        self._settings_of = settings_of
        self._loop = _running_loop()

    async def close(self) -> None:
        """Embed no more; what is left is found again at the next start."""
        if "queue" in self.__dict__:
            await self.queue.close()

    async def behind(self) -> tuple[int, int]:
        """How many records wait for their vector, and how many texts had theirs when they were added."""
        return await self.queue.pending(), self.marks.hits

    def follow_behind(self) -> None:
        """Have vectors made of what is remembered, and removed of what is forgotten, from now on."""
        self._records.indexer.written = self.queue.changed
        self._records.indexes.released = self.garbage.released
        self._records.indexes.opening = self.queue.opened

    @cached_property
    def at_hand(self) -> AtHand:
        from sidecar.search.at_hand import AtHand

        return AtHand(self._records.store, self._records.groups, self._ground.saves, self._records.views)

    @cached_property
    def finder(self) -> Finder:
        from sidecar.search.at_hand import MatricesAtHand
        from sidecar.search.finder import Finder
        from sidecar.search.recall import Recall

        records, ground = self._records, self._ground
        parts = (records.groups, ground.saves, records.words, records.views)
        at_hand = Recall(self.at_hand, *parts, MatricesAtHand(self.matrices))
        recall = Recall(records.store, *parts, self.matrices)
        return Finder(recall, at_hand, self.meanings, ground.workers, ground.report)

    @cached_property
    def meanings(self) -> Meanings:
        from sidecar.search.meaning import Meanings

        return Meanings(self._engine, self._loop, seconds=self._ground.config.search.query_embedding_seconds)

    @cached_property
    def feed(self) -> VectorFeed:
        from sidecar.search.vector_feed import VectorFeed

        return VectorFeed(self._vectors, self._ground.report)

    @cached_property
    def matrices(self) -> VectorCache:
        from sidecar.search.vector_cache import VectorCache

        settings = self._ground.config.search
        return VectorCache(
            self.feed,
            lambda who: self.queue.changed(who),
            most_bytes=settings.max_cached_vector_bytes,
            most_compared=settings.max_compared,
        )

    @cached_property
    def texts(self) -> OwnerTexts:
        from sidecar.search.owner_texts import OwnerTexts

        return OwnerTexts(self._records.store, self._records.indexes, self._vectors)

    @cached_property
    def maker(self) -> VectorMaker:
        from sidecar.search.vector_maker import VectorMaker

        return VectorMaker(self._engine, self.feed, self._ground.report)

    @cached_property
    def garbage(self) -> VectorGarbage:
        from sidecar.search.vector_garbage import VectorGarbage

        return VectorGarbage(self._vectors, self._records.indexes)

    @cached_property
    def vector_erasure(self) -> VectorErasure:
        from sidecar.search.vector_erasure import VectorErasure

        records = self._records
        return VectorErasure(self._vectors, self.matrices, records.indexes, records.indexer, self._ground.actors.saves)

    @cached_property
    def near_duplicates(self) -> NearDuplicates:
        from sidecar.search.near_duplicates import NearDuplicates

        records, similarity = self._records, self._ground.config.search.near_duplicate_similarity
        return NearDuplicates(records.store, records.views, self.matrices, records.indexes, similarity=similarity)

    @cached_property
    def marks(self) -> Marks:
        from sidecar.search.marks import Marks

        return Marks(self._engine, self._vectors, self.maker, self.near_duplicates)

    @cached_property
    def index(self) -> VectorIndex:
        from sidecar.search.vector_index import VectorIndex

        return VectorIndex(
            self._engine,
            self._vectors,
            self.feed,
            self._records.store,
            self._records.indexes,
            self.texts,
            self.maker,
            self.garbage,
            batch=self._ground.config.search.embedding_batch,
        )

    @cached_property
    def queue(self) -> EmbeddingQueue:
        from sidecar.search.embedding_queue import EmbeddingQueue

        return EmbeddingQueue(
            self._engine,
            self.texts,
            self.maker,
            self.near_duplicates,
            self.garbage,
            self.meanings,
            lambda save: self._records.store.catalog(save).owners(),
            self._loop,
            self._ground.config.search,
            self._ground.report,
        )

    def options_of(self, save: str) -> Options:
        """How a save is searched by who names no options."""
        from sidecar.gen.lorekeeper.v1 import search_pb2
        from sidecar.search.option_wire import options_from

        return options_from(search_pb2.SearchRequest(), self._settings_of(save))

    @cached_property
    def service(self) -> SearchService:
        from sidecar.search.service import SearchService

        self._records.follow_behind()
        return SearchService(
            finder=self.finder,
            at_hand=self.at_hand,
            status=self._records.status,
            vectors=self.index,
            near=self.near_duplicates,
            settings_of=self._settings_of,
            archived_for=self._archived_for,
            sources_of=self._sources_of,
            saves=self._ground.saves,
            workers=self._ground.workers,
            limits=self._ground.config.search,
            record_limits=self._ground.config.records,
        )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
