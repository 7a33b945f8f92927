"""Makes the vectors of texts and keeps them. Runs on the event loop; never embeds a text that has its vector.

A text that the model cannot embed is found by halving the batch; it costs its own vector and nobody else's. It is given
up only when it has failed alone twice and the model worked after each time: what failed in an outage is not at fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingIdentity, EmbeddingKind
from sidecar.errors import LorekeeperError, NotReady, Reason
from sidecar.search.vector_feed import VectorFeed

_MOST_FAILED = 100_000
# No text's fault: it would fail whatever the text.
_PASSING = (Reason.QUEUE_FULL, Reason.QUEUE_TIMEOUT, Reason.STORE_FAILED)


@dataclass(frozen=True, slots=True)
class Made:
    """How many texts have a vector now, and how many can have none."""

    done: int = 0
    failed: int = 0

    def __add__(self, other: Made) -> Made:
        return Made(self.done + other.done, self.failed + other.failed)


class _OfTheseTexts(Exception):
    """Embedding failed in a way that may lie in the texts, or in their number."""

    def __init__(self, error: LorekeeperError) -> None:
        super().__init__(error.message)
        self.error = error


class VectorMaker:
    """``failed`` holds the hashes of texts that the present model could not embed."""

    def __init__(self, engine: EmbeddingEngine, feed: VectorFeed, report: Report) -> None:
        self.failed: dict[bytes, None] = {}
        self._engine = engine
        self._feed = feed
        self._report = report
        self._failed_by: EmbeddingIdentity | None = None
        # One batch at a time: what another one is about to make is not made twice.
        self._turn = asyncio.Lock()

    @property
    def position(self) -> int:
        """Counts the vectors that were made."""
        return self._feed.position

    def has_failed(self, text: bytes) -> bool:
        """Whether the model that answers now has failed on this text."""
        return self._failed_by == self._engine.identity and text in self.failed

    async def make(self, texts: Mapping[bytes, str], *, again: bool = False) -> Made:
        """Vectors for texts by their hash; those that have one are passed over unless ``again``.

        Raises LorekeeperError where the model, and no single text, is at fault: none is ready, its queue is full, it is
        too slow, or it fails on whatever it is given.
        """
        async with self._turn:
            return await self._make(texts, again=again)

    async def _make(self, texts: Mapping[bytes, str], *, again: bool) -> Made:
        identity = self._engine.identity
        if not again and identity is not None:
            missing = await asyncio.to_thread(self._feed.store.missing, identity, list(texts))
            texts = {text: texts[text] for text in missing}
        if not texts:
            return Made()
        try:
            return await self._embed(texts)
        except _OfTheseTexts as failed:
            return await self._halved(texts, failed.error)

    async def _embed(self, texts: Mapping[bytes, str]) -> Made:
        """Raises _OfTheseTexts for what other or fewer texts may not meet."""
        try:
            return await self._put(texts)
        except LorekeeperError as error:
            if isinstance(error, NotReady) or error.reason in _PASSING:
                raise
            raise _OfTheseTexts(error) from error

    async def _put(self, texts: Mapping[bytes, str]) -> Made:
        answer = await self._engine.embed(EmbeddingKind.DOCUMENT, list(texts.values()))
        vectors = dict(zip(texts, answer.vectors, strict=True))
        await asyncio.to_thread(self._feed.put, answer.identity, vectors)
        for text in texts:
            self.failed.pop(text, None)
        return Made(done=len(texts))

    async def _halved(self, texts: Mapping[bytes, str], error: LorekeeperError) -> Made:
        """Find the texts at fault. Where the model does not work it is none of theirs, and the error is raised."""
        made, suspects = await self._apart(texts)
        await self._must_work(error)
        faults = dict[bytes, None]()
        for text, content in suspects.items():
            try:
                made += await self._embed({text: content})
            except _OfTheseTexts:
                faults[text] = None
        if faults:
            await self._must_work(error)
            self._blame(faults)
        return made + Made(failed=len(faults))

    async def _apart(self, texts: Mapping[bytes, str]) -> tuple[Made, dict[bytes, str]]:
        """Embed what can be embedded; the texts that failed alone."""
        made, suspects = Made(), dict[bytes, str]()
        waiting = _halves(texts)
        while waiting:
            part = waiting.pop()
            try:
                made += await self._embed(part)
            except _OfTheseTexts as failed:
                if len(part) > 1:
                    waiting += _halves(part)
                    continue
                suspects.update(part)
                if not made.done and len(suspects) > 1:
                    await self._must_work(failed.error)  # two texts in a row, and nothing that worked
        return made, suspects

    async def _must_work(self, error: LorekeeperError) -> None:
        """Raises ``error`` where the model embeds nothing at all."""
        try:
            await self._engine.embed(EmbeddingKind.DOCUMENT, ["ok"])
        except LorekeeperError:
            raise error from None

    def _blame(self, faults: Mapping[bytes, None]) -> None:
        if self._failed_by != self._engine.identity:
            self.failed.clear()
            self._failed_by = self._engine.identity
        self.failed.update(faults)
        while len(self.failed) > _MOST_FAILED:
            del self.failed[next(iter(self.failed))]
        details = {"texts": str(len(faults))}
        what = "some texts could not be embedded; they are found by their words, and tried again by a rebuild"
        self._report(Diagnostic("texts_not_embedded", what, Severity.WARNING, details))


def _halves(texts: Mapping[bytes, str]) -> list[Mapping[bytes, str]]:
    items = list(texts.items())
    middle = len(items) // 2
    return [dict(half) for half in (items[middle:], items[:middle]) if half]
