"""The rows that one query may see, out of the views of several owners, put side by side.

Everything that ranking counts (how many records there are, in how many a word stands, how long they are) is counted
over exactly these rows, numbered 0 to n-1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.memory.owner_records import Entry
from sidecar.search.access import Known
from sidecar.search.bm25 import Posting
from sidecar.search.owner_view import OwnerView
from sidecar.storage.keys import ActorId

if TYPE_CHECKING:
    from sidecar.search.owner_view import Floats, Ints


@dataclass(frozen=True, slots=True)
class Part:
    """The visible rows of one owner's view, ascending. ``known`` says why each may be seen, or why all may."""

    owner: ActorId
    view: OwnerView
    rows: Ints
    known: Known | Mapping[int, Known]

    def reason(self, row: int) -> Known:
        """Why a row of the view may be seen."""
        return self.known if isinstance(self.known, Known) else self.known[row]


class Visible:
    """All visible rows of a query, part after part."""

    def __init__(self, parts: list[Part]) -> None:
        import numpy as np

        self._parts = parts
        self._starts = np.cumsum([0, *(len(part.rows) for part in parts)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def lengths(self) -> Floats:
        """Of each row, in words."""
        return self._joined([part.view.lengths[part.rows] for part in self._parts], "float64")

    def ticks(self) -> Ints:
        """When it happened, of each row."""
        return self._joined([part.view.ticks[part.rows] for part in self._parts], "int64")

    def importances(self) -> Floats:
        """How much it matters to the actor, of each row."""
        return self._joined([_weighted(part) for part in self._parts], "float64")

    def postings(self, terms: Iterable[str]) -> dict[str, Posting]:
        """Where each of the terms stands; terms that no row holds are left out."""
        found = {term: self._posting(term) for term in terms}
        return {term: posting for term, posting in found.items() if posting is not None}

    def at(self, row: int) -> tuple[ActorId, Entry, Known]:
        """Whose record a row is, which one, and why it may be seen."""
        import numpy as np

        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        part = self._parts[number]
        own = int(part.rows[row - self._starts[number]])
        return part.owner, part.view.entries[own], part.reason(own)

    def _posting(self, term: str) -> Posting | None:
        pieces = [
            piece
            for start, part in zip(self._starts, self._parts, strict=False)
            if (piece := _piece(part, term, int(start))) is not None
        ]
        if not pieces:
            return None
        return Posting(
            self._joined([piece.rows for piece in pieces], "int64"),
            self._joined([piece.counts for piece in pieces], "float64"),
        )

    def _joined(self, arrays: list[Ints] | list[Floats], kind: str) -> Ints | Floats:
        import numpy as np

        if len(arrays) == 1:
            return arrays[0]
        return np.concatenate(arrays) if arrays else np.empty(0, dtype=kind)


def _piece(part: Part, term: str, start: int) -> Posting | None:
    """Where a term stands among the visible rows of one part."""
    import numpy as np

    found = part.view.posting(term)
    if found is None or not len(part.rows):
        return None
    rows, counts = found
    places = np.searchsorted(part.rows, rows)
    seen = part.rows[np.minimum(places, len(part.rows) - 1)] == rows
    return Posting(places[seen] + start, counts[seen]) if seen.any() else None


def _weighted(part: Part) -> Floats:
    import numpy as np

    importances = part.view.importances[part.rows]
    if isinstance(part.known, Known):
        return importances * part.known.weight
    return importances * np.array([part.known[int(row)].weight for row in part.rows])
