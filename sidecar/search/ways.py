"""Which way a query is ranked: row by row in plain Python, or column by column with NumPy.

Both give the same hits. Few rows are ranked before NumPy has begun; many are where there is NumPy, which a daemon that
searches by words alone need not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec

from sidecar.memory.record_filter import RecordFilter
from sidecar.search.plain_ranking import PlainRanking
from sidecar.search.ranking import Ranking
from sidecar.search.visible import Part, Viewed, visible_parts

#: Up to so many rows, to be seen or not, plain Python is the quicker one.
MOST_PLAIN = 256

PartsOf = Callable[[Viewed, RecordFilter], Iterator[Part]]


def ways_for(rows: int) -> tuple[PartsOf, type[Ranking]]:
    """How the visible ones among so many rows are found, and how they are ranked."""
    if rows <= MOST_PLAIN or not has_numpy():
        return visible_parts, PlainRanking
    from sidecar.search.column_ranking import ColumnRanking
    from sidecar.search.visible_columns import parts_in_columns

    return parts_in_columns, ColumnRanking


@cache
def has_numpy() -> bool:
    """Whether NumPy is installed."""
    return find_spec("numpy") is not None
