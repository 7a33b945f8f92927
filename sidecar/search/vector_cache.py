"""The matrices of owners that were searched lately, within a bound of bytes."""

from __future__ import annotations

from collections.abc import Callable

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.errors import Unavailable
from sidecar.search.owner_view import OwnerView
from sidecar.search.vector_feed import VectorFeed
from sidecar.search.vector_rows import VectorRows
from sidecar.storage.keys import ActorId
from sidecar.storage.recent import RecentActors


class VectorCache:
    """Thread-safe; the owner of what is asked for is locked by the caller."""

    def __init__(
        self, feed: VectorFeed, repair: Callable[[ActorId], None], *, most_bytes: int, most_compared: int
    ) -> None:
        """``repair`` is told of each owner some of whose vectors were damaged."""
        self.feed = feed
        self.most_compared = most_compared
        self._repair = repair
        self._rows: RecentActors[VectorRows] = RecentActors(most_bytes)

    @property
    def size_bytes(self) -> int:
        """Memory of all matrices."""
        return self._rows.weight

    def of(self, who: ActorId, view: OwnerView, identity: EmbeddingIdentity) -> tuple[VectorRows, int]:
        """The matrix beside a view, up to date, and how many vectors were read for it. Raises Unavailable."""
        rows = self.present(who, view, identity) or VectorRows(view, identity)
        try:
            read = rows.follow(self.feed)
        except Unavailable:
            self._rows.forget(who)  # it does not know which vectors it has missed
            raise
        if rows.damaged:
            self._repair(who)
        return self._rows.keep(who, rows, weight=rows.size_bytes), read

    def present(self, who: ActorId, view: OwnerView, identity: EmbeddingIdentity) -> VectorRows | None:
        """The matrix beside a view as it is in memory now."""
        rows = self._rows.get(who)
        return rows if rows and rows.view is view and rows.identity == identity else None

    def forget(self, save: str) -> None:
        """Free what is kept of a save."""
        self._rows.exchanged(save)
