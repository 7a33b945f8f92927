"""What a query means: its vector, made before the records are looked at, or why there is none.

Runs on the event loop; a caller in a thread of its own asks by :meth:`Meanings.from_thread`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingIdentity, EmbeddingKind, text_hash
from sidecar.embedding.model_host import HostState
from sidecar.embedding.texts import TextCut
from sidecar.errors import LimitReached, LorekeeperError, NotReady, Reason, TimedOut
from sidecar.search.outcome import Degraded

if TYPE_CHECKING:
    from sidecar.embedding.identity import FloatVectors


@dataclass(frozen=True, slots=True)
class Meaning:
    """``vector`` is of unit length. Without one, ``degraded`` and ``error`` say why; both empty: nobody asked."""

    identity: EmbeddingIdentity | None = None
    vector: FloatVectors | None = None
    milliseconds: float = 0.0
    reused: bool = False
    cuts: tuple[TextCut, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    error: LorekeeperError | None = None


NOT_ASKED = Meaning()
# Who has just searched may search again: seconds.
_LULL = 0.05


class Meanings:
    """Embeds queries within ``seconds``, and knows how many are on their way, so that others make room for them."""

    def __init__(self, engine: EmbeddingEngine, loop: asyncio.AbstractEventLoop | None, *, seconds: float) -> None:
        self._engine = engine
        self._loop = loop
        self._seconds = seconds
        self._under_way = 0
        self._ended = 0.0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def of(self, text: str) -> Meaning:
        """The meaning of a query; what prevents it is told in the answer and never raised."""
        begun, reused = perf_counter(), self.known(text)
        try:
            answer = await self._engine.embed(EmbeddingKind.QUERY, [text.replace("\0", " ")], within=self._seconds)
        except LorekeeperError as error:
            return Meaning(degraded=(self._why(error),), error=error)
        return Meaning(
            identity=answer.identity,
            vector=answer.vectors[0],
            milliseconds=(perf_counter() - begun) * 1_000,
            reused=reused,
            cuts=answer.cuts,
        )

    @property
    def ready(self) -> bool:
        """Whether a model is there to be asked."""
        return self._engine.identity is not None

    def known(self, text: str) -> bool:
        """Whether the meaning of a query is at hand: it was asked before."""
        engine = self._engine
        return engine.identity is not None and engine.queries.holds(
            engine.identity, text_hash(text[: engine.settings.max_text_chars])
        )

    def from_thread(self, text: str) -> Meaning:
        """The same, for a caller that is not on the event loop."""
        if self._loop is None:
            return Meaning(degraded=(Degraded.NO_MODEL,))
        return asyncio.run_coroutine_threadsafe(self.of(text), self._loop).result()

    @contextmanager
    def searching(self) -> Iterator[None]:
        """A search is under way."""
        self._under_way += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._ended = perf_counter()
                self._quiet.set()

    async def quiet(self, *, at_most: float) -> bool:
        """Wait until no search is under way and none has just ended (the next may follow), ``at_most`` so many
        seconds; whether it is quiet now."""
        try:
            async with asyncio.timeout(at_most):
                while self._under_way or perf_counter() < self._ended + _LULL:
                    await self._quiet.wait()
                    await asyncio.sleep(_LULL)
        except TimeoutError:
            return False
        return True

    def _why(self, error: LorekeeperError) -> Degraded:
        if isinstance(error, NotReady):
            if error.reason is Reason.MODEL_LOADING:
                return Degraded.MODEL_LOADING
            return Degraded.MODEL_FAILED if self._engine.state is HostState.FAILED else Degraded.NO_MODEL
        if isinstance(error, TimedOut):
            return Degraded.EMBEDDING_TIMEOUT
        if isinstance(error, LimitReached) and error.reason is Reason.QUEUE_FULL:
            return Degraded.EMBEDDING_QUEUE_FULL
        return Degraded.EMBEDDING_FAILED
