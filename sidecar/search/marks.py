"""Tells of records whether they have their vector, and which of them say nearly the same."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import text_hash
from sidecar.embedding.model_host import HostState
from sidecar.embedding.vectors import VectorStore
from sidecar.errors import Unavailable
from sidecar.memory.embedding_marks import NO_MARK, EmbeddingMark, Item
from sidecar.search.near_duplicates import NearDuplicates
from sidecar.search.owner_texts import Wanted
from sidecar.search.vector_maker import VectorMaker
from sidecar.search.vector_rows import VectorState
from sidecar.search.words import embedded_text

_FAILED = 5


class Marks:
    """What the record service asks; see :class:`sidecar.memory.embedding_marks.EmbeddingMarks`."""

    def __init__(self, engine: EmbeddingEngine, vectors: VectorStore, maker: VectorMaker, near: NearDuplicates) -> None:
        self._engine = engine
        self._vectors = vectors
        self._maker = maker
        self._near = near
        #: Counts texts of new records that had their vector already.
        self.hits = 0

    def of(self, items: Sequence[Item]) -> list[EmbeddingMark]:
        """The marks of records, in their order."""
        if self._engine.identity is None and self._engine.state is not HostState.LOADING:
            return [NO_MARK] * len(items)
        texts = [embedded_text(item.record) for item in items]
        hashes = [text_hash(text) if text else b"" for text in texts]
        states = self._states([text for text in hashes if text])
        near = self._known_near(items, hashes, states)
        return [
            EmbeddingMark(states.get(text, VectorState.NONE), near.get(item.content_hash, ""))
            for item, text in zip(items, hashes, strict=True)
        ]

    def of_new(self, items: Sequence[Item]) -> list[EmbeddingMark]:
        """The marks of records that were just added; those that have their vector already are compared at once."""
        marks, identity = self.of(items), self._engine.identity
        ready = [
            Wanted(item.owner, item.content_hash, b"")
            for item, mark in zip(items, marks, strict=True)
            if mark.state == VectorState.READY and not mark.near_duplicate_of
        ]
        self.hits += sum(mark.state == VectorState.READY for mark in marks)
        if not ready or identity is None:
            return marks
        self._near.look(identity, ready)
        return self.of(items)

    def flag_from(self, items: Sequence[Item], similarity: float) -> None:
        """Flag these records from another similarity on."""
        for item in items:
            self._near.flag_from(item.owner, item.content_hash, similarity)

    def _states(self, texts: Sequence[bytes]) -> dict[bytes, int]:
        identity = self._engine.identity
        pending: dict[bytes, int] = dict.fromkeys(texts, VectorState.PENDING)
        if identity is None:
            return pending
        try:
            missing = self._vectors.missing(identity, texts)
            stale = self._vectors.elsewhere(identity, missing)
        except Unavailable:
            return pending
        states: dict[bytes, int] = dict.fromkeys(texts, VectorState.READY)
        for text in missing:
            failed = _FAILED if self._maker.has_failed(text) else VectorState.PENDING
            states[text] = VectorState.STALE if text in stale else failed
        return states

    def _known_near(self, items: Sequence[Item], hashes: Sequence[bytes], states: dict[bytes, int]) -> dict[str, str]:
        """Near duplicates of records that have their vector."""
        ready = [
            Wanted(item.owner, item.content_hash, text)
            for item, text in zip(items, hashes, strict=True)
            if states.get(text) == VectorState.READY
        ]
        found: dict[str, str] = {}
        for who in dict.fromkeys(one.who for one in ready):
            found |= self._near.known(who, [one.content for one in ready if one.who == who])
        return found
