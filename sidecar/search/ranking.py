"""The order of the visible rows for one query: channels, fused into one score, then put in order for the game.

Rows are numbers 0 to n-1 of the records that the query may see; see ``docs/recall.md`` for the formulas. Two rankings
follow them: :class:`~sidecar.search.plain_ranking.PlainRanking` for few rows, and where there is no NumPy, and
:class:`~sidecar.search.column_ranking.ColumnRanking` for many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from sidecar.search.fusion import Weighted, clear_difference_of_ranks, clear_difference_of_sums
from sidecar.search.options import Fusion, Options
from sidecar.search.outcome import ChannelScore, WordScore
from sidecar.search.rerank import MAX_SHIFT, Candidate, RerankOptions, places
from sidecar.search.visible import Visible

if TYPE_CHECKING:
    from sidecar.search.channels import Weights
    from sidecar.search.columns import Floats
    from sidecar.search.terms import Word

_MOST_REORDERED = 4_096


class RankedChannel(Weighted, Protocol):
    """What one way of finding says of each row."""

    def of(self, row: int) -> tuple[float, int, float] | None:
        """Score, place (equal ones share theirs) and normalised score of a row; None where it was not found."""
        ...


class Ranking(ABC):
    """All visible rows, ranked. ``words`` None asks for every row, by importance, then the newest first."""

    weights: Weights
    #: What was asked so far.
    channels: Mapping[str, RankedChannel]
    #: Of each row that was found, once fused.
    scores: Any

    def __init__(self, visible: Visible, words: Sequence[Word] | None, options: Options) -> None:
        self.options = options
        self._visible = visible
        self._everything = words is None
        self._words = words or ()
        #: What the words and their stand-ins are looked up by, each once.
        self._terms = list(dict.fromkeys(term for word in self._words for term in word))

    @abstractmethod
    def find_words(self) -> int:
        """Score by words; how many rows they found."""

    @abstractmethod
    def find_meaning(self, similarities: Floats) -> int:
        """Score by meaning; how many rows it found. Similarities are NaN where there is no vector."""

    @abstractmethod
    def fuse(self) -> int:
        """Make one score of all channels; how many rows have one."""

    @abstractmethod
    def best(self, limit: int) -> list[int]:
        """The rows of the best hits in fused order. Equal scores go by importance, tick, owner and id."""

    def needed(self, limit: int) -> int:
        """How many hits in fused order reranking needs for ``limit`` in its own."""
        order = self.options.order
        if order is None or self._everything or not limit:
            return limit
        # Where the fused order counts for nothing, any hit may become the first.
        return limit + MAX_SHIFT if order.source_order_weight else _MOST_REORDERED

    def reranking(self, rows: Sequence[int], limit: int) -> tuple[list[Candidate], RerankOptions] | None:
        """What a reranker is to be asked about rows in fused order, so that it chooses no more one by one than are
        wanted; None where that order stands."""
        order = self.options.order
        if order is None or self._everything:
            return None
        distances = places([float(self.scores[row]) for row in rows], self._clear_difference())
        candidates = [self._candidate(row, place) for row, place in zip(rows, distances, strict=True)]
        return candidates, replace(order, max_greedy_selections=min(order.max_greedy_selections, limit))

    def importance(self, row: int) -> float:
        """How much a row matters to the actor."""
        _, entry, known = self._visible.at(row)
        return entry.head.importance * known.weight

    def said(self, row: int) -> list[ChannelScore]:
        """What each channel that found a row said of it."""
        said = []
        for name, channel in self.channels.items():
            found = channel.of(row)
            if found is not None:
                said.append(ChannelScore(name, *found, channel.weight))
        return said

    def explained(self, row: int) -> list[WordScore]:
        """The words of the query that a row itself holds."""
        found = (self._explained_word(word, row) for word in self._words)
        return [word for word in found if word is not None]

    @abstractmethod
    def _word_score(self, word: Word, row: int) -> float:
        """What one word is worth to a row, 0 where the row does not hold it."""

    @abstractmethod
    def _holding(self, term: str, row: int) -> tuple[int, int]:
        """How often a row holds a term, and how many rows do."""

    def _explained_word(self, word: Word, row: int) -> WordScore | None:
        score = self._word_score(word, row)
        for term in word if score else ():
            frequency, records = self._holding(term, row)
            if frequency:
                return WordScore(term, frequency, records, score)
        return None

    def _clear_difference(self) -> float:
        if self.options.fusion is Fusion.RECIPROCAL_RANK:
            return clear_difference_of_ranks(self.channels.values(), k=self.options.rrf_k)
        return clear_difference_of_sums(self.channels.values())

    def _candidate(self, row: int, place: float) -> Candidate:
        _, entry, known = self._visible.at(row)
        head, moment = entry.head, entry.head.moment
        return Candidate(
            place=place,
            importance=head.importance * known.weight,
            timeline=moment.timeline,
            tick=moment.tick,
            scope=head.scope,
            kind=head.kind,
            tags=frozenset(head.tags),
        )
