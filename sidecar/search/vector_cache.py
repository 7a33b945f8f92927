"""The matrices of owners that were searched lately, within a bound of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.errors import Unavailable
from sidecar.search.owner_view import OwnerView
from sidecar.search.vector_feed import VectorFeed
from sidecar.search.vector_rows import VectorRows
from sidecar.storage.keys import ActorId


class VectorCache:
    """Thread-safe; the owner of what is asked for is locked by the caller."""

    def __init__(
        self, feed: VectorFeed, repair: Callable[[ActorId], None], *, most_bytes: int, most_compared: int
    ) -> None:
        """``repair`` is told of each owner some of whose vectors were damaged."""
        self.feed = feed
        self.most_compared = most_compared
        self._repair = repair
        self._most = most_bytes
        self._rows: OrderedDict[ActorId, tuple[VectorRows, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def size_bytes(self) -> int:
        """Memory of all matrices."""
        return self._bytes

    def of(self, who: ActorId, view: OwnerView, identity: EmbeddingIdentity) -> tuple[VectorRows, int]:
        """The matrix beside a view, up to date, and how many vectors were read for it. Raises Unavailable."""
        rows = self.present(who, view, identity) or VectorRows(view, identity)
        try:
            read = rows.follow(self.feed)
        except Unavailable:
            with self._lock:
                self._drop(who)  # it does not know which vectors it has missed
            raise
        if rows.damaged:
            self._repair(who)
        self._keep(who, rows)
        return rows, read

    def present(self, who: ActorId, view: OwnerView, identity: EmbeddingIdentity) -> VectorRows | None:
        """The matrix beside a view as it is in memory now."""
        with self._lock:
            rows, _ = self._rows.get(who, (None, 0))
        return rows if rows and rows.view is view and rows.identity == identity else None

    def forget(self, save: str) -> None:
        """Free what is kept of a save."""
        with self._lock:
            for who in [who for who in self._rows if who.save == save]:
                self._drop(who)

    def _keep(self, who: ActorId, rows: VectorRows) -> None:
        size = rows.size_bytes
        with self._lock:
            self._drop(who)
            self._rows[who] = rows, size
            self._bytes += size
            while self._bytes > self._most and len(self._rows) > 1:
                self._drop(next(iter(self._rows)))

    def _drop(self, who: ActorId) -> None:
        _, size = self._rows.pop(who, (None, 0))
        self._bytes -= size
