"""Which record says nearly the same as an earlier one of the same owner and kind, told by their vectors.

Looked for once a record has its vector; kept in the derived index. A record is only flagged, never merged or dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.errors import Corrupt, Unavailable
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_filter import RecordFilter
from sidecar.memory.record_store import RecordStore
from sidecar.search.indexer import Indexes
from sidecar.search.owner_texts import Wanted
from sidecar.search.owner_view import OwnerView
from sidecar.search.vector_cache import VectorCache
from sidecar.search.vector_rows import VectorRows, VectorState
from sidecar.search.views import Views
from sidecar.storage.keys import ActorId, folder_name

if TYPE_CHECKING:
    from sidecar.embedding.identity import FloatVectors

K = TypeVar("K")
V = TypeVar("V")
_MOST_KEPT = 65_536


class NearDuplicates:
    """Thread-safe. ``similarity`` is the cosine from which on a record is flagged; 0: none is."""

    def __init__(
        self, store: RecordStore, views: Views, matrices: VectorCache, indexes: Indexes, *, similarity: float
    ) -> None:
        self._store = store
        self._views = views
        self._matrices = matrices
        self._indexes = indexes
        self._similarity = similarity
        self._asked: OrderedDict[tuple[ActorId, str], float] = OrderedDict()
        self._recent: OrderedDict[tuple[ActorId, str], str] = OrderedDict()
        self._lock = Lock()

    def flag_from(self, who: ActorId, content: str, similarity: float) -> None:
        """Another limit for one record. It is forgotten with the process; then the usual one holds."""
        with self._lock:
            _keep(self._asked, (who, content), similarity)

    def known(self, who: ActorId, contents: Sequence[str]) -> Mapping[str, str]:
        """By content hash, the ids of earlier records that say nearly the same and are still there."""
        near = self._indexes.of(who.save).near(folder_name(who), contents) if contents else {}
        with self._lock:
            recent = {content: self._recent[who, content] for content in contents if (who, content) in self._recent}
        near |= recent
        if not near:
            return near
        try:
            with self._store.opened(who) as owner:
                entries = owner.records().entries
                return {content: record_id for content, record_id in near.items() if record_id in entries}
        except Corrupt:
            return {}

    def look(self, identity: EmbeddingIdentity, wanted: Iterable[Wanted]) -> None:
        """Look for records that say nearly the same as those that have just got their vector."""
        for who, few in groupby(sorted(wanted, key=lambda one: folder_name(one.who)), key=lambda one: one.who):
            contents = {one.content: self._limit(who, one.content) for one in few}
            asked = {content: limit for content, limit in contents.items() if limit > 0}
            near = self._found(who, identity, asked) if asked else {}
            with self._lock:
                for content, record_id in near.items():
                    _keep(self._recent, (who, content), record_id)
            if near:
                self._indexes.of(who.save).note_near(folder_name(who), near)

    def _limit(self, who: ActorId, content: str) -> float:
        with self._lock:
            return self._asked.get((who, content), self._similarity)

    def _found(self, who: ActorId, identity: EmbeddingIdentity, limits: Mapping[str, float]) -> dict[str, str]:
        try:
            with self._store.opened(who) as owner:
                view, _ = self._views.of(owner)
                rows, _ = self._matrices.of(who, view, identity)
                entries = owner.records().by_content(limits)
                pairs = ((entry, _nearest(view, rows, entry, limits[entry.content_hash])) for entry in entries)
                return {entry.content_hash: near.head.record_id for entry, near in pairs if near is not None}
        except (Corrupt, Unavailable):
            return {}


def _keep(bounded: OrderedDict[K, V], key: K, value: V) -> None:
    bounded[key] = value
    while len(bounded) > _MOST_KEPT:
        bounded.popitem(last=False)


def _nearest(view: OwnerView, rows: VectorRows, entry: Entry, limit: float) -> Entry | None:
    """The earlier record of the same kind that is most similar, if any reaches the limit."""
    import numpy as np

    (own,) = view.rows_of([entry])
    vector: FloatVectors | None = rows.vector(own)
    view.columns.follow()
    same = view.columns.allowed(RecordFilter(kinds=frozenset([entry.head.kind]), include_expired=True))[:own]
    earlier = np.flatnonzero(same & (rows.states[:own] == VectorState.READY))
    if vector is None or not len(earlier):
        return None
    similarities = rows.similarities(vector, earlier)
    best = int(similarities.argmax())
    return view.entries[int(earlier[best])] if similarities[best] >= limit else None
