"""What is searched of one owner: the words, times and labels of its records as columns, kept in memory.

A view follows its owner's records: before each query it takes in what was added and what changed since the last one,
so that a record is found as soon as it is acknowledged. It is derived: dropping it costs time and nothing else. What a
query costs depends on the owner's records, never on the save's.

All calls are made with the owner's lock held.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sidecar.memory.moments import UNDATED
from sidecar.memory.owner_records import Entry, OwnerRecords
from sidecar.memory.record_filter import RecordFilter
from sidecar.search.context import ALONE, Neighbours, neighbours

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_NEVER = 2**63 - 1
_COUNT_BITS = 8
# A word that stands there more often counts as so often: BM25 would hardly tell the difference.
_MOST_COUNTED = 2**_COUNT_BITS - 1


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one record: its length in words, how often each term stands in it, and the hash of its text."""

    length: int
    counts: Counter[str]
    text: bytes = b""


class OwnerView:
    """Rows 0 to n-1 are the owner's records in the order of their addition; a forgotten one keeps its row."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        #: Of each row, the hash by which its vector is kept; empty where there is nothing to embed.
        self.texts: list[bytes] = []
        self._ticks = Column("int64")
        self._expiries = Column("int64")
        self._importances = Column("float64")
        self._lengths = Column("float64")
        self._found = Column("bool")
        self._talks = Column("int64")
        self._ordinals = Column("int64")
        self._talk_numbers: dict[str, int] = {}
        self._id_places: Ints | None = None
        self._around: tuple[Ints, Neighbours] | None = None
        self._superseded = Column("bool")
        self._labels: dict[Hashable, array[int]] = {}
        # One number for each row that holds a term: the row, and in the last bits how often.
        self._terms: dict[str, array[int]] = {}
        self._rows: dict[Entry, int] = {}
        #: The number of the last row that was taken in.
        self.seen = 0
        self._changes = 0
        #: How many rows the cache of views has counted for this one.
        self.counted = 0

    def follow(self, records: OwnerRecords, words_of: Callable[[Sequence[Entry]], Iterable[Words]]) -> None:
        """Take in what was added to the owner's records and what changed there."""
        added = records.after(self.seen)
        for entry, words in zip(added, words_of(added) if added else (), strict=True):
            self._add(entry, words)
        for entry in records.changed[self._changes :]:
            row = self._rows.get(entry)
            if row is not None:
                self._found.put(row, not entry.forgotten)
                self._superseded.put(row, bool(entry.superseded_by))
        self.seen, self._changes = records.last, len(records.changed)

    @property
    def mostly_gone(self) -> bool:
        """Whether most rows are of forgotten records, so that a new view would be smaller."""
        return len(self.entries) > 64 and 2 * int(self._found.data.sum()) < len(self.entries)

    def allowed(self, wanted: RecordFilter) -> Bools:
        """Which rows pass the filter, all but its ``text`` considered."""
        mask = self._in_time(wanted)
        if not wanted.include_superseded:
            mask &= ~self._superseded.data
        if wanted.minimum_importance > 0:
            mask &= self._importances.data >= wanted.minimum_importance
        for name in ("kinds", "scopes", "authorities"):
            values = getattr(wanted, name)
            if values:
                mask &= self.labelled((name, value) for value in values)
        for tag in wanted.tags:
            mask &= self.labelled([("tags", tag)])
        for name in ("conversation_id", "source_input_id"):
            if getattr(wanted, name):
                mask &= self.labelled([(name, getattr(wanted, name))])
        return mask

    def rows_of(self, entries: Iterable[Entry]) -> list[int]:
        """The rows of entries."""
        return [self._rows[entry] for entry in entries]

    def labelled(self, labels: Iterable[Hashable]) -> Bools:
        """The rows that have any of the labels."""
        mask = self._none()
        for label in labels:
            rows = self._labels.get(label)
            if rows is not None:
                mask[_copied(rows)] = True
        return mask

    def posting(self, term: str) -> tuple[Ints, Floats] | None:
        """The rows that hold a term, and how often; None where none does."""
        found = self._terms.get(term)
        if found is None:
            return None
        packed = _copied(found)
        return packed >> _COUNT_BITS, (packed & _MOST_COUNTED).astype("float64")

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

    @property
    def talks(self) -> bool:
        """Whether any of its records is a turn of a conversation."""
        return bool(self._talk_numbers)

    def around(self, rows: Ints) -> Neighbours:
        """Who stands beside whom among some rows, numbered 0 to n-1. The last answer is kept: the next query mostly
        sees the same rows."""
        import numpy as np

        if self._around is None or not np.array_equal(self._around[0], rows):
            self._around = rows, neighbours(self._talks.data[rows], self._ordinals.data[rows])
        return self._around[1]

    def id_places(self) -> Ints:
        """The place of each row's record id in the order of ids (UTF-16, as everywhere)."""
        import numpy as np

        if self._id_places is None or len(self._id_places) != len(self.entries):
            ids = [entry.head.record_id.encode("utf-16-be") for entry in self.entries]
            places = np.empty(len(ids), np.int64)
            places[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
            self._id_places = places
        return self._id_places

    def _in_time(self, wanted: RecordFilter) -> Bools:
        now, since = wanted.at_or_before, wanted.at_or_after
        mask: Bools = self._found.data.copy()
        if now:
            mask &= self.labelled([("timeline", now.timeline), ("timeline", UNDATED.timeline)])
            mask &= self._ticks.data <= now.tick
        if since:
            mask &= self.labelled([("timeline", since.timeline)])
            mask &= self._ticks.data >= since.tick
        if not wanted.include_expired:
            # The highest tick stands for "never", so "now" is compared without ever reaching it.
            mask &= self._expiries.data > min(now.tick, _NEVER - 1) if now else self._expiries.data == _NEVER
        return mask

    def _add(self, entry: Entry, words: Words) -> None:
        row, head = len(self.entries), entry.head
        self.entries.append(entry)
        self.texts.append(words.text)
        self._rows[entry] = row
        self._ordinals.add(head.ordinal or 0)
        self._talks.add(self._talk_number(head.conversation_id) if head.ordinal is not None else ALONE)
        self._ticks.add(head.moment.tick)
        self._expiries.add(head.expires.tick if head.expires else _NEVER)
        self._importances.add(head.importance)
        self._lengths.add(words.length)
        self._found.add(not entry.forgotten)
        self._superseded.add(bool(entry.superseded_by))
        for label in _labels(entry):
            self._labels.setdefault(label, array("I")).append(row)
        packed = row << _COUNT_BITS
        for term, count in words.counts.items():
            numbers = self._terms.get(term)
            if numbers is None:
                numbers = self._terms[term] = array("I")
            numbers.append(packed | (count if count < _MOST_COUNTED else _MOST_COUNTED))

    def _talk_number(self, conversation: str) -> int:
        return self._talk_numbers.setdefault(conversation, len(self._talk_numbers)) if conversation else ALONE

    def _none(self) -> Bools:
        import numpy as np

        return np.zeros(len(self.entries), dtype=bool)


class Column:
    """Numbers that grow at the end; ``data`` is what is there now."""

    def __init__(self, kind: str) -> None:
        import numpy as np

        self._room = np.empty(8, dtype=kind)
        self._size = 0

    @property
    def data(self) -> Any:
        return self._room[: self._size]

    def add(self, value: float) -> None:
        import numpy as np

        if self._size == len(self._room):
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[self._size] = value
        self._size += 1

    def put(self, row: int, value: float) -> None:
        self._room[row] = value


def _labels(entry: Entry) -> list[Hashable]:
    head = entry.head
    return [
        ("timeline", head.moment.timeline),
        ("kinds", head.kind),
        ("scopes", head.scope),
        ("authorities", head.authority),
        ("conversation_id", head.conversation_id),
        ("source_input_id", head.source_input_id),
        *(("tags", tag) for tag in head.tags),
        *(("audience", group) for group in head.audience),
    ]


def _copied(values: array[int]) -> Ints:
    """A copy: an array that numpy looks into cannot grow."""
    import numpy as np

    return np.frombuffer(values, dtype=f"u{values.itemsize}").astype("int64")
