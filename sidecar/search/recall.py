"""One search: what may be seen, what answers by words and by meaning, in which order, and an account of it all.

    owners, groups, shares → visible rows → words ┐
                                          meaning ┴→ one score → order for the game → hits

All owners of a query are locked while it runs, so that every channel sees one moment of the save. The query's own
vector is made before; what words find is found meanwhile, and counts where the owners are then as they were. Hits are
the stored records. Whatever of meaning fails costs meaning, never the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from sidecar.errors import Corrupt, Unavailable
from sidecar.memory.groups import Group, GroupStore
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_catalog import Catalog
from sidecar.memory.record_filter import RecordFilter
from sidecar.memory.record_store import Stored, lock_order
from sidecar.memory.records import EVERYONE, searched_text
from sidecar.search.access import OWN, SOURCE, Known, Reach, by_share
from sidecar.search.meaning import NOT_ASKED, Meaning
from sidecar.search.options import Options
from sidecar.search.outcome import Degraded, Hit, Recalled, Stage, StageReport
from sidecar.search.owner_view import OwnerView
from sidecar.search.ranking import Ranking
from sidecar.search.rerank import Now, Reranked, Reranker, rerank
from sidecar.search.similar import Similar, similar
from sidecar.search.stages import Stages
from sidecar.search.vector_rows import VectorState
from sidecar.search.visible import Part, Viewed, Visible
from sidecar.search.ways import PartsOf, ways_for
from sidecar.search.words import WordSource
from sidecar.storage.keys import ActorId
from sidecar.storage.save_state import SaveStates

if TYPE_CHECKING:
    from sidecar.search.similar import Matrices


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
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class _Looked:
    """An owner that a query looks at, locked, and what of it the query may see."""

    owner: OpenOwner
    reach: Reach


@dataclass(frozen=True, slots=True)
class ByWords:
    """The rows that a query may see, ranked by words."""

    visible: Visible
    ranking: Ranking
    words_cut: bool


@dataclass(frozen=True, slots=True)
class Earlier:
    """What words found before the query's meaning was known, and who found it; it holds as long as ``true_of`` is the
    same."""

    by: Recall
    true_of: object
    words: ByWords
    stages: Sequence[StageReport]


@dataclass(frozen=True, slots=True)
class _Found:
    """What all channels found among the rows that a query may see; ``degraded`` grows until the answer is made."""

    looked: dict[ActorId, _Looked]
    words: ByWords
    similar: Similar
    degraded: list[Degraded]


class Searched(Protocol):
    """What a search needs of the record store."""

    def catalog(self, save: str) -> Catalog: ...

    def opened(self, who: ActorId) -> AbstractContextManager[OpenOwner]: ...

    def stored_many(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[Stored]: ...


class OwnerViews(Protocol):
    """Where the view of a locked owner comes from, and whether it was there already."""

    def of(self, owner: OpenOwner) -> tuple[OwnerView, bool]: ...


class Recall:
    """Runs queries; thread-safe."""

    def __init__(
        self,
        store: Searched,
        groups: GroupStore,
        saves: SaveStates,
        words: WordSource,
        views: OwnerViews,
        matrices: Matrices,
        *,
        ways: Callable[[int], tuple[PartsOf, type[Ranking]]] = ways_for,
        reranker: Reranker = rerank,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._store = store
        self._groups = groups
        self._saves = saves
        self._words = words
        self._views = views
        self._matrices = matrices
        self._ways = ways
        self._rerank = reranker
        self._clock = clock

    def by_words(self, query: Query) -> Earlier:
        """What can be found before the query's meaning is known, for :meth:`run`; raises as that does."""
        stages = Stages(self._clock)
        with ExitStack() as stack:
            looked, _ = self._looked_at(query, stack)
            words = self._by_words(query, looked, query.options, stages)
            return Earlier(self, self._true_of(query, looked, query.options), words, stages.told)

    def run(self, query: Query, meaning: Meaning = NOT_ASKED, earlier: Earlier | None = None) -> Recalled:
        """The answer; ``meaning`` is what the query's text means.

        Raises Corrupt where an owner that was named cannot be read.
        """
        stages = Stages(self._clock)
        with ExitStack() as stack:
            looked, degraded = self._looked_at(query, stack)
            state = self._saves.state(query.who.save)
            options = query.options if meaning.vector is not None else query.options.by_words_only()
            if earlier is not None and earlier.true_of == self._true_of(query, looked, options):
                words = earlier.words
                stages.told.extend(earlier.stages)
            else:
                words = self._by_words(query, looked, options, stages)
            by_meaning = self._by_meaning(words, meaning, stages)
            degraded += [*meaning.degraded, *by_meaning.degraded]
            hits = self._hits(query, _Found(looked, words, by_meaning, degraded), stages)
            return Recalled(
                state=state,
                hits=hits,
                stages=stages.told,
                degraded=list(dict.fromkeys(degraded)),
                options=options,
                weights=words.ranking.weights,
                identity=meaning.identity,
                words_cut=words.words_cut,
                query_cuts=meaning.cuts,
            )

    def _true_of(self, query: Query, looked: dict[ActorId, _Looked], options: Options) -> object:
        """What words find of a query depends on this, and on the query."""
        rows = [(one.owner, one.owner.records().last, one.reach) for one in looked.values()]
        return options, self._words.version(query.who.save), rows

    def _by_words(self, query: Query, looked: dict[ActorId, _Looked], options: Options, stages: Stages) -> ByWords:
        snapshot = sum(len(one.owner.records().entries) for one in looked.values())
        visible, rank = self._visible(query, looked, snapshot, stages)
        asked = self._words.analyzer(query.who.save).query(query.text) if query.text else None
        ranking = rank(visible, asked.words if asked else None, options)
        found = ranking.find_words()
        stages.add(Stage.WORDS, snapshot, found if asked else len(visible))
        return ByWords(visible, ranking, words_cut=asked is not None and asked.cut)

    def _groups_of(self, query: Query) -> tuple[Sequence[Group], list[Degraded]]:
        """The groups of who asks. A file that cannot be read costs what they recall, never what the actor does."""
        if not query.groups:
            return (), []
        try:
            return self._groups.of(query.who), []
        except Corrupt:
            return (Group(EVERYONE),), [Degraded.GROUPS_DAMAGED]

    def _looked_at(self, query: Query, stack: ExitStack) -> tuple[dict[ActorId, _Looked], list[Degraded]]:
        """The owners that a query looks at, locked until the stack ends, and what of them cannot be read."""
        catalog = self._store.catalog(query.who.save)
        groups, degraded = self._groups_of(query)
        looked = {}
        for who, reach in sorted(_reaches(query, groups, catalog).items(), key=lambda item: lock_order(item[0])):
            try:
                looked[who] = _Looked(stack.enter_context(self._store.opened(who)), reach)
            except Corrupt:
                if reach.known is not None:
                    raise
                degraded.append(Degraded.INDEX_DAMAGED)
        return looked, degraded

    def _visible(
        self, query: Query, looked: dict[ActorId, _Looked], snapshot: int, stages: Stages
    ) -> tuple[Visible, type[Ranking]]:
        """The rows that a query may see, and how they are to be ranked."""
        views, reused = [], True
        for who, one in looked.items():
            view, known_before = self._views.of(one.owner)
            views.append(Viewed(who, view, one.reach, _shared(one, query)))
            reused &= known_before
        parts_of, rank = self._ways(sum(len(one.view.entries) for one in views))
        parts = [part for one in views for part in parts_of(one, query.wanted)]
        if query.wanted.text:
            parts = [self._holding_text(looked[part.owner].owner, part, query) for part in parts]
        visible = Visible(parts)
        stages.add(Stage.SNAPSHOT, snapshot, snapshot, reused=reused)
        return visible, rank

    def _holding_text(self, owner: OpenOwner, part: Part, query: Query) -> Part:
        entries = [part.view.entries[row] for row in part.rows]
        texts = (searched_text(stored.record) for stored in self._store.stored_many(owner, entries))
        return part.only(row for row, text in zip(part.rows, texts, strict=True) if query.wanted.holds_text(text))

    def _by_meaning(self, words: ByWords, meaning: Meaning, stages: Stages) -> Similar:
        """Score by meaning as far as that is possible; failures are told, not raised."""
        if meaning.vector is None or meaning.identity is None:
            return Similar()
        stages.took(Stage.EMBEDDING, meaning.milliseconds, 1, 1, reused=meaning.reused)
        try:
            found = similar(words.visible, self._matrices, meaning.identity, meaning.vector, stages)
        except Unavailable:
            return Similar(degraded=(Degraded.INDEX_UNAVAILABLE,))
        if found.values is not None:
            stages.add(Stage.VECTORS_COMPARED, found.compared, words.ranking.find_meaning(found.values))
        return found

    def _hits(self, query: Query, found: _Found, stages: Stages) -> list[Hit]:
        ranking, visible = found.words.ranking, found.words.visible
        count = ranking.fuse()
        rows = ranking.best(ranking.needed(query.limit))
        stages.add(Stage.FUSION, count, len(rows))
        ordered = self._ordered(query, found, rows, stages)[: query.limit]
        seen = [visible.at(rows[place]) for place, _ in ordered]
        whole = {
            who: self._store.stored_many(looked.owner, [entry for other, entry, _ in seen if other == who])
            for who, looked in found.looked.items()
        }
        return [
            _hit(query, found, rows[place], place, next(whole[who]), known, reranked)
            for (place, reranked), (who, _, known) in zip(ordered, seen, strict=True)
        ]

    def _ordered(
        self, query: Query, found: _Found, rows: Sequence[int], stages: Stages
    ) -> Sequence[tuple[int, Reranked | None]]:
        """The places in fused order, in the final order; a reranker that fails leaves the fused order, and that is
        told."""
        fused = [(place, None) for place in range(len(rows))]
        reranking = found.words.ranking.reranking(rows, query.limit)
        if reranking is None or not rows:
            return fused
        try:
            order = [(one.number, one) for one in self._rerank(*reranking, now=_now(query.wanted))]
        except Exception:  # whatever is wrong with it, there is a good order already
            found.degraded.append(Degraded.RERANKER_FAILED)
            return fused
        stages.add(Stage.RERANK, len(rows), len(order))
        return order


def _hit(
    query: Query, found: _Found, row: int, place: int, stored: Stored, known: Known, reranked: Reranked | None
) -> Hit:
    ranking = found.words.ranking
    fused = float(ranking.scores[row]) if query.text else ranking.importance(row)
    return Hit(
        stored=stored,
        known=known,
        score=float(reranked.total) if reranked else fused,
        fused_score=fused,
        fused_rank=place + 1,
        channels=ranking.said(row),
        reranked=reranked,
        explained=ranking.explained(row) if query.explain else (),
        vector=VectorState.NONE if Degraded.NO_MODEL in found.degraded else found.similar.state(row),
    )


def _now(wanted: RecordFilter) -> Now | None:
    moment = wanted.at_or_before
    return Now(moment.timeline, moment.tick) if moment else None


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
