"""What is searched of one owner, kept in memory: its records, their words, and their places in conversations.

A view follows its owner's records: before each query it takes in what was added and what changed since the last one,
so that a record is found as soon as it is acknowledged. It is derived: dropping it costs time and nothing else. What a
query costs depends on the owner's records, never on the save's.

All calls are made with the owner's lock held.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from sidecar.memory.owner_records import Entry, OwnerRecords
from sidecar.search.context import ALONE
from sidecar.search.plain_channels import NOBODY, Around, neighbours

if TYPE_CHECKING:
    from sidecar.search.columns import Columns

COUNT_BITS = 8
#: A word that stands there more often counts as so often: BM25 would hardly tell the difference.
MOST_COUNTED = 2**COUNT_BITS - 1


class Rows(Protocol):
    """Numbers of rows, ascending: a list, or an array where columns are ranked."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __getitem__(self, place: Any, /) -> Any: ...


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
        #: Of each row, how many words it has.
        self.lengths = array("I")
        #: Of each row, the number of its conversation (ALONE for none) and its place there.
        self.conversations, self.ordinals = array("q"), array("q")
        #: Rows that were superseded, shared or forgotten, in that order.
        self.changed: list[int] = []
        #: For each group, the rows that are addressed to it.
        self.addressed: dict[str, array[int]] = {}
        self._conversation_numbers: dict[str, int] = {}
        self._terms: dict[str, array[int]] = {}
        self._rows: dict[Entry, int] = {}
        self._around: tuple[Rows, Around] | None = None
        self._live = 0
        #: The number of the last row that was taken in.
        self.seen = 0
        self._changes = 0
        #: How many rows the cache of views has counted for this one.
        self.counted = 0

    def follow(self, records: OwnerRecords, words_of: Callable[[Sequence[Entry]], Iterable[Words]]) -> None:
        """Take in what was added to the owner's records and what changed there."""
        if self.seen != records.last:
            added = records.after(self.seen)
            for entry, words in zip(added, words_of(added), strict=True):
                self._add(entry, words)
                self.seen = entry.number
        for entry in records.changed[self._changes :]:
            row = self._rows.get(entry)
            if row is not None:
                self.changed.append(row)
        self.seen, self._changes, self._live = records.last, len(records.changed), len(records.entries)

    @cached_property
    def columns(self) -> Columns:
        """The same for many rows at once, with NumPy; follow it before it is used."""
        from sidecar.search.columns import Columns

        return Columns(self)

    @property
    def mostly_gone(self) -> bool:
        """Whether most rows are of forgotten records, so that a new view would be smaller."""
        return len(self.entries) > 64 and 2 * self._live < len(self.entries)

    @property
    def talks(self) -> bool:
        """Whether any of its records is a turn of a conversation."""
        return bool(self._conversation_numbers)

    def rows_of(self, entries: Iterable[Entry]) -> list[int]:
        """The rows of entries."""
        return [self._rows[entry] for entry in entries]

    def posting(self, term: str) -> Sequence[int]:
        """One number for each row that holds a term, ascending: the row, and in the last COUNT_BITS how often."""
        return self._terms.get(term, ())

    def around(self, rows: Rows) -> Around:
        """Who lends words to whom among some rows, numbered 0 to n-1. The last answer is kept: the next query mostly
        sees the same rows."""
        if not self.talks:
            return NOBODY
        if self._around is None or self._around[0] != rows:
            talks, ordinals = self.conversations, self.ordinals
            self._around = rows, neighbours([talks[row] for row in rows], [ordinals[row] for row in rows])
        return self._around[1]

    def _add(self, entry: Entry, words: Words) -> None:
        row, head = len(self.entries), entry.head
        self.entries.append(entry)
        self.texts.append(words.text)
        self.lengths.append(words.length)
        self._rows[entry] = row
        self.ordinals.append(head.ordinal or 0)
        self.conversations.append(self._number(head.conversation_id) if head.ordinal is not None else ALONE)
        for group in head.audience:
            self.addressed.setdefault(group, array("I")).append(row)
        packed = row << COUNT_BITS
        for term, count in words.counts.items():
            numbers = self._terms.get(term)
            if numbers is None:
                numbers = self._terms[term] = array("I")
            numbers.append(packed | (count if count < MOST_COUNTED else MOST_COUNTED))

    def _number(self, conversation: str) -> int:
        numbers = self._conversation_numbers
        return numbers.setdefault(conversation, len(numbers)) if conversation else ALONE
