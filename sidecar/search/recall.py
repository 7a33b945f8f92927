"""One search: what may be seen, which of it answers the words, in which order, and an account of it all.

    owners, groups, shares → visible rows → words (BM25) → order → hits

All owners of a query are locked while it runs, so that it sees one moment of the save. Hits are the stored records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Protocol

from sidecar.errors import Corrupt
from sidecar.memory.groups import Group, GroupStore
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_catalog import Catalog
from sidecar.memory.record_filter import RecordFilter
from sidecar.memory.record_store import Stored, lock_order
from sidecar.memory.records import searched_text
from sidecar.search.access import OWN, SOURCE, Known, Reach, by_share
from sidecar.search.ranking import Ranking, WordScore
from sidecar.search.views import Views
from sidecar.search.visible import Part, Visible, visible_parts
from sidecar.search.words import WordSource
from sidecar.storage.keys import ActorId
from sidecar.storage.save_state import SaveState, SaveStates


class Stage(IntEnum):
    """A step of a search. The numbers are those of the contract."""

    SNAPSHOT = 2
    WORDS = 3


class Degraded(IntEnum):
    """Why an answer is less than it could be. The numbers are those of the contract."""

    NO_MODEL = 1
    INDEX_DAMAGED = 9


@dataclass(frozen=True, slots=True)
class StageReport:
    """What a step did: milliseconds, rows looked at, rows passed on, whether it used what was there."""

    stage: Stage
    milliseconds: float
    scanned: int
    candidates: int
    reused: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What ``who`` asks. ``owners`` are checked already; groups and shares widen them. An empty ``text`` asks for
    everything that passes the filter."""

    who: ActorId
    owners: Sequence[ActorId]
    text: str
    wanted: RecordFilter
    limit: int
    groups: bool = True
    shared: bool = True
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was found: ``score`` decided its place, ``words_score`` (BM25) is what its words were worth."""

    stored: Stored
    score: float
    words_score: float
    words_rank: int
    known: Known
    explained: Sequence[WordScore] = ()


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was found, as of one state of the save; ``count`` tells how many records the words were found in."""

    state: SaveState
    hits: list[Hit]
    stages: list[StageReport]
    degraded: list[Degraded]
    count: int
    words_cut: bool = False


@dataclass(frozen=True, slots=True)
class _Looked:
    """An owner that a query looks at, locked, and what of it the query may see."""

    owner: OpenOwner
    reach: Reach


class Searched(Protocol):
    """What a search needs of the record store."""

    def catalog(self, save: str) -> Catalog: ...

    def opened(self, who: ActorId) -> AbstractContextManager[OpenOwner]: ...

    def stored(self, owner: OpenOwner, entry: Entry) -> Stored: ...

    def stored_many(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[Stored]: ...


class Recall:
    """Runs queries; thread-safe."""

    def __init__(
        self,
        store: Searched,
        groups: GroupStore,
        saves: SaveStates,
        words: WordSource,
        views: Views,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._store = store
        self._groups = groups
        self._saves = saves
        self._words = words
        self._views = views
        self._clock = clock

    def run(self, query: Query) -> Recalled:
        """The answer. Raises Corrupt where an owner that was named cannot be read."""
        begun = self._clock()
        with ExitStack() as stack:
            catalog = self._store.catalog(query.who.save)
            groups = self._groups.of(query.who) if query.groups else ()
            looked, degraded = self._looked_at(query, groups, catalog, stack)
            state = self._saves.state(query.who.save)
            visible, snapshot = self._visible(query, looked, begun)
            begun = self._clock()
            asked = self._words.analyzer.query(query.text) if query.text else None
            ranking = Ranking(visible, asked.words if asked else None, tags=len(query.wanted.tags))
            hits = self._hits(visible, ranking, looked, query)
            ranked = StageReport(Stage.WORDS, self._since(begun), len(visible), ranking.count)
            return Recalled(
                state, hits, [snapshot, ranked], degraded, ranking.count, words_cut=asked is not None and asked.cut
            )

    def _looked_at(
        self, query: Query, groups: Sequence[Group], catalog: Catalog, stack: ExitStack
    ) -> tuple[dict[ActorId, _Looked], list[Degraded]]:
        degraded = [Degraded.NO_MODEL]
        looked = {}
        for who, reach in sorted(_reaches(query, groups, catalog).items(), key=lambda item: lock_order(item[0])):
            try:
                looked[who] = _Looked(stack.enter_context(self._store.opened(who)), reach)
            except Corrupt:
                if reach.known is not None:
                    raise
                degraded.append(Degraded.INDEX_DAMAGED)
        return looked, degraded

    def _visible(self, query: Query, looked: dict[ActorId, _Looked], begun: float) -> tuple[Visible, StageReport]:
        parts: list[Part] = []
        scanned, reused = 0, True
        for who, one in looked.items():
            view, known_before = self._views.of(one.owner)
            shared = _shared(one, query)
            for part in visible_parts(who, view, one.reach, query.wanted, shared):
                parts.append(self._holding_text(one.owner, part, query) if query.wanted.text else part)
            scanned += len(one.owner.records().entries)
            reused &= known_before
        visible = Visible(parts)
        return visible, StageReport(Stage.SNAPSHOT, self._since(begun), scanned, len(visible), reused)

    def _holding_text(self, owner: OpenOwner, part: Part, query: Query) -> Part:
        entries = [part.view.entries[row] for row in part.rows]
        texts = (searched_text(stored.record) for stored in self._store.stored_many(owner, entries))
        return part.only(row for row, text in zip(part.rows, texts, strict=True) if query.wanted.holds_text(text))

    def _hits(self, visible: Visible, ranking: Ranking, looked: dict[ActorId, _Looked], query: Query) -> list[Hit]:
        best = ranking.best(query.limit)
        hits = []
        for row, words_rank in zip(best, ranking.words_ranks(best), strict=True):
            who, entry, known = visible.at(row)
            stored = self._store.stored(looked[who].owner, entry)
            explained = ranking.explained(row) if query.explain else ()
            hits.append(Hit(stored, ranking.score(row), ranking.words_score(row), words_rank, known, explained))
        return hits

    def _since(self, begun: float) -> float:
        return (self._clock() - begun) * 1_000


def _reaches(query: Query, groups: Sequence[Group], catalog: Catalog) -> dict[ActorId, Reach]:
    """The owners that a query looks at: those that are named, and those that address something to the actor."""
    reaches: dict[ActorId, Reach] = {}
    for group in groups:
        for who in catalog.addressing(group.group_id):
            known = reaches.get(who, Reach())
            reaches[who] = replace(known, groups=(*known.groups, group))
    for who in catalog.addressing(query.who) if query.shared else ():
        reaches[who] = replace(reaches.get(who, Reach()), shared=True)
    reaches.pop(query.who, None)
    return reaches | {who: Reach(OWN if who == query.who else SOURCE) for who in query.owners}


def _shared(looked: _Looked, query: Query) -> dict[Entry, Known]:
    """What was shared with the actor, of an owner that is locked."""
    records = looked.owner.records()
    ids = records.addressed.get(query.who, ()) if looked.reach.shared else ()
    reasons = (
        (entry := records.entries[record_id], by_share(entry, query.who, query.wanted.at_or_before))
        for record_id in ids
    )
    return {entry: known for entry, known in reasons if known is not None}
