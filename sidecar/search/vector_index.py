"""How complete the vectors of a save are, making those that are missing, and removing those that nobody needs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.model_host import HostState
from sidecar.embedding.vectors import VectorStore
from sidecar.errors import NotReady, Reason
from sidecar.memory.record_store import RecordStore, lock_order
from sidecar.search.index_status import Phase, Rebuild
from sidecar.search.indexes import Indexes
from sidecar.search.outcome import Degraded
from sidecar.search.owner_texts import OwnerTexts, Wanted
from sidecar.search.recent_answers import RecentAnswers
from sidecar.search.vector_feed import VectorFeed
from sidecar.search.vector_garbage import VectorGarbage
from sidecar.search.vector_maker import VectorMaker
from sidecar.storage.keys import ActorId, folder_name

_MOST_COUNTED = 1_024


@dataclass(frozen=True, slots=True)
class VectorCounts:
    """Records with a vector of the active identity (or with nothing to embed), those with one of another, and those
    whose vector is damaged: these are none of both."""

    ready: int = 0
    stale: int = 0
    damaged: int = 0


class VectorIndex:
    """``rebuild`` runs on the event loop; ``counts`` in a thread."""

    def __init__(
        self,
        engine: EmbeddingEngine,
        vectors: VectorStore,
        feed: VectorFeed,
        store: RecordStore,
        indexes: Indexes,
        texts: OwnerTexts,
        maker: VectorMaker,
        garbage: VectorGarbage,
        *,
        batch: int,
    ) -> None:
        self._engine = engine
        self._vectors = vectors
        self._feed = feed
        self._store = store
        self._indexes = indexes
        self._texts = texts
        self._maker = maker
        self._garbage = garbage
        self._batch = batch
        self._counted = RecentAnswers(_MOST_COUNTED)

    @property
    def identity(self) -> EmbeddingIdentity | None:
        """Of the model that answers now."""
        return self._engine.identity

    @property
    def version(self) -> tuple[object, ...]:
        """What answers depend on besides records: the model, whether it can be used, and the vectors that came."""
        return self.identity, self._engine.state, self._maker.position

    def prevented(self) -> Degraded | int:
        """Why no vectors can be made now; 0 where they can."""
        if self.identity is not None:
            return 0
        states = {HostState.LOADING: Degraded.MODEL_LOADING, HostState.FAILED: Degraded.MODEL_FAILED}
        return states.get(self._engine.state, Degraded.NO_MODEL)

    def counts(self, save: str, owner: ActorId | None = None) -> VectorCounts:
        """How the vectors of a save, or of one owner in it, stand. All of them are read, and not again for as long as
        nothing was written. Raises Unavailable."""
        identity = self.identity
        if identity is None:
            return VectorCounts()
        version = identity, self._indexes.of(save).version(), self._vectors.version()
        known: VectorCounts | None = self._counted.known((save, owner), version)
        if known is None:
            known = self._count(save, owner, identity)
            self._counted.keep((save, owner), version, known)
        return known

    def _count(self, save: str, owner: ActorId | None, identity: EmbeddingIdentity) -> VectorCounts:
        folder = folder_name(owner) if owner else None
        held = Counter(text for _, text in self._indexes.of(save).texts(folder))
        texts = [text for text in held if text]
        damaged = set(self._vectors.damaged(identity, texts))
        missing = {*self._vectors.missing(identity, texts), *damaged}
        stale = self._vectors.elsewhere(identity, [*(missing - damaged)])
        return VectorCounts(
            ready=held.total() - sum(held[text] for text in missing),
            stale=sum(held[text] for text in stale),
            damaged=sum(held[text] for text in damaged),
        )

    async def rebuild(self, save: str, owner: ActorId | None = None, *, force: bool = False) -> AsyncIterator[Rebuild]:
        """Make the vectors that are missing (all with ``force``), batch by batch; each is safe when it is told.

        Raises NotReady without a model, and what making vectors raises.
        """
        if self.identity is None:
            raise NotReady("no embedding model is ready", reason=Reason.NO_MODEL, field="vectors")
        catalog = await asyncio.to_thread(self._store.catalog, save)
        owners = sorted([owner] if owner else catalog.owners(), key=lock_order)
        step = Rebuild(Phase.VECTORS, total=sum(map(catalog.count, owners)))
        yield step
        for who in owners:
            async for done, skipped, failed in self._owner(who, force=force):
                step = replace(step, done=step.done + done, skipped=step.skipped + skipped, failed=step.failed + failed)
                yield step
        yield replace(step, phase=Phase.CLEANUP, removed=await self._cleaned())

    async def _owner(self, who: ActorId, *, force: bool) -> AsyncIterator[tuple[int, int, int]]:
        """Records done, skipped and failed, batch by batch."""
        wanted = await self._wanted(who, force=force)
        passed_over = max(0, self._store.catalog(who.save).count(who) - len(wanted))
        yield passed_over, passed_over, 0
        for start in range(0, len(wanted), self._batch):
            few = wanted[start : start + self._batch]
            made = await self._maker.make(await asyncio.to_thread(self._texts.read, few), again=force)
            yield len(few), 0, made.failed

    async def _wanted(self, who: ActorId, *, force: bool) -> list[Wanted]:
        identity = self.identity
        if force or identity is None:
            return await asyncio.to_thread(self._texts.all_of, who)
        return await asyncio.to_thread(self._missing, who, identity)

    def _missing(self, who: ActorId, identity: EmbeddingIdentity) -> list[Wanted]:
        self._feed.mend(identity, [one.text for one in self._texts.all_of(who)])
        return self._texts.missing(who, identity)

    async def _cleaned(self) -> int:
        identity = self.identity
        return await asyncio.to_thread(self._garbage.collect, identity) if identity else 0
