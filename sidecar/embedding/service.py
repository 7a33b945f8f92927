"""EmbeddingService: embed texts, list, load and unload models, tell figures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from sidecar.embedding import wire
from sidecar.embedding.catalogue import ModelEntry
from sidecar.embedding.engine import EmbeddingAnswer, EmbeddingEngine
from sidecar.embedding.identity import EmbeddingKind
from sidecar.embedding.listing import ListedModel, listed
from sidecar.embedding.loading import LoadPhase
from sidecar.embedding.machine import resident_bytes
from sidecar.embedding.vectors import VectorStore
from sidecar.errors import InvalidInput, NotReady, Reason
from sidecar.gen.lorekeeper.v1 import embedding_pb2 as pb
from sidecar.wire import Paging, page

_KINDS = {pb.EMBED_KIND_QUERY: EmbeddingKind.QUERY, pb.EMBED_KIND_DOCUMENT: EmbeddingKind.DOCUMENT}
_ANSWER_BYTES = 3_900_000
_FLOAT_BYTES = 4
_MODEL_WEIGHT = 1_024


class EmbeddingService:
    """Everything that takes long happens in the engine's threads."""

    def __init__(
        self,
        engine: EmbeddingEngine,
        vectors: VectorStore,
        paging: Paging,
        behind: Callable[[], Awaitable[tuple[int, int]]],
    ) -> None:
        """``behind`` tells how many records wait for their vector, and how many texts had theirs when they were
        added."""
        self._behind = behind
        self._engine = engine
        self._vectors = vectors
        self._paging = paging

    async def Embed(self, request: pb.EmbedRequest, context: Any) -> pb.EmbedResponse:
        kind = _KINDS.get(request.kind)
        if kind is None:
            raise InvalidInput("kind must be QUERY or DOCUMENT", reason=Reason.FIELD_REQUIRED, field="kind")
        self._check_model(request.model)
        self._check_answer_size(len(request.texts))
        answer = await self._engine.embed(kind, request.texts)
        return await asyncio.to_thread(_embed_response, answer, self._engine.settings.max_text_chars)

    async def ListModels(self, request: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:
        models = await asyncio.to_thread(self._listed)
        chosen = page(
            models,
            key=lambda model: model.entry.name,
            size=request.page_size,
            token=request.page_token,
            paging=self._paging,
            weight=lambda _model: _MODEL_WEIGHT,
        )
        host = self._engine.models
        return pb.ListModelsResponse(
            models=[wire.model_to(model, host.state_of(model.entry.name)) for model in chosen.items],
            next_page_token=chosen.next_token,
        )

    async def LoadModel(self, request: pb.LoadModelRequest, context: Any) -> AsyncIterator[pb.LoadModelResponse]:
        began = time.monotonic()
        async with aclosing(self._engine.load(request.name)) as steps:
            async for step in steps:
                response = wire.progress_to(step, began=began, resident=resident_bytes())
                if step.phase is LoadPhase.READY and self._engine.identity:
                    response.identity.CopyFrom(wire.identity_to(self._engine.identity))
                yield response

    async def UnloadModel(self, request: pb.UnloadModelRequest, context: Any) -> pb.UnloadModelResponse:
        loaded = self._engine.models.loaded
        if request.name and (loaded is None or loaded.entry.name != request.name):
            return pb.UnloadModelResponse(resident_bytes=resident_bytes())
        name = await self._engine.unload()
        return pb.UnloadModelResponse(unloaded=bool(name), name=name, resident_bytes=resident_bytes())

    async def GetEmbeddingStats(
        self, request: pb.GetEmbeddingStatsRequest, context: Any
    ) -> pb.GetEmbeddingStatsResponse:
        engine, loaded = self._engine, self._engine.models.loaded
        pending, hits = await self._behind()
        return pb.GetEmbeddingStatsResponse(
            work=[wire.work_to(figures) for figures in engine.stats.figures()],
            running=loaded.running if loaded else 0,
            queued=loaded.queued if loaded else 0,
            queue_capacity=engine.settings.max_queued,
            background_pending=pending,
            query_cache_hits=engine.queries.hits,
            query_cache_misses=engine.queries.misses,
            cached_vectors=await asyncio.to_thread(self._vectors.count),
            cached_vector_bytes=await asyncio.to_thread(self._vectors.bytes_on_disk),
            identity=wire.identity_to(engine.identity) if engine.identity else None,
            vector_cache_hits=hits,
        )

    def _listed(self) -> list[ListedModel]:
        models = self._engine.models
        return listed(self._engine.catalogue, self._engine.settings, models.manifests, models.failures)

    def _check_model(self, name: str) -> None:
        """A client that names a model never gets vectors of another."""
        loaded: ModelEntry | None = self._engine.models.loaded.entry if self._engine.models.loaded else None
        if name and loaded is not None and loaded.name != name:
            raise NotReady(
                "another model than the named one is loaded: load it first, or leave the name out",
                reason=Reason.NO_MODEL,
                loaded=loaded.name,
            )

    def _check_answer_size(self, texts: int) -> None:
        """An answer stays under the 4 MiB that clients take by default."""
        identity = self._engine.identity
        most = _ANSWER_BYTES // (identity.dimensions * _FLOAT_BYTES) if identity else texts
        if texts > most:
            raise InvalidInput(
                f"{texts} vectors do not fit into one answer; at most {most} do: split the call",
                reason=Reason.TOO_MANY_ITEMS,
                field="texts",
                limit="texts",
                value=most,
            )


def _embed_response(answer: EmbeddingAnswer, max_chars: int) -> pb.EmbedResponse:
    cut = {cut.index for cut in answer.cuts}
    return pb.EmbedResponse(
        identity=wire.identity_to(answer.identity),
        embeddings=[
            pb.Embedding(values=vector.tolist(), tokens=tokens, truncated=index in cut)
            for index, (vector, tokens) in enumerate(zip(answer.vectors, answer.tokens, strict=True))
        ],
        cuts=[wire.cut_to(cut, max_chars) for cut in answer.cuts],
    )
