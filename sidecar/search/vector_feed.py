"""The way to the vector cache for this room: what is put is also told to the rows that wait for it.

Thread-safe. Never holds a vector; only the hashes of those that came lately.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.vectors import VectorStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REMEMBERED = 65_536


class VectorFeed:
    """``position`` counts the vectors that were put since the start."""

    def __init__(self, store: VectorStore, report: Report) -> None:
        self.store = store
        self.position = 0
        self._report = report
        self._arrived: deque[bytes] = deque(maxlen=_REMEMBERED)
        self._lock = Lock()

    def put(self, identity: EmbeddingIdentity, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Keep unit vectors by text hash. Raises Unavailable."""
        self.store.put_many(identity, vectors)
        with self._lock:
            self._arrived.extend(vectors)
            self.position += len(vectors)

    def since(self, position: int) -> list[bytes] | None:
        """The hashes that came after ``position``; None where that is too long ago to know."""
        count = self.position - position
        if not count:
            return []
        with self._lock:
            count = self.position - position
            return None if count > len(self._arrived) else list(islice(reversed(self._arrived), count))

    def load(
        self, identity: EmbeddingIdentity, hashes: Sequence[bytes]
    ) -> Iterator[tuple[bytes, NDArray[np.float32] | None]]:
        """The vectors that are there, one by one and in no certain order; None for a damaged one, which is then removed
        to be made again."""
        damaged = []
        for text, vector in self.store.load(identity, hashes):
            if vector is None:
                damaged.append(text)
            yield text, vector
        self._remove_damaged(identity, damaged)

    def mend(self, identity: EmbeddingIdentity, hashes: Sequence[bytes]) -> None:
        """Remove those of some vectors that are damaged, so that they are missing and are made again."""
        self._remove_damaged(identity, self.store.damaged(identity, hashes))

    def _remove_damaged(self, identity: EmbeddingIdentity, damaged: Sequence[bytes]) -> None:
        if damaged:
            self.store.remove(damaged, identity=identity)
            details = {"entries": str(len(damaged))}
            what = "vectors were damaged; they were left out and are made again"
            self._report(Diagnostic("vectors_damaged", what, Severity.WARNING, details))
