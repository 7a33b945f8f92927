"""The vectors of one owner's records as a matrix, row by row beside the owner's view, and the scan over it.

    rows of the view   0 … 99 | 100 … 163 | …      blocks: filled once, never moved, so that growing copies nothing
    state of each row  NONE (nothing to embed), PENDING, READY, STALE (only of another identity)

Vectors of another identity are never in it. All calls are made with the owner's lock held.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.search.column import Column
from sidecar.search.owner_view import OwnerView
from sidecar.search.vector_feed import VectorFeed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sidecar.embedding.identity import FloatVectors

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    States = NDArray[np.int8]

_LEAST_BLOCK = 16
_MOST_BLOCK = 4_096
# From this share of a block on, comparing all of it is quicker than picking rows out.
_DENSE = 0.25


class VectorState(IntEnum):
    """What is known of the vector of a row. The numbers are those of the contract's EmbeddingState."""

    NONE = 1
    PENDING = 2
    READY = 3
    STALE = 4


class VectorRows:
    """Follows a view: takes in the vectors of new rows, and those that came since for old ones."""

    def __init__(self, view: OwnerView, identity: EmbeddingIdentity) -> None:
        self.view = view
        self.identity = identity
        #: Damaged entries that were met when it was last followed.
        self.damaged = 0
        self._states = Column("int8")
        self._blocks: list[FloatVectors] = []
        self._starts: list[int] = []
        self._waiting: dict[bytes, list[int]] = {}
        self._compared: tuple[FloatVectors, Ints, Floats] | None = None
        self._position = 0

    def __len__(self) -> int:
        return len(self._states.data)

    @property
    def size_bytes(self) -> int:
        """Memory of the vectors."""
        return sum(block.nbytes for block in self._blocks)

    @property
    def states(self) -> States:
        """The state of each row."""
        states: States = self._states.data
        return states

    def lag(self, feed: VectorFeed) -> int:
        """How many vectors may have to be read before it is up to date."""
        return len(self.view.texts) - len(self) + len(self._arrived(feed))

    def follow(self, feed: VectorFeed) -> int:
        """Become up to date; how many vectors were read. Raises Unavailable."""
        self.damaged = 0
        arrived, position = self._arrived(feed), feed.position
        read = self._read(feed, arrived)
        first, texts = len(self), self.view.texts
        self._make_room(len(texts))
        read += self._add(feed, range(first, len(texts)))
        self._position = position
        return read

    def _add(self, feed: VectorFeed, rows: range) -> int:
        """Take in new rows; how many vectors were read."""
        new: dict[bytes, None] = {}
        texts = self.view.texts[rows.start : rows.stop]
        self._states.extend([VectorState.PENDING if text else VectorState.NONE for text in texts])
        for row, text in zip(rows, texts, strict=True):
            if text:
                new[text] = None
                self._waiting.setdefault(text, []).append(row)
        read = self._read(feed, new)
        for text in feed.store.elsewhere(self.identity, [text for text in new if text in self._waiting]):
            for row in self._waiting[text]:
                self._states.put(row, VectorState.STALE)
        return read

    def vector(self, row: int) -> FloatVectors | None:
        """The vector of one row."""
        if self.states[row] != VectorState.READY:
            return None
        number = self._block_of(row)
        vector: FloatVectors = self._blocks[number][row - self._starts[number]]
        return vector

    def similarities(self, query: FloatVectors, rows: Ints) -> Floats:
        """The cosine similarity of ascending rows to a unit vector; NaN where there is no vector. The last answer is
        kept, for nobody to write into: what is asked again while time goes on mostly sees the same rows."""
        import numpy as np

        last = self._compared
        if last is None or not (np.array_equal(last[0], query) and np.array_equal(last[1], rows)):
            last = self._compared = query, rows, self.compare(query, rows)
        return last[2]

    def compare(self, query: FloatVectors, rows: Ints) -> Floats:
        """As :meth:`similarities`, of which nothing is kept."""
        import numpy as np

        found = np.empty(len(rows))
        for start, block in zip(self._starts, self._blocks, strict=True):
            low, high = np.searchsorted(rows, (start, start + len(block))).tolist()
            inside = rows[low:high] - start
            if len(inside) > _DENSE * len(block):
                whole = _products(block[: inside[-1] + 1], query)
                found[low:high] = whole if len(whole) == len(inside) else whole[inside]
            elif len(inside):
                found[low:high] = _products(block[inside], query)
        found[self.states[rows] != VectorState.READY] = np.nan
        return found

    def _arrived(self, feed: VectorFeed) -> Sequence[bytes]:
        """Texts that waited for a vector and may have one now."""
        since = feed.since(self._position) if self._waiting else ()
        return list(self._waiting) if since is None else [text for text in since if text in self._waiting]

    def _read(self, feed: VectorFeed, texts: Iterable[bytes]) -> int:
        read = 0
        for text, vector in feed.load(self.identity, list(texts)):
            if vector is None:
                self.damaged += 1
                continue
            read += 1
            for row in self._waiting.pop(text, ()):
                self._put(row, vector)
        return read

    def _put(self, row: int, vector: FloatVectors) -> None:
        number = self._block_of(row)
        self._blocks[number][row - self._starts[number]] = vector
        self._states.put(row, VectorState.READY)
        self._compared = None

    def _block_of(self, row: int) -> int:
        return bisect_right(self._starts, row) - 1

    def _make_room(self, rows: int) -> None:
        """Add a block for what does not fit: as large as needed at first, then a quarter more each time."""
        import numpy as np

        room = self._starts[-1] + len(self._blocks[-1]) if self._blocks else 0
        if rows > room:
            size = max(rows - room, min(max(_LEAST_BLOCK, room // 4), _MOST_BLOCK) if room else 0)
            self._starts.append(room)
            self._blocks.append(np.zeros((size, self.identity.dimensions), np.float32))


def _products(vectors: FloatVectors, query: FloatVectors) -> FloatVectors:
    """Each vector times ``query``. Not by ``@``: NumPy without BLAS, as games ship it, is four times slower at it."""
    import numpy as np

    products: FloatVectors = np.einsum("ij,j->i", vectors, query)
    return products
