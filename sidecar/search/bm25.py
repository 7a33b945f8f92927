"""BM25 over the records that a query may see: how well each record's words answer the query's words.

Counts are taken over exactly those records (``rows`` 0 to n-1 of one query), never over a whole save: what an NPC
finds must not depend on records that it may not see. Pure: the index hands in what it has read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.search.terms import Word

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
#: What finding a stand-in for a word (its beginning, its form without accents) is worth, against finding the word.
STAND_IN_WORTH = 0.7


@dataclass(frozen=True)
class Posting:
    """Where one term stands: the rows that hold it, each once, and how often each does."""

    rows: Ints
    counts: Floats

    def __len__(self) -> int:
        return len(self.rows)


def bm25(words: Sequence[Word], postings: Mapping[str, Posting], lengths: Floats, *, b: float = B) -> Floats:
    """The score of each row, 0 where no word of the query is found.

    ``lengths`` holds the length of each row in words. A word counts once, by the best of its terms: the first is
    the word itself, the others stand in for it. With N rows of average length L, a term that stands f times in a row
    of length l, and in df rows, is worth
    ``ln(1 + (N - df + 0.5) / (df + 0.5)) * f * (K1 + 1) / (f + K1 * (1 - b + b * l / L))``.
    """
    import numpy as np

    scores = np.zeros(len(lengths))
    if not len(lengths):
        return scores
    sizes = np.maximum(lengths, 1.0)
    damping = K1 * (1 - b + b * sizes / sizes.mean())
    for word in words:
        found = [term for term in word if term in postings and len(postings[term])]
        best = np.zeros(len(lengths))
        for term in found:
            worth = rarity(len(lengths), len(postings[term])) * (1.0 if term == word[0] else STAND_IN_WORTH)
            rows, counts = postings[term].rows, postings[term].counts
            best[rows] = np.maximum(best[rows], worth * counts * (K1 + 1) / (counts + damping[rows]))
        if found:
            scores += best
    return scores


def whole_score(words: Sequence[Word], postings: Mapping[str, Sized], total: int) -> float:
    """About what a row would score that holds every word of the query once: the rarities of all words, summed up.

    A posting is as long as there are rows that hold its term.
    """
    held = (len(postings.get(word[0], ())) for word in words)
    return sum(rarity(total, holding) for holding in held)


def rarity(total: int, holding: int) -> float:
    """What a term is worth that so many of all rows hold."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))
