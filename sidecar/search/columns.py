"""One owner's view in columns, for queries that look at many records: NumPy weighs them all at once.

Columns follow their view as the view follows its owner's records. All calls are made with the owner's lock held.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sidecar.memory.moments import HIGHEST, UNDATED, Moment
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_filter import RecordFilter
from sidecar.memory.records import RecordHead
from sidecar.search.bm25 import Posting
from sidecar.search.column import Column
from sidecar.search.context import Neighbours, neighbours
from sidecar.search.owner_view import COUNT_BITS, MOST_COUNTED, OwnerView
from sidecar.storage.keys import ordinal

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NEVER = HIGHEST


class Labels:
    """One word of each row, such as its kind; rows are asked for by it."""

    def __init__(self, of: Callable[[RecordHead], Hashable]) -> None:
        self._of = of
        self._numbers: dict[Hashable, int] = {}
        self._column = Column("int32")

    def extend(self, heads: Sequence[RecordHead]) -> None:
        numbers = self._numbers
        self._column.extend([numbers.setdefault(self._of(head), len(numbers)) for head in heads])

    def among(self, values: Iterable[Hashable]) -> Bools:
        """The rows that have one of the values."""
        wanted = [self._numbers[value] for value in values if value in self._numbers]
        mask: Bools = np.isin(self._column.data, wanted) if len(wanted) > 1 else self._column.data == (*wanted, -1)[0]
        return mask


class Columns:
    """Of each row of a view, what filters and ranking look at."""

    def __init__(self, view: OwnerView) -> None:
        self._view = view
        self._ticks = Column("int64")
        self._expiries = Column("int64")
        self._importances = Column("float64")
        self._lengths = Column("float64")
        self._conversations = Column("int64")
        self._ordinals = Column("int64")
        self._found = Column("bool")
        self._superseded = Column("int64")
        self._labels = {
            "timeline": Labels(lambda head: head.moment.timeline),
            "kinds": Labels(lambda head: head.kind),
            "scopes": Labels(lambda head: head.scope),
            "authorities": Labels(lambda head: head.authority),
            "conversation_id": Labels(lambda head: head.conversation_id),
            "source_input_id": Labels(lambda head: head.source_input_id),
        }
        self._tags: dict[str, array[int]] = {}
        self._changes = 0
        self._id_places: Ints | None = None
        self._around: tuple[Ints, Neighbours] | None = None

    def __len__(self) -> int:
        return len(self._ticks.data)

    def follow(self) -> None:
        """Become as the view is now."""
        first = len(self)
        if first < len(self._view.entries):
            self._extend(first, self._view.entries[first:])
        for row in self._view.changed[self._changes :]:
            entry = self._view.entries[row]
            self._found.put(row, not entry.forgotten)
            self._superseded.put(row, _bounded(entry.superseded_since))
        self._changes = len(self._view.changed)

    def allowed(self, wanted: RecordFilter) -> Bools:
        """Which rows pass the filter, all but its ``text`` considered."""
        mask = self._in_time(wanted)
        if not wanted.include_superseded:
            mask &= _after(self._superseded.data, wanted.at_or_before)
        if wanted.minimum_importance > 0:
            mask &= self._importances.data >= wanted.minimum_importance
        for name in ("kinds", "scopes", "authorities"):
            if values := getattr(wanted, name):
                mask &= self._labels[name].among(values)
        for tag in wanted.tags:
            mask &= self._marked(self._tags.get(tag, ()))
        for name in ("conversation_id", "source_input_id"):
            if value := getattr(wanted, name):
                mask &= self._labels[name].among([value])
        return mask

    def addressed_to(self, group: str) -> Bools:
        """The rows that are addressed to a group."""
        return self._marked(self._view.addressed.get(group, ()))

    def posting(self, term: str) -> Posting | None:
        """The rows that hold a term, and how often; None where none does."""
        found = self._view.posting(term)
        if not found:
            return None
        packed = np.array(found, np.int64)  # a copy: an array that NumPy looks into cannot grow
        return Posting(packed >> COUNT_BITS, (packed & MOST_COUNTED).astype(np.float64))

    @property
    def ticks(self) -> Ints:
        """When it happened, of each row."""
        ticks: Ints = self._ticks.data
        return ticks

    @property
    def importances(self) -> Floats:
        """How much it matters, of each row."""
        importances: Floats = self._importances.data
        return importances

    @property
    def lengths(self) -> Floats:
        """How many words it has, of each row."""
        lengths: Floats = self._lengths.data
        return lengths

    def around(self, rows: Ints) -> Neighbours:
        """Who stands beside whom among some rows, numbered 0 to n-1. The last answer is kept: the next query mostly
        sees the same rows."""
        if self._around is None or not np.array_equal(self._around[0], rows):
            self._around = rows, neighbours(self._conversations.data[rows], self._ordinals.data[rows])
        return self._around[1]

    def id_places(self) -> Ints:
        """The place of each row's record id in the order of ids."""
        if self._id_places is None or len(self._id_places) != len(self):
            ids = [ordinal(entry.head.record_id) for entry in self._view.entries]
            places = np.empty(len(ids), np.int64)
            places[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
            self._id_places = places
        return self._id_places

    def _extend(self, first: int, entries: Sequence[Entry]) -> None:
        heads = [entry.head for entry in entries]
        for labels in self._labels.values():
            labels.extend(heads)
        for row, head in enumerate(heads, first):
            for tag in head.tags:
                self._tags.setdefault(tag, array("I")).append(row)
        self._ticks.extend([head.moment.tick for head in heads])
        self._expiries.extend([_bounded(head.expires.tick if head.expires else None) for head in heads])
        self._importances.extend([head.importance for head in heads])
        self._found.extend([not entry.forgotten for entry in entries])
        self._superseded.extend([_bounded(entry.superseded_since) for entry in entries])
        for column, values in (
            (self._lengths, self._view.lengths),
            (self._conversations, self._view.conversations),
            (self._ordinals, self._view.ordinals),
        ):
            column.extend(values[first:])

    def _in_time(self, wanted: RecordFilter) -> Bools:
        now, since = wanted.at_or_before, wanted.at_or_after
        mask: Bools = self._found.data.copy()
        if now:
            mask &= self._labels["timeline"].among([now.timeline, UNDATED.timeline])
            mask &= self._ticks.data <= now.tick
        if since:
            mask &= self._labels["timeline"].among([since.timeline])
            mask &= self._ticks.data >= since.tick
        if not wanted.include_expired:
            mask &= _after(self._expiries.data, now)
        return mask

    def _marked(self, rows: Sequence[int]) -> Bools:
        mask = np.zeros(len(self), dtype=bool)
        mask[np.array(rows, np.int64)] = True
        return mask


def _bounded(tick: int | None) -> int:
    """A tick in a column, where the highest one stands for "never"."""
    return _NEVER if tick is None else min(tick, _NEVER - 1)


def _after(ticks: Ints, now: Moment | None) -> Bools:
    """What has not come yet; without "now", what never comes. "Now" is compared without ever reaching "never"."""
    after: Bools = ticks > min(now.tick, _NEVER - 1) if now else ticks == _NEVER
    return after
