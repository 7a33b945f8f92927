"""Several channels into one order: what words found and what meaning found, for each row of a query.

Two ways. *Reciprocal rank* adds ``weight / (k + rank)``; it needs no scale, and a weak channel drags a strong one down.
The *weighted sum* adds normalised scores; it is the default, because it measures better (``docs/recall.md``).

Pure arithmetic over rows 0 to n-1 of the records that the query may see; nothing here knows what a row is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from sidecar.search.channels import BEST_WORDS, Channel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: The constant of reciprocal rank.
RRF_K = 60.0
#: Fused scores are compared at this many decimals, so that the order does not hang on how a sum was rounded.
DECIMALS = 12


class Weighted(Protocol):
    """A channel, as far as its weight goes."""

    @property
    def weight(self) -> float: ...


@dataclass(frozen=True)
class Standing:
    """What breaks ties, by row: importance, tick, and the places of owner and id among the query's owners and ids."""

    importance: Floats
    ticks: Ints
    owners: Ints
    ids: Ints

    def places(self) -> Ints:
        """The place of each row when scores are equal: importance and tick descending, owner and id ascending."""
        import numpy as np

        order = np.lexsort((self.ids, self.owners, ~self.ticks, -self.importance))
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return places


def weighted_sum(channels: Iterable[Channel]) -> Floats:
    """The fused score of each row; -inf for rows that no channel with a weight found."""
    return _sum_found([(channel.weight * channel.normalised, channel) for channel in channels])


def by_rank(channel: Channel, ties: Ints, *, k: float = RRF_K) -> Channel:
    """A channel of which only the places count: a row that it found counts ``1 / (k + place)``. Rows with equal scores
    stand by their places in ``ties``."""
    import numpy as np

    order = ranked(np.where(channel.found, channel.scores, -np.inf), ties)
    places = np.zeros(len(ties), np.int64)
    places[order] = np.arange(1, len(order) + 1)
    shares = np.where(channel.found, 1 / (k + places), 0.0)
    return replace(channel, normalised=shares, counted=None, places=places)


def clear_difference_of_sums(channels: Iterable[Weighted]) -> float:
    """How far apart weighted sums are that no reranking should overlook: half of the best answer of one channel."""
    return BEST_WORDS / 2 * max((channel.weight for channel in channels), default=1.0)


def clear_difference_of_ranks(channels: Iterable[Weighted], *, k: float = RRF_K) -> float:
    """The same for reciprocal rank: a fifth of a first place in one channel."""
    return max((channel.weight for channel in channels), default=1.0) / (5 * (k + 1))


def _sum_found(terms: Sequence[tuple[Floats, Channel]]) -> Floats:
    import numpy as np

    counted = [(values, channel.found) for values, channel in terms if channel.weight > 0]
    if not counted:
        return np.full(len(terms[0][0]) if terms else 0, -np.inf)
    total, found = counted[0]
    for values, more in counted[1:]:
        total, found = total + values, found | more
    return np.where(found, np.round(total, DECIMALS), -np.inf)


def ranked(scores: Floats, ties: Ints, *, limit: int | None = None) -> Ints:
    """The rows in order, best first, equal scores by their places in ``ties``; rows at -inf are left out."""
    import numpy as np

    rows = np.flatnonzero(scores > -np.inf)
    if limit is not None and limit < len(rows):
        least = np.partition(scores[rows], len(rows) - limit)[len(rows) - limit] if limit else np.inf
        rows = rows[scores[rows] >= least]
    order: Ints = rows[np.lexsort((ties[rows], -scores[rows]))][:limit]
    return order
