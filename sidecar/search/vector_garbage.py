"""Removing the vectors of texts that are gone. Vectors are shared by all saves: one is garbage only where no record of
any save has its text."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.vectors import VectorStore
from sidecar.errors import Unavailable
from sidecar.search.indexes import Indexes


class VectorGarbage:
    """Removes vectors of texts that are gone; thread-safe."""

    def __init__(self, vectors: VectorStore, indexes: Indexes) -> None:
        self._vectors = vectors
        self._indexes = indexes

    def released(self, texts: Sequence[bytes]) -> None:
        """Records with these texts were, or may have been, removed. Where the cache cannot be used, a later rebuild
        removes the vectors."""
        for start in range(0, len(texts), 500):
            unused = self._indexes.unused([text for text in texts[start : start + 500] if text])
            try:
                if unused and self._vectors.remove(unused):
                    self._vectors.empty_log()
            except Unavailable:
                return

    def collect(self, identity: EmbeddingIdentity) -> int:
        """Remove every vector of an identity that no record of any save needs; how many. Raises Unavailable."""

        def in_use(texts: Sequence[bytes]) -> set[bytes]:
            return set(texts) - set(self._indexes.unused(texts))

        return self._vectors.collect(identity, in_use)
