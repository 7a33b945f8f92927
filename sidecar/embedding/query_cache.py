"""Remembers the vectors of recent queries: a game asks the same thing often. Bounded, in memory, never on disk."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.embedding.identity import EmbeddingIdentity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class CachedQuery:
    """A query's unit vector, the tokens that were read and those that were not."""

    vector: NDArray[np.float32]
    tokens: int
    dropped: int


class QueryCache:
    """Least recently used first out; keys are identity and text hash, never the text."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[tuple[EmbeddingIdentity, bytes], CachedQuery] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def get(self, identity: EmbeddingIdentity, text_hash: bytes) -> CachedQuery | None:
        found = self._entries.get((identity, text_hash))
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end((identity, text_hash))
        return found

    def put(self, identity: EmbeddingIdentity, text_hash: bytes, query: CachedQuery) -> None:
        self._entries[identity, text_hash] = query
        self._entries.move_to_end((identity, text_hash))
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
