"""Ranking in plain Python, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from sidecar.search.options import Fusion, Options
from sidecar.search.owner_view import COUNT_BITS, MOST_COUNTED
from sidecar.search.plain_channels import (
    Lenders,
    PlainChannel,
    PlainLexicon,
    Scores,
    bm25,
    meaning_channels,
    reciprocal_rank,
    weighted_sum,
    words_channels,
)
from sidecar.search.ranking import Ranking
from sidecar.search.visible import Visible, name_order

if TYPE_CHECKING:
    from sidecar.search.columns import Floats
    from sidecar.search.terms import Word


class PlainRanking(Ranking):
    """See :class:`Ranking`."""

    def __init__(self, visible: Visible, words: Sequence[Word] | None, options: Options) -> None:
        super().__init__(visible, words, options)
        self.scores: Scores = {}
        self.weights = options.weights(talks=bool(self._lenders))
        self.channels: dict[str, PlainChannel] = {}

    def find_words(self) -> int:
        if not self._words:
            return 0
        return self._add(words_channels(self._words, self._lexicon, self._lenders, self.weights))

    def find_meaning(self, similarities: Floats) -> int:
        values = similarities.tolist()
        return self._add(meaning_channels(values, self._lenders, self.weights, floor=self.options.floor))

    def fuse(self) -> int:
        if self._everything:
            self.scores = dict.fromkeys(range(len(self._visible)), 0.0)
        elif self.options.fusion is Fusion.RECIPROCAL_RANK:
            self.scores = reciprocal_rank(self.channels.values(), self._tie, k=self.options.rrf_k)
        else:
            self.scores = weighted_sum(self.channels.values())
        return len(self.scores)

    def best(self, limit: int) -> list[int]:
        rows = list(self.scores) if limit else []
        keys: tuple[Callable[[int], Any], ...] = (self._demerit, self._standing)
        for key in keys:
            if limit < len(rows):  # what takes longer to look at is looked at only where it can decide
                last = nsmallest(limit, map(key, rows))[-1]
                rows = [row for row in rows if key(row) <= last]
        return sorted(rows, key=lambda row: (-self.scores[row], self._tie(row)))[:limit]

    def _demerit(self, row: int) -> float:
        return -self.scores[row]

    def _add(self, found: dict[str, PlainChannel]) -> int:
        self.channels |= found
        return len({row for channel in found.values() for row in channel.scores})

    def _standing(self, row: int) -> tuple[float, float, int]:
        _, entry, known = self._visible.at(row)
        return -self.scores[row], -entry.head.importance * known.weight, -entry.head.moment.tick

    def _tie(self, row: int) -> tuple[Any, ...]:
        who, entry, known = self._visible.at(row)
        return -entry.head.importance * known.weight, -entry.head.moment.tick, name_order(who, entry)

    def _word_score(self, word: Word, row: int) -> float:
        return bm25([word], self._lexicon).get(row, 0.0)

    def _holding(self, term: str, row: int) -> tuple[int, int]:
        posting = self._lexicon.postings.get(term, {})
        return int(posting.get(row, 0)), len(posting)

    @cached_property
    def _lexicon(self) -> PlainLexicon:
        places = [
            {row: number for number, row in enumerate(part.rows, start)}
            for start, part in zip(self._visible.starts, self._visible.parts, strict=False)
        ]
        postings = {term: self._posting(term, places) for term in self._terms}
        lengths = [part.view.lengths[row] for part in self._visible.parts for row in part.rows]
        return PlainLexicon(postings, lengths)

    def _posting(self, term: str, places: Sequence[dict[int, int]]) -> dict[int, float]:
        found: dict[int, float] = {}
        for part, numbers in zip(self._visible.parts, places, strict=True):
            for packed in part.view.posting(term):
                number = numbers.get(packed >> COUNT_BITS)
                if number is not None:
                    found[number] = packed & MOST_COUNTED
        return found

    @cached_property
    def _lenders(self) -> Lenders:
        parts = self._visible.parts
        if len(parts) == 1:
            return parts[0].view.lenders(parts[0].rows)
        return {
            row + start: [(other + start, weight) for other, weight in lenders]
            for start, part in zip(self._visible.starts, parts, strict=False)
            for row, lenders in part.view.lenders(part.rows).items()
        }
