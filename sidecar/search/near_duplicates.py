"""Which record says nearly the same as an earlier one of the same owner and kind, told by their vectors.

Looked for once a record has its vector; kept in the derived index. A record is only flagged, never merged or dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.errors import Corrupt, Unavailable
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_filter import RecordFilter
from sidecar.memory.record_store import RecordStore, Stored
from sidecar.search.indexes import Indexes
from sidecar.search.owner_texts import Wanted
from sidecar.search.owner_view import OwnerView
from sidecar.search.vector_cache import VectorCache
from sidecar.search.vector_rows import VectorRows, VectorState
from sidecar.search.views import Views
from sidecar.storage.keys import ActorId, folder_name
from sidecar.storage.recent import Recent

if TYPE_CHECKING:
    from sidecar.embedding.identity import FloatVectors

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
        self._asked: Recent[tuple[ActorId, str], float] = Recent(_MOST_KEPT)
        self._kept: Recent[ActorId, dict[str, str]] = Recent(_MOST_KEPT)
        self._lock = Lock()
        #: Counts the records that were flagged since the start.
        self.flagged = 0

    def flag_from(self, who: ActorId, content: str, similarity: float) -> None:
        """Another limit for one record. It is forgotten with the process; then the usual one holds."""
        self._asked.keep((who, content), similarity)

    def known(self, who: ActorId, contents: Sequence[str]) -> Mapping[str, str]:
        """By content hash, the ids of earlier records that say nearly the same and are still there."""
        flagged = self._of(who)
        near = {content: flagged[content] for content in contents if content in flagged}
        try:
            return self._present(who, near) if near else near
        except Corrupt:
            return {}

    def of(self, stored: Stored) -> str:
        """The id of the earlier record that a record says nearly the same as; empty where there is none. For many
        records at a time: it takes no lock and, but for the first of an owner, reads no file."""
        near = self._of(stored.owner).get(stored.entry.content_hash, "")
        owner = self._store.owner_at_hand(stored.owner) if near else None
        return near if owner and near in owner.records().entries else ""

    def look(self, identity: EmbeddingIdentity, wanted: Iterable[Wanted]) -> None:
        """Look for records that say nearly the same as those that have just got their vector."""
        for who, few in groupby(sorted(wanted, key=lambda one: folder_name(one.who)), key=lambda one: one.who):
            contents = {one.content: self._limit(who, one.content) for one in few}
            asked = {content: limit for content, limit in contents.items() if limit > 0}
            near = self._found(who, identity, asked) if asked else {}
            if near:
                self._of(who).update(near)
                self._indexes.of(who.save).note_near(folder_name(who), near)
                self.flagged += len(near)

    def _of(self, who: ActorId) -> dict[str, str]:
        """All that was flagged of an owner, by content hash."""
        with self._lock:
            known = self._kept.get(who)
            if known is None:
                known = self._indexes.of(who.save).near(folder_name(who))
            return self._kept.keep(who, known)

    def _present(self, who: ActorId, near: Mapping[str, str]) -> dict[str, str]:
        with self._store.opened(who) as owner:
            entries = owner.records().entries
            return {content: record_id for content, record_id in near.items() if record_id in entries}

    def _limit(self, who: ActorId, content: str) -> float:
        asked = self._asked.get((who, content))
        return self._similarity if asked is None else asked

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
    similarities = rows.compare(vector, earlier)
    best = int(similarities.argmax())
    return view.entries[int(earlier[best])] if similarities[best] >= limit else None
