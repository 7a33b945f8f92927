"""A local model as a provider: tokens, batches and runs in its own few threads; documents stand behind the game."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from sidecar.embedding.admission import Lane
from sidecar.embedding.batching import BatchBounds, batches
from sidecar.embedding.identity import EmbeddingKind
from sidecar.embedding.machine import forget_model_memory, lower_thread_priority, return_free_memory
from sidecar.embedding.manifest import ModelManifest
from sidecar.embedding.provider import Embedded
from sidecar.embedding.session import OnnxSession, RunControl, cancelled
from sidecar.embedding.tokenizer import TokenIds, Tokenizer

if TYPE_CHECKING:
    from sidecar.embedding.identity import FloatVectors

T = TypeVar("T")
_TEXTS_BETWEEN_STOPS = 16
_WARM_UP = "warm"


@dataclass(frozen=True)
class OnnxModel:
    """What was loaded from a model's folder."""

    manifest: ModelManifest
    tokenizer: Tokenizer
    session: OnnxSession
    bounds: BatchBounds

    def warm_up(self) -> None:
        """One run, so that a graph that cannot answer is found out before it is asked."""
        (tokens,) = self.tokenizer.encode([_WARM_UP], self.manifest.max_tokens)
        self.session.vectors([tokens.ids], self.tokenizer.pad_id, RunControl())


@dataclass
class _Work:
    """One call between its runs."""

    texts: list[str]
    kind: EmbeddingKind
    control: RunControl
    tokens: list[TokenIds] = field(default_factory=list)
    plan: list[list[int]] = field(default_factory=list)
    done: dict[int, FloatVectors] = field(default_factory=dict)
    tokenization: float = 0.0
    inference: float = 0.0


class OnnxProvider:
    """Owns the model and the threads that run it."""

    def __init__(self, model: OnnxModel, *, threads: int) -> None:
        self.identity = model.manifest.identity
        self._model: OnnxModel | None = model
        self._declared = model.manifest.declaration
        # Somebody waits for a query; documents are embedded while nobody else needs the processor.
        self._threads = {
            EmbeddingKind.QUERY: ThreadPoolExecutor(threads, "query"),
            EmbeddingKind.DOCUMENT: ThreadPoolExecutor(threads, "documents", lower_thread_priority),
        }

    async def embed_query(self, text: str, lane: Lane) -> Embedded:
        return await self._embed([text], EmbeddingKind.QUERY, lane)

    async def embed_documents(self, texts: Sequence[str], lane: Lane) -> Embedded:
        return await self._embed(texts, EmbeddingKind.DOCUMENT, lane)

    async def close(self) -> None:
        self._model = None
        for threads in self._threads.values():
            await asyncio.to_thread(threads.shutdown)
        await asyncio.to_thread(forget_model_memory)

    async def _embed(self, texts: Sequence[str], kind: EmbeddingKind, lane: Lane) -> Embedded:
        model = self._model
        if model is None:
            raise cancelled()
        prefix = self._declared.prefix(kind)
        work = _Work([prefix + text for text in texts], kind, RunControl())
        await self._in_thread(lane, work, lambda: _begin(model, work))
        for run in range(1, len(work.plan)):
            await self._in_thread(lane, work, lambda run=run: _run(model, work, run))  # type: ignore[misc]
        return _answer(work)

    async def _in_thread(self, lane: Lane, work: _Work, step: Callable[[], None]) -> None:
        def begin() -> asyncio.Future[None]:
            return asyncio.get_running_loop().run_in_executor(self._threads[work.kind], step)

        await lane.run(begin, work.control.stop)


def _begin(model: OnnxModel, work: _Work) -> None:
    """Tokens, the plan and the first run: one visit to the thread for a query."""
    started = time.monotonic()
    for at in range(0, len(work.texts), _TEXTS_BETWEEN_STOPS):
        if work.control.stopped:
            raise cancelled()
        part = work.texts[at : at + _TEXTS_BETWEEN_STOPS]
        work.tokens += model.tokenizer.encode(part, model.manifest.max_tokens)
    work.plan = batches([len(tokens.ids) for tokens in work.tokens], model.bounds)
    work.tokenization = time.monotonic() - started
    _run(model, work, 0)


def _run(model: OnnxModel, work: _Work, number: int) -> None:
    started = time.monotonic()
    batch = [work.tokens[position].ids for position in work.plan[number]]
    work.done[number] = model.session.vectors(batch, model.tokenizer.pad_id, work.control)
    work.inference += time.monotonic() - started
    if 0 < number == len(work.plan) - 1:
        return_free_memory()


def _answer(work: _Work) -> Embedded:
    """The rows back in the order of the texts."""
    import numpy as np

    stacked = np.concatenate([work.done[number] for number in range(len(work.plan))])
    vectors = np.empty_like(stacked)
    vectors[[position for batch in work.plan for position in batch]] = stacked
    return Embedded(
        vectors=vectors,
        tokens=tuple(len(tokens.ids) for tokens in work.tokens),
        dropped=tuple(tokens.dropped for tokens in work.tokens),
        batch_sizes=tuple(len(batch) for batch in work.plan),
        tokenization=work.tokenization,
        inference=work.inference,
    )
