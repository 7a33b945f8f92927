"""Vectors of what is erased: those go whose text no other record of any save has. Synchronous; call it in a thread.

What an index does not know yet is written to it first, so that no vector stays by mistake and none is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from sidecar.embedding.vectors import VectorStore
from sidecar.errors import LorekeeperError, Unavailable
from sidecar.search.indexer import Indexer
from sidecar.search.indexes import Indexes
from sidecar.search.vector_cache import VectorCache
from sidecar.storage.keys import ActorId, folder_name


class VectorErasure:
    """``saves`` tells the ids of all saves."""

    def __init__(
        self,
        vectors: VectorStore,
        matrices: VectorCache,
        indexes: Indexes,
        indexer: Indexer,
        saves: Callable[[], Iterable[str]],
    ) -> None:
        self._vectors = vectors
        self._matrices = matrices
        self._indexes = indexes
        self._indexer = indexer
        self._saves = saves

    def doomed(self, save: str, owner: ActorId | None = None) -> list[bytes]:
        """The hashes of texts that have a vector, and that only the records of a save, or of one owner in it, have."""
        with suppress(Unavailable):
            if self._vectors.count():
                return self._only_of(save, owner)
        return []

    def remove(self, save: str, texts: Sequence[bytes]) -> int:
        """Remove the vectors of texts that were :meth:`doomed`, and what is in memory of the save; how many there
        were."""
        self._matrices.forget(save)
        try:
            removed = self._vectors.remove(texts)
            self._vectors.empty_log()
        except Unavailable:
            return 0  # nobody can read them; a rebuild of the index removes what is left
        return removed

    def _only_of(self, save: str, owner: ActorId | None) -> list[bytes]:
        folder = folder_name(owner) if owner else None
        self._complete(save)
        held = {text for _, text in self._indexes.of(save).texts(folder) if text}
        texts = self._vectors.known(sorted(held))
        for other in self._saves() if texts else ():
            self._complete(other)
        return self._indexes.unused_but_by(save, folder, texts)

    def _complete(self, save: str) -> None:
        with suppress(LorekeeperError):  # what cannot be read has no words either
            self._indexer.complete(save)
