"""Ranking in plain Python, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sidecar.search.context import ALONE
from sidecar.search.options import Fusion, Options
from sidecar.search.owner_view import COUNT_BITS, MOST_COUNTED
from sidecar.search.plain_channels import (
    NOBODY,
    Around,
    PlainChannel,
    PlainLexicon,
    Scores,
    bm25,
    by_rank,
    meaning_channels,
    neighbours,
    weighted_sum,
    words_channels,
)
from sidecar.search.ranking import Ranking
from sidecar.search.visible import Visible

if TYPE_CHECKING:
    from sidecar.search.columns import Floats
    from sidecar.search.terms import Word


class PlainRanking(Ranking):
    """See :class:`Ranking`."""

    def __init__(self, visible: Visible, words: Sequence[Word] | None, options: Options) -> None:
        super().__init__(visible, words, options)
        self.scores: Scores = {}
        self.channels: dict[str, PlainChannel] = {}
        self._around = self._neighbours()
        self.weights = options.weights(talks=self._around.exist)
        self._lexicon = self._read() if self._words else PlainLexicon({}, ())

    def find_words(self) -> int:
        if not self._words:
            return 0
        return self._add(words_channels(self._words, self._lexicon, self._around, self.weights))

    def find_meaning(self, similarities: Floats) -> int:
        values = similarities.tolist()
        return self._add(meaning_channels(values, self._around, self.weights, floor=self.options.floor))

    def fuse(self) -> int:
        if self.options.fusion is Fusion.RECIPROCAL_RANK:
            self.channels = {name: by_rank(one, self._tie, k=self.options.rrf_k) for name, one in self.channels.items()}
        found = weighted_sum(self.channels.values())
        self.scores = dict.fromkeys(range(len(self._visible)), 0.0) if self._everything else found
        return len(self.scores)

    def best(self, limit: int) -> list[int]:
        rows = list(self.scores) if limit else []
        keys: tuple[Callable[[int], Any], ...] = (self._demerit, self._standing)
        for key in keys:
            if limit < len(rows):  # what takes longer to look at is looked at only where it can decide
                last = nsmallest(limit, map(key, rows))[-1]
                rows = [row for row in rows if key(row) <= last]
        standings = {row: self._standing(row) for row in rows}
        equals = groupby(sorted(rows, key=standings.__getitem__), key=standings.__getitem__)
        return [row for _, equal in equals for row in self._by_name(equal)][:limit]

    def _by_name(self, equal: Iterable[int]) -> Sequence[int]:
        """Rows that only their names put in order; mostly there is but one."""
        rows = list(equal)
        return sorted(rows, key=self._visible.name) if len(rows) > 1 else rows

    def _demerit(self, row: int) -> float:
        return -self.scores[row]

    def _add(self, found: dict[str, PlainChannel]) -> int:
        self.channels |= found
        return len({row for channel in found.values() for row in channel.scores})

    def _standing(self, row: int) -> tuple[float, float, int]:
        _, entry, known = self._visible.at(row)
        return -self.scores[row], -entry.head.importance * known.weight, -entry.head.moment.tick

    def _tie(self, row: int) -> tuple[Any, ...]:
        _, entry, known = self._visible.at(row)
        return -entry.head.importance * known.weight, -entry.head.moment.tick, self._visible.name(row)

    def _word_score(self, word: Word, row: int) -> float:
        return bm25([word], self._lexicon).get(row, 0.0)

    def _holding(self, term: str, row: int) -> tuple[int, int]:
        posting = self._lexicon.postings.get(term, {})
        return int(posting.get(row, 0)), len(posting)

    def _read(self) -> PlainLexicon:
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

    def _neighbours(self) -> Around:
        parts = self._visible.parts
        if len(parts) == 1:
            return parts[0].view.around(parts[0].rows)
        if not any(part.view.talks for part in parts):
            return NOBODY
        seen = [(part.view, row) for part in parts for row in part.rows]
        talks = [view.conversations[row] for view, row in seen]
        # Those of different owners never stand beside each other.
        talks_of_owners = [
            talk if talk == ALONE else (id(view), talk) for (view, _), talk in zip(seen, talks, strict=True)
        ]
        return neighbours(talks_of_owners, [view.ordinals[row] for view, row in seen])
