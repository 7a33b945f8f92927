"""BM25 over the records that a query may see: how well each record's words answer the query's words.

Counts are taken over exactly those records (``rows`` 0 to n-1 of one query), never over a whole save: what an NPC
finds must not depend on records that it may not see. Pure: the index hands in what it has read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.search.terms import BEGINNING_MARK, Word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: How soon a repeated word stops counting.
K1 = 1.2
#: How much a long record is held against it: its own words, and its words together with its neighbours'.
B = 0.75
B_CONTEXT = 0.4
#: What finding the beginning of a word is worth, against finding the word.
BEGINNING_WORTH = 0.7


@dataclass(frozen=True)
class Posting:
    """Where one term stands: the rows that hold it, each once, and how often each does."""

    rows: Ints
    counts: Floats


def bm25(words: Sequence[Word], postings: Mapping[str, Posting], lengths: Floats, *, b: float = B) -> Floats:
    """The score of each row, 0 where no word of the query is found.

    ``lengths`` holds the length of each row in words. A word counts once, by the best of its terms. With N rows of
    average length L, a term that stands f times in a row of length l, and in df rows, is worth
    ``ln(1 + (N - df + 0.5) / (df + 0.5)) * f * (K1 + 1) / (f + K1 * (1 - b + b * l / L))``.
    """
    import numpy as np

    scores = np.zeros(len(lengths))
    if not len(lengths):
        return scores
    sizes = np.maximum(lengths, 1.0)
    damping = K1 * (1 - b + b * sizes / sizes.mean())
    for word in words:
        found = [(term, postings[term]) for term in word if term in postings and len(postings[term].rows)]
        if len(found) == 1:
            scores[found[0][1].rows] += _term_scores(*found[0], damping)
        elif found:
            best = np.zeros(len(lengths))
            for term, posting in found:
                best[posting.rows] = np.maximum(best[posting.rows], _term_scores(term, posting, damping))
            scores += best
    return scores


def whole_score(words: Sequence[Word], postings: Mapping[str, Posting], total: int) -> float:
    """About what a row would score that holds every word of the query once: the rarities of all words, summed up."""
    held = ((len(postings[term].rows) for term in _full_terms(word) if term in postings) for word in words)
    return sum(_rarity(total, max(rows, default=0)) for rows in held)


def _full_terms(word: Word) -> list[str]:
    return [term for term in word if not term.endswith(BEGINNING_MARK)]


def _rarity(total: int, holding: int) -> float:
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def _term_scores(term: str, posting: Posting, damping: Floats) -> Floats:
    rarity = _rarity(len(damping), len(posting.rows))
    worth = BEGINNING_WORTH if term.endswith(BEGINNING_MARK) else 1.0
    return worth * rarity * posting.counts * (K1 + 1) / (posting.counts + damping[posting.rows])
