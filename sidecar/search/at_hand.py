"""What can be answered at once: without the disk, without waiting for anybody, in a few hundred microseconds.

A query of a hot owner is answered on the event loop itself: handing it to a thread would take longer than the answer.
Whatever would wait or take long says so by :class:`NotAtHand`, and the query is run in a thread from its beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.memory.groups import GroupStore
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_catalog import Catalog
from sidecar.memory.record_store import RecordStore, Stored
from sidecar.search.owner_view import OwnerView
from sidecar.search.recall import Query
from sidecar.search.vector_cache import VectorCache
from sidecar.search.vector_rows import VectorRows
from sidecar.search.views import Views
from sidecar.search.ways import has_numpy
from sidecar.storage.keys import ActorId
from sidecar.storage.save_state import SaveStates

_MOST_RECORDS = 2_000
# The same where no NumPy hastens it.
_MOST_PLAIN_RECORDS = 500
_MOST_NEW = 8
_MOST_TEXT = 1_000
_MOST_HITS = 64
_MOST_OWNERS = 8


class NotAtHand(Exception):
    """The answer would have to wait; run the query in a thread."""


class AtHand:
    """A record store that answers from memory or not at all."""

    def __init__(self, store: RecordStore, groups: GroupStore, saves: SaveStates, views: Views) -> None:
        self._store = store
        self._saves = saves
        self._groups = groups
        self._views = views
        self._most_records = _MOST_RECORDS if has_numpy() else _MOST_PLAIN_RECORDS

    def catalog(self, save: str) -> Catalog:
        """The owners of a save that is open."""
        catalog = self._store.catalog_at_hand(save)
        if catalog is None or not self._groups.knows(save):
            raise NotAtHand
        return catalog

    def version(self, save: str) -> Hashable:
        """What every answer about an open save depends on; another one after each change."""
        catalog = self.catalog(save)
        return self._saves.state(save), catalog.changes, id(catalog), id(self._groups.read(save))

    @contextmanager
    def opened(self, who: ActorId) -> Iterator[OpenOwner]:
        """The owner, if it is read, free, small, and its view nearly up to date: what that lacks is in memory. The disk
        may not be looked at, since it stands still for somebody now and then."""
        owner = self._store.owner_at_hand(who)
        if owner is None or not owner.lock.acquire(blocking=False):
            raise NotAtHand
        try:
            records = owner.records()
            behind = self._views.behind(owner)
            if len(records.entries) > self._most_records or len(behind) > _MOST_NEW:
                raise NotAtHand
            deque(self.stored_many(owner, list(behind)), maxlen=0)
            yield owner
        finally:
            owner.lock.release()

    def stored(self, owner: OpenOwner, entry: Entry) -> Stored:
        """A record that is in memory."""
        stored = self._store.remembered(owner, entry)
        if stored is None:
            raise NotAtHand
        return stored

    def stored_many(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[Stored]:
        """Records that are in memory."""
        return (self.stored(owner, entry) for entry in entries)


class MatricesAtHand:
    """Matrices that are in memory and up to date."""

    def __init__(self, cache: VectorCache) -> None:
        self._cache = cache

    @property
    def most_compared(self) -> int:
        return self._cache.most_compared

    def of(self, who: ActorId, view: OwnerView, identity: EmbeddingIdentity) -> tuple[VectorRows, int]:
        """The matrix as it is."""
        rows = self._cache.present(who, view, identity)
        if rows is None or rows.lag(self._cache.feed):
            raise NotAtHand
        return rows, 0


def is_quick(query: Query) -> bool:
    """Whether a query is worth trying: short, for a few hits of a few owners, without looking into texts or putting all
    that is found in order one by one."""
    order = query.options.order
    return (
        len(query.text) <= _MOST_TEXT
        and query.limit <= _MOST_HITS
        and len(query.owners) <= _MOST_OWNERS
        and not query.wanted.text
        and not query.explain
        and (order is None or order.source_order_weight > 0)
    )
