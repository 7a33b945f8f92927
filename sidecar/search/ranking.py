"""The order of the visible rows for one query: channels, fused into one score, then put in order for the game.

Rows are numbers 0 to n-1 of the records that the query may see; see ``docs/recall.md`` for the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sidecar.search.bm25 import Posting, bm25
from sidecar.search.channels import Channel, Lexicon, meaning_channels, words_channels
from sidecar.search.fusion import (
    Standing,
    clear_difference_of_ranks,
    clear_difference_of_sums,
    ranked,
    reciprocal_rank,
    weighted_sum,
)
from sidecar.search.options import Fusion, Options
from sidecar.search.outcome import ChannelScore, WordScore
from sidecar.search.rerank import MAX_SHIFT, Candidate, RerankOptions, places
from sidecar.search.visible import Visible, owner_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sidecar.search.terms import Word

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_MOST_REORDERED = 4_096


class Ranking:
    """All visible rows, ranked. ``words`` None asks for every row, by importance, then the newest first."""

    def __init__(self, visible: Visible, words: Sequence[Word] | None, options: Options) -> None:
        self.options = options
        self._visible = visible
        self._everything = words is None
        self._words = words or ()
        self._around = visible.around()
        self._importances = visible.importances()
        self.weights = options.weights(self._around)
        self.channels: dict[str, Channel] = {}

    def find_words(self) -> int:
        """Score by words; how many rows they found."""
        terms = {term: None for word in self._words for term in word}
        self._lexicon = Lexicon(self._visible.postings(terms), self._visible.lengths())
        found = words_channels(self._words, self._lexicon, self._around, self.weights) if self._words else {}
        self.channels |= found
        return _found(found)

    def find_meaning(self, similarities: Floats) -> int:
        """Score by meaning; how many rows it found. Similarities are NaN where there is no vector."""
        found = meaning_channels(similarities, self._around, self.weights, floor=self.options.floor)
        self.channels |= found
        return _found(found)

    def fuse(self) -> int:
        """Make one score of all channels; how many rows have one."""
        import numpy as np

        if self._everything:
            self.scores: Floats = np.zeros(len(self._visible))
        elif self.options.fusion is Fusion.RECIPROCAL_RANK:
            owners, ids = self._visible.owner_places(), self._visible.id_places()
            ties = Standing(self._importances, self._visible.ticks(), owners, ids).places()
            self.scores = reciprocal_rank(self.channels.values(), ties, k=self.options.rrf_k)
        else:
            self.scores = weighted_sum(self.channels.values())
        if not len(self.scores):
            self.scores = np.full(len(self._visible), -np.inf)
        return int(np.count_nonzero(self.scores > -np.inf))

    def best(self, limit: int) -> list[int]:
        """The rows of the best hits in fused order. Equal scores go by importance, tick, owner and id."""
        rows = self._contenders(limit)
        ties = self._standing(rows).places()
        best: list[int] = rows[ranked(self.scores[rows], ties, limit=limit)].tolist()
        return best

    def needed(self, limit: int) -> int:
        """How many hits in fused order reranking needs for ``limit`` in its own."""
        order = self.options.order
        if order is None or self._everything or not limit:
            return limit
        # Where the fused order counts for nothing, any hit may become the first.
        return limit + MAX_SHIFT if order.source_order_weight else _MOST_REORDERED

    def reranking(self, rows: Sequence[int]) -> tuple[list[Candidate], RerankOptions] | None:
        """What a reranker is to be asked about rows in fused order; None where that order stands."""
        if self.options.order is None or self._everything:
            return None
        distances = places([float(self.scores[row]) for row in rows], self._clear_difference())
        candidates = [self._candidate(row, place) for row, place in zip(rows, distances, strict=True)]
        return candidates, self.options.order

    def importance(self, row: int) -> float:
        """How much a row matters to the actor."""
        return float(self._importances[row])

    def said(self, row: int) -> list[ChannelScore]:
        """What each channel that found a row said of it."""
        return [
            ChannelScore(
                name=name,
                score=float(channel.scores[row]),
                rank=1 + int((channel.found & (channel.scores > channel.scores[row])).sum()),
                normalised=float(channel.normalised[row]),
                weight=channel.weight,
            )
            for name, channel in self.channels.items()
            if channel.found[row]
        ]

    def explained(self, row: int) -> list[WordScore]:
        """The words of the query that a row itself holds."""
        found = (self._explained_word(word, row) for word in self._words)
        return [word for word in found if word is not None]

    def _contenders(self, limit: int) -> Ints:
        """The rows that can be among the best: those certain of a place, and those that are level at the limit."""
        import numpy as np

        certain: list[Ints] = []
        level, places = np.flatnonzero(self.scores > -np.inf), limit
        for key in (self.scores, self._importances, self._visible.ticks()):
            if len(level) <= places or not places:
                break
            values = key[level]
            least = np.partition(values, len(level) - places)[len(level) - places]
            certain.append(level[values > least])
            places -= len(certain[-1])
            level = level[values == least]
        return np.concatenate([*certain, level]) if limit else level[:0]

    def _standing(self, rows: Ints) -> Standing:
        """As the places of all rows would have it, for a few of them."""
        import numpy as np

        named = [self._name(int(row)) for row in rows]
        order = {name: place for place, name in enumerate(sorted(set(named)))}
        alone = np.array([order[name] for name in named], dtype=np.int64)
        return Standing(self._importances[rows], self._visible.ticks()[rows], np.zeros_like(alone), alone)

    def _name(self, row: int) -> tuple[tuple[str, ...], bytes]:
        """What decides between rows that are equal in all else: the owner, then the id."""
        who, entry, _ = self._visible.at(row)
        return owner_order(who), entry.head.record_id.encode("utf-16-be")

    def _clear_difference(self) -> float:
        if self.options.fusion is Fusion.RECIPROCAL_RANK:
            return clear_difference_of_ranks(self.channels.values(), k=self.options.rrf_k)
        return clear_difference_of_sums(self.channels.values())

    def _candidate(self, row: int, place: float) -> Candidate:
        _, entry, _ = self._visible.at(row)
        head = entry.head
        return Candidate(
            place=place,
            importance=self.importance(row),
            timeline=head.moment.timeline,
            tick=head.moment.tick,
            scope=head.scope,
            kind=head.kind.value,
            tags=frozenset(head.tags),
        )

    def _explained_word(self, word: Word, row: int) -> WordScore | None:
        postings = self._lexicon.postings
        score = float(bm25([word], postings, self._lexicon.lengths)[row])
        held = ((term, postings[term]) for term in word if term in postings)
        for term, posting in held if score else ():
            frequency = _frequency(posting, row)
            if frequency:
                return WordScore(term, frequency, len(posting.rows), score)
        return None


def _found(channels: dict[str, Channel]) -> int:
    import numpy as np

    found = [channel.found for channel in channels.values()]
    return int(np.logical_or.reduce(found).sum()) if found else 0


def _frequency(posting: Posting, row: int) -> int:
    found = (posting.rows == row).nonzero()[0]
    return int(posting.counts[found[0]]) if len(found) else 0
