"""Ranking in columns, with NumPy: many rows at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sidecar.search.bm25 import bm25
from sidecar.search.channels import Channel, Lexicon, meaning_channels, words_channels
from sidecar.search.columns import Floats, Ints
from sidecar.search.fusion import Standing, by_rank, ranked, weighted_sum
from sidecar.search.options import Fusion, Options
from sidecar.search.ranking import Ranking
from sidecar.search.visible import Visible
from sidecar.search.visible_columns import VisibleColumns

if TYPE_CHECKING:
    from sidecar.search.terms import Word


class ColumnRanking(Ranking):
    """See :class:`Ranking`."""

    def __init__(self, visible: Visible, words: Sequence[Word] | None, options: Options) -> None:
        super().__init__(visible, words, options)
        self._columns = VisibleColumns(visible)
        self._around = self._columns.around()
        self._importances = self._columns.importances()
        self.weights = options.weights(talks=self._columns.talks and self._around.exist)
        self.channels: dict[str, Channel] = {}

    def find_words(self) -> int:
        self._lexicon = Lexicon(self._columns.postings(self._terms), self._columns.lengths())
        found = words_channels(self._words, self._lexicon, self._around, self.weights) if self._words else {}
        self.channels |= found
        return _found(found)

    def find_meaning(self, similarities: Floats) -> int:
        found = meaning_channels(similarities, self._around, self.weights, floor=self.options.floor)
        self.channels |= found
        return _found(found)

    def fuse(self) -> int:
        if self.options.fusion is Fusion.RECIPROCAL_RANK:
            owners, ids = self._columns.owner_places(), self._columns.id_places()
            ties = Standing(self._importances, self._columns.ticks(), owners, ids).places()
            self.channels = {name: by_rank(one, ties, k=self.options.rrf_k) for name, one in self.channels.items()}
        found = weighted_sum(self.channels.values())
        self.scores: Floats = np.zeros(len(self._visible)) if self._everything else found
        if not len(self.scores):
            self.scores = np.full(len(self._visible), -np.inf)
        return int(np.count_nonzero(self.scores > -np.inf))

    def best(self, limit: int) -> list[int]:
        rows = self._contenders(limit)
        ties = self._standing(rows).places()
        best: list[int] = rows[ranked(self.scores[rows], ties, limit=limit)].tolist()
        return best

    def _contenders(self, limit: int) -> Ints:
        """The rows that can be among the best: those certain of a place, and those that are level at the limit."""
        certain: list[Ints] = []
        level, places = np.flatnonzero(self.scores > -np.inf), limit
        for key in (lambda: self.scores, lambda: self._importances, self._columns.ticks):
            if len(level) <= places or not places:
                break
            values = key()[level]
            least = np.partition(values, len(level) - places)[len(level) - places]
            certain.append(level[values > least])
            places -= len(certain[-1])
            level = level[values == least]
        return np.concatenate([*certain, level]) if limit else level[:0]

    def _standing(self, rows: Ints) -> Standing:
        """As the places of all rows would have it, for a few of them."""
        named = list(map(self._visible.name, rows.tolist()))
        order = {name: place for place, name in enumerate(sorted(set(named)))}
        alone = np.array([order[name] for name in named], dtype=np.int64)
        return Standing(self._importances[rows], self._columns.ticks()[rows], np.zeros_like(alone), alone)

    def _word_score(self, word: Word, row: int) -> float:
        return float(bm25([word], self._lexicon.postings, self._lexicon.lengths)[row])

    def _holding(self, term: str, row: int) -> tuple[int, int]:
        posting = self._lexicon.postings.get(term)
        if posting is None:
            return 0, 0
        found = (posting.rows == row).nonzero()[0]
        return int(posting.counts[found[0]]) if len(found) else 0, len(posting)


def _found(channels: Mapping[str, Channel]) -> int:
    found = [channel.found for channel in channels.values()]
    return int(np.logical_or.reduce(found).sum()) if found else 0
