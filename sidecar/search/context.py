"""What stands around a turn: scores in the light of the turns before and after it in the same conversation.

"What do you do?" - "I paint." - "Oh, since when?" - "Since the war." A turn of talk says little alone. So a query is
also held against each turn together with its neighbours: two before and two after, each place further away at 0.7 of
the weight. Nothing is indexed or embedded twice for it: the words of a turn in context are the counted words of its
neighbourhood, its similarity in context is the weighted mean of theirs.

Only rows that the query may see are neighbours: a turn from the future, or one that a filter hides, lends nothing.
Several rows at one place of a conversation lend together and are all lent the same, but nothing to each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.search.bm25 import Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: How many places before and after lend to a turn.
RADIUS = 2
#: The weight of the next place against this one.
DECAY = 0.7
#: The conversation number of a record that belongs to none.
ALONE = -1


@dataclass(frozen=True)
class Neighbours:
    """The neighbours of each row, ``rows`` and ``weights`` of shape (n, 4); weight 0 where there is none.

    Where several rows stand at one place the first of them has the neighbours, and is named as one; ``places`` is that
    first one of each row. None where no place is shared.
    """

    rows: Ints
    weights: Floats
    places: Ints | None = None

    @property
    def exist(self) -> bool:
        """Whether any row has a neighbour; without one, context adds nothing."""
        return bool(self.weights.any())


def neighbours(conversations: Ints, ordinals: Ints) -> Neighbours:
    """Who stands beside whom, by the number of each row's conversation (ALONE for none) and its place in it.

    A neighbour's ordinal differs by 1 or 2; a gap in the ordinals is a gap in the talk.
    """
    import numpy as np

    count = len(conversations)
    rows = np.zeros((count, 2 * RADIUS), np.int64, order="F")
    weights = np.zeros((count, 2 * RADIUS), order="F")
    order = np.lexsort((ordinals, conversations))
    order, places = _first_at_each_place(order, conversations, ordinals)
    talk, place = conversations[order], ordinals[order].astype(np.uint64)
    for step in range(1, min(RADIUS, len(order) - 1) + 1):
        gap = place[step:] - place[:-step]
        near = (talk[step:] == talk[:-step]) & (talk[step:] != ALONE) & (gap >= 1) & (gap <= RADIUS)
        earlier, later = order[:-step][near], order[step:][near]
        lent = DECAY ** gap[near].astype(np.float64)
        rows[later, step - 1], weights[later, step - 1] = earlier, lent
        rows[earlier, RADIUS + step - 1], weights[earlier, RADIUS + step - 1] = later, lent
    return Neighbours(rows, weights, places)


def _first_at_each_place(order: Ints, conversations: Ints, ordinals: Ints) -> tuple[Ints, Ints | None]:
    """Of the rows in the order of their places: the first at each place, and that of each row (None where no place is
    shared)."""
    import numpy as np

    talk, place = conversations[order], ordinals[order]
    first = np.ones(len(order), bool)
    first[1:] = (talk[1:] != talk[:-1]) | (place[1:] != place[:-1]) | (talk[1:] == ALONE)
    if first.all():
        return order, None
    places = np.empty_like(order)
    places[order] = order[first][np.cumsum(first) - 1]
    return order[first], places


def nobody(count: int) -> Neighbours:
    """So many rows without a neighbour; takes no memory."""
    import numpy as np

    shape = (count, 2 * RADIUS)
    return Neighbours(np.broadcast_to(np.int64(0), shape), np.broadcast_to(np.float64(0), shape))


def posting_in_context(posting: Posting, around: Neighbours) -> Posting:
    """The posting of a term when each row also holds, at their weight, the words of its neighbours."""
    import numpy as np

    at = posting.rows if around.places is None else around.places[posting.rows]
    lent = (around.weights[at] * posting.counts[:, None]).ravel()
    counts = np.bincount(around.rows[at].ravel(), lent, minlength=len(around.rows)).astype(np.float64)
    if around.places is not None:
        counts = counts[around.places]
    counts[posting.rows] += posting.counts
    holding = np.flatnonzero(counts)
    return Posting(holding, counts[holding])


def lengths_in_context(lengths: Floats, around: Neighbours) -> Floats:
    """The length of each row together with its neighbours, at their weight."""
    return lengths + _lent(lengths, around)


def similarities_in_context(similarities: Floats, around: Neighbours) -> Floats:
    """The weighted mean of each row's similarity and its neighbours'.

    A row without a vector (NaN) lends nothing, and stays NaN where its neighbours have no vector either.
    """
    import numpy as np

    known = ~np.isnan(similarities)
    values = np.where(known, similarities, 0.0)
    weights = known + _lent(known, around)
    total = values + _lent(values, around)
    means: Floats = np.where(weights > 0, total / np.where(weights > 0, weights, 1.0), np.nan)
    return means


def _lent(values: Floats | Bools, around: Neighbours) -> Floats:
    """What the neighbours of each row lend to it of their values; place by place, which is quicker than row by row."""
    import numpy as np

    total = np.zeros(len(values))
    held = values if around.places is None else np.bincount(around.places, values, minlength=len(values))
    for place in range(2 * RADIUS):
        total += around.weights[:, place] * held[around.rows[:, place]]
    return total if around.places is None else total[around.places]
