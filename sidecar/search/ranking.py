"""The order of the visible rows: what their words are worth for the query, and how much they matter.

    score = BM25 of the words + importance (weighed for the actor) + 0.1 for each tag of the filter

Equal scores go by tick, the later first, then by owner and record id, so that the order is the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.search.bm25 import Posting, bm25
from sidecar.search.visible import Visible
from sidecar.storage.keys import ActorId

if TYPE_CHECKING:
    from sidecar.search.terms import Word

_TAG_WORTH = 0.1


@dataclass(frozen=True, slots=True)
class WordScore:
    """What one word of the query was worth: how often the record holds it, and how many visible records do."""

    term: str
    frequency: int
    records: int
    score: float


class Ranking:
    """All visible rows, ranked for one query. ``words`` None asks for every row; no words at all find nothing."""

    def __init__(self, visible: Visible, words: Sequence[Word] | None, *, tags: int) -> None:
        self._visible = visible
        self._asked = words or ()
        self._lengths = visible.lengths()
        self._postings = visible.postings({term: None for word in self._asked for term in word})
        self._words = bm25(self._asked, self._postings, self._lengths)
        self._scores = self._words + visible.importances() + _TAG_WORTH * tags
        self._found = self._words > 0 if words is not None else self._words == 0
        self.count = int(self._found.sum())

    def best(self, limit: int) -> list[int]:
        """The rows of the best hits, best first."""
        import numpy as np

        rows = np.flatnonzero(self._found)
        if not limit or not len(rows):
            return []
        scores, ticks = self._scores[rows], self._visible.ticks()[rows]
        order = np.lexsort((-ticks, -scores))
        scores, ticks, rows = scores[order], ticks[order], rows[order]
        new = np.flatnonzero((scores[1:] != scores[:-1]) | (ticks[1:] != ticks[:-1])) + 1
        ends = [*new[: np.searchsorted(new, limit) + 1].tolist(), len(rows)]
        best: list[int] = []
        for end in ends:
            tied = rows[len(best) : end].tolist()
            best += tied if len(tied) == 1 else sorted(tied, key=self._order)
            if len(best) >= limit:
                break
        return best[:limit]

    def score(self, row: int) -> float:
        """What decided the place of a row."""
        return float(self._scores[row])

    def words_score(self, row: int) -> float:
        """BM25 of a row."""
        return float(self._words[row])

    def words_ranks(self, rows: Sequence[int]) -> list[int]:
        """The places of rows by BM25 alone, from 1; equal ones share theirs."""
        import numpy as np

        worst_first = np.sort(self._words)
        ranks: list[int] = (
            len(worst_first) - np.searchsorted(worst_first, self._words[list(rows)], "right") + 1
        ).tolist()
        return ranks

    def explained(self, row: int) -> list[WordScore]:
        """The words of the query that a row holds."""
        return [found for word in self._asked if (found := self._explained_word(word, row)) is not None]

    def _explained_word(self, word: Word, row: int) -> WordScore | None:
        score = float(bm25([word], self._postings, self._lengths)[row])
        held = ((term, self._postings[term]) for term in word if term in self._postings)
        for term, posting in held if score else ():
            frequency = _frequency(posting, row)
            if frequency:
                return WordScore(term, frequency, len(posting.rows), score)
        return None

    def _order(self, row: int) -> tuple[tuple[str, ...], bytes]:
        who, entry, _ = self._visible.at(row)
        return _owner_order(who), entry.head.record_id.encode("utf-16-be")


def _owner_order(who: ActorId) -> tuple[str, ...]:
    return (who.actor, who.role, who.player, who.topic, who.tenant)


def _frequency(posting: Posting, row: int) -> int:
    places = (posting.rows == row).nonzero()[0]
    return int(posting.counts[places[0]]) if len(places) else 0
