"""The rows that one query may see, out of the views of several owners, put side by side.

Everything that ranking counts (how many records there are, in how many a word stands, how long they are) is counted
over exactly these rows, numbered 0 to n-1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from sidecar.memory.owner_records import Entry
from sidecar.memory.record_filter import RecordFilter
from sidecar.search.access import Known, Reach, by_group
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
    known: Known | Mapping[Entry, Known]

    def reason(self, entry: Entry) -> Known:
        """Why a record may be seen."""
        return self.known if isinstance(self.known, Known) else self.known[entry]

    def only(self, rows: Iterable[int]) -> Part:
        """This part with some of its rows, ascending."""
        import numpy as np

        return replace(self, rows=np.array(list(rows), dtype="int64"))


def visible_parts(
    owner: ActorId, view: OwnerView, reach: Reach, wanted: RecordFilter, shared: Mapping[Entry, Known]
) -> Iterator[Part]:
    """The rows that pass the filter: all of them, or those for each group and then those that are ``shared``."""
    import numpy as np

    allowed = view.allowed(wanted)
    if reach.known is not None:
        yield Part(owner, view, np.flatnonzero(allowed), reach.known)
        return
    for group in reach.groups:
        addressed = allowed & view.labelled([("audience", group.group_id)])
        allowed &= ~addressed
        yield Part(owner, view, np.flatnonzero(addressed), by_group(group))
    part = Part(owner, view, np.empty(0, dtype="int64"), shared)
    yield part.only(row for row in sorted(view.rows_of(shared)) if allowed[row])


class Visible:
    """All visible rows of a query, part after part."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts
        self._starts = list(accumulate((len(part.rows) for part in parts), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def lengths(self) -> Floats:
        """Of each row, in words."""
        lengths: Floats = _joined([part.view.lengths[part.rows] for part in self._parts], "float64")
        return lengths

    def ticks(self) -> Ints:
        """When it happened, of each row."""
        ticks: Ints = _joined([part.view.ticks[part.rows] for part in self._parts], "int64")
        return ticks

    def importances(self) -> Floats:
        """How much it matters to the actor, of each row."""
        importances: Floats = _joined([_weighted(part) for part in self._parts], "float64")
        return importances

    def postings(self, terms: Iterable[str]) -> dict[str, Posting]:
        """Where each of the terms stands; terms that no row holds are left out."""
        found = {term: self._posting(term) for term in terms}
        return {term: posting for term, posting in found.items() if posting is not None}

    def at(self, row: int) -> tuple[ActorId, Entry, Known]:
        """Whose record a row is, which one, and why it may be seen."""
        number = bisect_right(self._starts, row) - 1
        part = self._parts[number]
        entry = part.view.entries[int(part.rows[row - self._starts[number]])]
        return part.owner, entry, part.reason(entry)

    def _posting(self, term: str) -> Posting | None:
        pieces = [
            piece
            for start, part in zip(self._starts, self._parts, strict=False)
            if (piece := _piece(part, term, start)) is not None
        ]
        if not pieces:
            return None
        return Posting(
            _joined([piece.rows for piece in pieces], "int64"),
            _joined([piece.counts for piece in pieces], "float64"),
        )


def _joined(arrays: Sequence[Any], kind: str) -> Any:
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
    if len(part.rows) == len(part.view.entries):
        return Posting(rows + start, counts)
    places = np.searchsorted(part.rows, rows)
    seen = part.rows[np.minimum(places, len(part.rows) - 1)] == rows
    return Posting(places[seen] + start, counts[seen]) if seen.any() else None


def _weighted(part: Part) -> Floats:
    import numpy as np

    importances = part.view.importances[part.rows]
    if isinstance(part.known, Known):
        return importances * part.known.weight
    weighted: Floats = importances * np.array([part.known[part.view.entries[row]].weight for row in part.rows])
    return weighted
