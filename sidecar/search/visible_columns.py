"""The visible rows of a query in columns, for queries that look at many records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np

from sidecar.memory.record_filter import RecordFilter
from sidecar.search.access import Known, by_group
from sidecar.search.bm25 import Posting
from sidecar.search.column import joined
from sidecar.search.columns import Floats, Ints
from sidecar.search.context import RADIUS, Neighbours, nobody
from sidecar.search.owner_view import OwnerView
from sidecar.search.visible import Part, Viewed, Visible, owner_order


def parts_in_columns(viewed: Viewed, wanted: RecordFilter) -> Iterator[Part]:
    """As :func:`sidecar.search.visible.visible_parts`."""
    owner, view, columns = viewed.owner, viewed.view, viewed.view.columns
    columns.follow()
    allowed = columns.allowed(wanted)
    if viewed.reach.known is not None:
        yield Part(owner, view, np.flatnonzero(allowed), viewed.reach.known)
        return
    for group in viewed.reach.groups:
        addressed = allowed & columns.addressed_to(group.group_id)
        allowed &= ~addressed
        yield Part(owner, view, np.flatnonzero(addressed), by_group(group))
    shared = np.sort(np.array(view.rows_of(viewed.shared), np.int64))
    yield Part(owner, view, shared[allowed[shared]], viewed.shared)


class VisibleColumns:
    """Columns of all visible rows, in their order."""

    def __init__(self, visible: Visible) -> None:
        self._parts = [(part, np.asarray(part.rows, np.int64)) for part in visible.parts]
        self._starts = visible.starts

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def talks(self) -> bool:
        """Whether any of the owners has turns of a conversation."""
        return any(part.view.talks for part, _ in self._parts)

    def lengths(self) -> Floats:
        """Of each row, in words."""
        lengths: Floats = joined(
            [_picked(part, part.view.columns.lengths, rows) for part, rows in self._parts], "float64"
        )
        return lengths

    def ticks(self) -> Ints:
        """When it happened, of each row."""
        ticks: Ints = joined([_picked(part, part.view.columns.ticks, rows) for part, rows in self._parts], "int64")
        return ticks

    def importances(self) -> Floats:
        """How much it matters to the actor, of each row."""
        importances: Floats = joined([_weighted(part, rows) for part, rows in self._parts], "float64")
        return importances

    def postings(self, terms: Iterable[str]) -> dict[str, Posting]:
        """Where each of the terms stands; terms that no row holds are left out."""
        found = {term: self._posting(term) for term in terms}
        return {term: posting for term, posting in found.items() if posting is not None}

    def owner_places(self) -> Ints:
        """The place of each row's owner among the query's owners."""
        owners = sorted((part.owner for part, _ in self._parts), key=owner_order)
        places: Ints = joined([np.full(len(rows), owners.index(part.owner)) for part, rows in self._parts], "int64")
        return places

    def id_places(self) -> Ints:
        """The place of each row's id among those of its owner."""
        places: Ints = joined([part.view.columns.id_places()[rows] for part, rows in self._parts], "int64")
        return places

    def around(self) -> Neighbours:
        """Who stands beside whom in a conversation; rows of different owners never do."""
        if not self.talks:
            return nobody(len(self))
        if len(self._parts) == 1:
            return self._parts[0][0].view.columns.around(self._parts[0][1])
        rows, weights = np.zeros((len(self), 2 * RADIUS), np.int64), np.zeros((len(self), 2 * RADIUS))
        places, shared, end = np.arange(len(self)), False, 0
        for view, own_rows in self._by_view():
            start, end = end, end + len(own_rows)
            if view.talks and len(own_rows):
                own = view.columns.around(own_rows)
                rows[start:end], weights[start:end] = own.rows + start, own.weights
                if own.places is not None:
                    places[start:end], shared = own.places + start, True
        return Neighbours(rows, weights, places if shared else None)

    def _by_view(self) -> Iterator[tuple[OwnerView, Ints]]:
        """The rows of each owner together, for whatever reasons they may be seen."""
        for _, same in groupby(self._parts, key=lambda one: id(one[0].view)):
            parts = list(same)
            yield parts[0][0].view, joined([rows for _, rows in parts], "int64")

    def _posting(self, term: str) -> Posting | None:
        pieces = [
            piece
            for start, (part, rows) in zip(self._starts, self._parts, strict=False)
            if (piece := _piece(part, rows, term, start)) is not None
        ]
        if not pieces:
            return None
        return Posting(
            joined([piece.rows for piece in pieces], "int64"),
            joined([piece.counts for piece in pieces], "float64"),
        )


def _picked(part: Part, column: Any, rows: Ints) -> Any:
    """The visible rows of a column, which is the column itself where all are: nobody may write into it."""
    return column if part.whole else column[rows]


def _piece(part: Part, visible: Ints, term: str, start: int) -> Posting | None:
    """Where a term stands among the visible rows of one part."""
    found = part.view.columns.posting(term)
    if found is None or not len(visible):
        return None
    if part.whole:
        return Posting(found.rows + start, found.counts)
    places = np.searchsorted(visible, found.rows)
    seen = visible[np.minimum(places, len(visible) - 1)] == found.rows
    return Posting(places[seen] + start, found.counts[seen]) if seen.any() else None


def _weighted(part: Part, rows: Ints) -> Floats:
    importances: Floats = _picked(part, part.view.columns.importances, rows)
    if isinstance(part.known, Known):
        return importances if part.known.weight == 1.0 else importances * part.known.weight
    weighted: Floats = importances * np.array([part.known[part.view.entries[row]].weight for row in rows])
    return weighted
