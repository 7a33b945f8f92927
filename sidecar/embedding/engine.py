"""What the daemon and the search call: texts in, unit vectors out, by the one model that is loaded.

Called on the event loop only; models are read and run in threads of their own. Never returns a vector without the
identity that made it, nor a cut text without saying so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.identity import EmbeddingIdentity, EmbeddingKind, text_hash
from sidecar.embedding.loading import LoadProgress
from sidecar.embedding.metering import Meter, Observer
from sidecar.embedding.model_host import HostState, LoadedModel, ModelHost, StateWatch
from sidecar.embedding.provider import Embedded
from sidecar.embedding.query_cache import CachedQuery, QueryCache
from sidecar.embedding.stats import EmbeddingStats, Operation
from sidecar.embedding.texts import AcceptedTexts, TextCut, accept
from sidecar.errors import LorekeeperError, Reason, TimedOut
from sidecar.settings import EmbeddingSettings

if TYPE_CHECKING:
    from sidecar.embedding.identity import FloatVectors


@dataclass(frozen=True)
class EmbeddingAnswer:
    """Unit vectors in the order of the texts: float32, shape (texts, dimensions)."""

    identity: EmbeddingIdentity
    vectors: FloatVectors
    tokens: tuple[int, ...]
    """Tokens read of each text; 0 where the provider does not tell."""

    cuts: tuple[TextCut, ...]
    """What was cut off which text; empty where everything was read."""


class EmbeddingEngine:
    """``watch`` is told each change of the state, ``observer`` each finished call (its errors are ignored)."""

    def __init__(
        self,
        settings: EmbeddingSettings,
        catalogue: Catalogue,
        *,
        watch: StateWatch = lambda _state: None,
        observer: Observer = lambda _metrics: None,
    ) -> None:
        self.catalogue = catalogue
        self.settings = settings
        self.stats = EmbeddingStats()
        self.queries = QueryCache(settings.max_cached_queries)
        self._meter = Meter(self.stats, observer)
        self.models = ModelHost(settings, catalogue, self._meter, watch)

    @property
    def state(self) -> HostState:
        return self.models.state

    @property
    def identity(self) -> EmbeddingIdentity | None:
        """Of the model that answers now; None while there is none."""
        loaded = self.models.loaded
        return loaded.provider.identity if loaded else None

    async def start(self) -> LorekeeperError | None:
        """Load the selected model; why there is none, instead of raising: the daemon goes on without."""
        try:
            async with aclosing(self.models.load()) as steps:
                async for _step in steps:
                    pass
        except LorekeeperError as error:
            return error
        return None

    def load(self, name: str = "") -> AsyncGenerator[LoadProgress]:
        """See :meth:`ModelHost.load`."""
        return self.models.load(name)

    async def unload(self) -> str:
        """Free the model's memory once its runs have ended; its name, or ''."""
        self.queries.clear()
        return await self.models.unload(grace=self.settings.inference_seconds)

    async def close(self) -> None:
        """Stop what runs and free everything; no effect the second time."""
        await self.models.close()

    async def embed(self, kind: EmbeddingKind, texts: Sequence[str], *, within: float | None = None) -> EmbeddingAnswer:
        """Vectors for 1 to ``max_texts`` texts; ``within`` (seconds) bounds waiting and work together.

        Raises InvalidInput for texts that have no vector; NotReady (NO_MODEL, MODEL_LOADING, MODEL_UNLOADED);
        LimitReached (QUEUE_FULL); TimedOut (QUEUE_TIMEOUT, INFERENCE_TIMEOUT); Unavailable or
        LorekeeperError (INFERENCE_FAILED, TOKENIZATION_FAILED, INVALID_OUTPUT, EMBEDDING_CANCELLED).
        """
        settings = self.settings
        accepted = accept(texts, max_texts=settings.max_texts, max_chars=settings.max_text_chars)
        loaded = self.models.ready()
        async with _deadline(within):
            if kind is EmbeddingKind.DOCUMENT:
                return await self._documents(loaded, accepted)
            return await self._queries(loaded, accepted)

    async def _documents(self, loaded: LoadedModel, accepted: AcceptedTexts) -> EmbeddingAnswer:
        with self._meter.measured(Operation.DOCUMENTS) as call:
            async with loaded.doors[EmbeddingKind.DOCUMENT].lane() as call.lane:
                call.embedded = await loaded.provider.embed_documents(accepted.texts, call.lane)
            cuts = _cuts(accepted, call.embedded.tokens, call.embedded.dropped)
            call.cut_texts = len({cut.index for cut in cuts})
        embedded: Embedded = call.embedded
        return EmbeddingAnswer(loaded.provider.identity, embedded.vectors, embedded.tokens, cuts)

    async def _queries(self, loaded: LoadedModel, accepted: AcceptedTexts) -> EmbeddingAnswer:
        import numpy as np

        # One by one, since each may be known already; together they take no longer than one call may.
        async with _deadline(self.settings.queue_seconds + self.settings.inference_seconds):
            found = [await self._query(loaded, text) for text in accepted.texts]
        tokens = tuple(query.tokens for query in found)
        cuts = _cuts(accepted, tokens, tuple(query.dropped for query in found))
        vectors = np.stack([query.vector for query in found])
        return EmbeddingAnswer(loaded.provider.identity, vectors, tokens, cuts)

    async def _query(self, loaded: LoadedModel, text: str) -> CachedQuery:
        identity, key = loaded.provider.identity, text_hash(text)
        cached = self.queries.get(identity, key)
        if cached is not None:
            return cached
        with self._meter.measured(Operation.QUERY) as call:
            async with loaded.doors[EmbeddingKind.QUERY].lane() as call.lane:
                embedded = call.embedded = await loaded.provider.embed_query(text, call.lane)
            call.cut_texts = sum(map(bool, embedded.dropped))
        query = CachedQuery(embedded.vectors[0], embedded.tokens[0], embedded.dropped[0])
        self.queries.put(identity, key, query)
        return query


def _cuts(accepted: AcceptedTexts, tokens: Sequence[int], dropped: Sequence[int]) -> tuple[TextCut, ...]:
    by_tokens = (
        TextCut(index=index, unit="tokens", kept=kept, dropped=lost)
        for index, (kept, lost) in enumerate(zip(tokens, dropped, strict=True))
        if lost
    )
    return (*accepted.cuts, *by_tokens)


@asynccontextmanager
async def _deadline(seconds: float | None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise TimedOut(
            f"the texts were not embedded within {seconds:g} s; send fewer, or give more time",
            reason=Reason.INFERENCE_TIMEOUT,
        ) from None
