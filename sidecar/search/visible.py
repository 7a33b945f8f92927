"""The rows that one query may see, out of the views of several owners, put side by side.

Everything that ranking counts (how many records there are, in how many a word stands, how long they are) is counted
over exactly these rows, numbered 0 to n-1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from sidecar.memory.owner_records import Entry
from sidecar.memory.record_filter import RecordFilter
from sidecar.search.access import Known, Reach, by_group
from sidecar.search.owner_view import OwnerView, Rows
from sidecar.storage.keys import ActorId, ordinal


@dataclass(frozen=True, slots=True)
class Viewed:
    """The view of an owner that a query looks at, what of it the query may see, and what was shared with the actor."""

    owner: ActorId
    view: OwnerView
    reach: Reach
    shared: Mapping[Entry, Known]


@dataclass(frozen=True, slots=True)
class Part:
    """The visible rows of one owner's view. ``known`` says why each may be seen, or why all may."""

    owner: ActorId
    view: OwnerView
    rows: Rows
    known: Known | Mapping[Entry, Known]

    @property
    def whole(self) -> bool:
        """Whether every row of the view is visible."""
        return len(self.rows) == len(self.view.entries)

    def reason(self, entry: Entry) -> Known:
        """Why a record may be seen."""
        return self.known if isinstance(self.known, Known) else self.known[entry]

    def only(self, rows: Iterable[int]) -> Part:
        """This part with some of its rows, ascending."""
        return replace(self, rows=list(rows))


class Visible:
    """All visible rows of a query, part after part."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        #: The number of the first row of each part, and then of all rows.
        self.starts = list(accumulate((len(part.rows) for part in parts), initial=0))

    def __len__(self) -> int:
        return self.starts[-1]

    def at(self, row: int) -> tuple[ActorId, Entry, Known]:
        """Whose record a row is, which one, and why it may be seen."""
        number = bisect_right(self.starts, row) - 1
        part = self.parts[number]
        entry = part.view.entries[part.rows[row - self.starts[number]]]
        return part.owner, entry, part.reason(entry)

    def name(self, row: int) -> tuple[tuple[bytes, ...], bytes]:
        """By what hits are put in order that are equal in all else: the owner, then the id."""
        who, entry, _ = self.at(row)
        return owner_order(who), ordinal(entry.head.record_id)


def visible_parts(viewed: Viewed, wanted: RecordFilter) -> Iterator[Part]:
    """The rows that pass the filter: all of them, or those for each group and then those that are shared."""
    owner, view, reach = viewed.owner, viewed.view, viewed.reach
    if reach.known is not None:
        yield Part(owner, view, _passing(view, range(len(view.entries)), wanted), reach.known)
        return
    seen: set[int] = set()
    for group in reach.groups:
        rows = _passing(view, view.addressed.get(group.group_id, ()), wanted)
        yield Part(owner, view, [row for row in rows if row not in seen], by_group(group))
        seen.update(rows)
    rows = _passing(view, sorted(view.rows_of(viewed.shared)), wanted)
    yield Part(owner, view, [row for row in rows if row not in seen], viewed.shared)


def owner_order(who: ActorId) -> tuple[bytes, ...]:
    """By what owners are put in order where hits are equal."""
    return tuple(map(ordinal, (who.actor, who.role, who.player, who.topic, who.tenant)))


def _passing(view: OwnerView, rows: Iterable[int], wanted: RecordFilter) -> list[int]:
    """Which of some rows pass the filter, all but its ``text`` considered."""
    entries, passes = view.entries, wanted.passes
    return [
        row
        for row in rows
        if not (entry := entries[row]).forgotten and passes(entry.head, superseded_since=entry.superseded_since)
    ]
