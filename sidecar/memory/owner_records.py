"""The records of one owner as their journal tells them, row by row. No file is touched here.

    {"n":1,"op":"add","rev":7,"hash":"…","record":{…}}          a record; one that names another supersedes it
    {"n":2,"op":"share","rev":8,"id":"m1","shares":[…]}         everyone who knows it from now on
    {"n":3,"op":"forget","rev":9,"ids":["m1"]}                  gone for good

``n`` numbers the rows of an owner, so that a row that stands in two files after a crash counts once. A journal that
was compacted holds fewer rows, with their numbers, and ``{"n":3,"op":"end"}`` where the last number is missing.

A row of a call with an idempotency key tells it with ``"asked":"…"`` behind the hash, so that a retry adds nothing even
where the record is gone; ``{"n":0,"op":"gone","marks":[…]}`` begins a compacted journal that keeps this of some.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

from sidecar.memory.moments import LOWEST, Moment
from sidecar.memory.records import RecordHead, Share, head_of, share_of, share_row
from sidecar.storage.keys import ActorId

Row = Mapping[str, Any]
NOWHERE = -1
# What asks for archived turns, and how their marks begin, which nothing else does.
_ARCHIVE = "turn:"


@dataclass(slots=True, eq=False)
class Entry:
    """A record that is there: its head, and where its row lies (``offset`` NOWHERE: not in the journal yet).

    ``number`` is that of its row and gives the order of addition. Entries stay valid when they are handed out:
    ``forgotten`` tells that the record is gone.
    """

    head: RecordHead
    content_hash: str
    revision: int
    number: int
    offset: int
    length: int
    shares: tuple[Share, ...] = ()
    superseded_by: str = ""
    #: The tick from which on it counts as superseded; None where it was not.
    superseded_since: int | None = None
    forgotten: bool = False
    #: What tells the call that added it, where it had an idempotency key.
    asked: str = ""

    def targets(self) -> set[Hashable]:
        """Who else may know it: ids of groups, and actors."""
        return {*self.head.audience, *(share.recipient for share in self.shares)}


class OwnerRecords:
    """Applies rows in their order. ``last`` is the number of the last row; ``changed`` lists, in their order, entries
    that were superseded, shared or forgotten since the journal was opened."""

    def __init__(self, save: str) -> None:
        self.entries: dict[str, Entry] = {}
        #: How many of them are archived turns.
        self.archived = 0
        self.last = 0
        self.changed: list[Entry] = []
        #: For each group or actor that may know records besides the owner: their ids.
        self.addressed: dict[Hashable, set[str]] = {}
        #: What is known of records that are gone, the newest last: a hash of what asked for each and its id. Archived
        #: turns are among them: whose history still holds their messages must not archive them once more.
        self.gone: dict[str, None] = {}
        self._save = save

    def apply(self, row: Row, offset: int = NOWHERE, length: int = 0) -> None:
        """Take in a row. Raises KeyError, TypeError or ValueError for a row that is not one of ours."""
        operation = row["op"]
        if operation == "add":
            self._add(row, offset, length)
        elif operation == "share":
            self._share(row)
        elif operation == "forget":
            self._forget(row["ids"])
        elif operation == "gone":
            self.gone.update(dict.fromkeys(row["marks"]))
        elif operation != "end":
            raise ValueError("unknown operation")
        self.last = int(row["n"])

    def after(self, number: int) -> list[Entry]:
        """The entries that were added by rows behind ``number``, in their order."""
        found: list[Entry] = []
        for entry in reversed(self.entries.values()):
            if entry.number <= number:
                break
            found.append(entry)
        return found[::-1]

    def by_content(self, hashes: Container[str]) -> list[Entry]:
        """The entries whose content has one of the hashes."""
        return [entry for entry in self.entries.values() if entry.content_hash in hashes]

    def was_added(self, record_id: str, asked: str) -> bool:
        """Whether the call that ``asked`` tells has added a record, which may be gone by now."""
        if not asked:
            return False
        entry = self.entries.get(record_id)
        return (entry is not None and entry.asked == asked) or _gone_mark(record_id, asked) in self.gone

    def was_archived(self, record_id: str) -> bool:
        """Whether it was archived as a turn, which may have been forgotten since."""
        return record_id in self.entries or _gone_mark(record_id, _ARCHIVE) in self.gone

    def keep_gone(self, most: int) -> None:
        """Keep the newest ``most`` marks of what calls had added, and as many of turns."""
        calls = [mark for mark in self.gone if not mark.startswith(_ARCHIVE)]
        turns = [mark for mark in self.gone if mark.startswith(_ARCHIVE)]
        self.gone = dict.fromkeys(calls[-most:] + turns[-most:])

    def _add(self, row: Row, offset: int, length: int) -> None:
        head = head_of(row["record"])
        shares = row["shares"] if "shares" in row else row["record"].get("shares", ())
        entry = Entry(
            head=head,
            content_hash=row["hash"],
            revision=row["rev"],
            number=row["n"],
            offset=offset,
            length=length,
            shares=tuple(share_of(share, self._save) for share in shares),
            superseded_by=row.get("superseded_by", ""),
            superseded_since=row.get("superseded_since", LOWEST) if "superseded_by" in row else None,
            asked=intern(row.get("asked", "")),
        )
        self.entries[head.record_id] = entry
        self.archived += head.archived
        self._address(entry)
        before = self.entries.get(head.supersedes)
        if before is not None:
            before.superseded_by = head.record_id
            before.superseded_since = _since(before.head.moment, head.moment)
            self.changed.append(before)

    def _share(self, row: Row) -> None:
        entry = self.entries[row["id"]]
        self._withdraw(entry)
        entry.shares = tuple(share_of(share, self._save) for share in row["shares"])
        self._address(entry)
        self.changed.append(entry)

    def _forget(self, ids: Iterable[str]) -> None:
        for record_id in ids:
            entry = self.entries.pop(record_id, None)
            if entry is not None:
                entry.forgotten = True
                asked = _ARCHIVE if entry.head.archived else entry.asked
                if asked:
                    self.gone[_gone_mark(record_id, asked)] = None
                self.archived -= entry.head.archived
                self._withdraw(entry)
                self.changed.append(entry)

    def _address(self, entry: Entry) -> None:
        for target in entry.targets():
            self.addressed.setdefault(target, set()).add(entry.head.record_id)

    def _withdraw(self, entry: Entry) -> None:
        for target in entry.targets():
            ids = self.addressed[target]
            ids.discard(entry.head.record_id)
            if not ids:
                del self.addressed[target]


def add_row(record: Row, content_hash: str, revision: int, asked: str = "") -> dict[str, Any]:
    """The row that adds a record, itself given as a row; its number is given when it is written."""
    mark = {"asked": asked} if asked else {}
    return {"op": "add", "rev": revision, "hash": content_hash, **mark, "record": record}


def share_row_of(record_id: str, shares: Iterable[Share], revision: int) -> dict[str, Any]:
    """The row that says who knows a record."""
    return {"op": "share", "rev": revision, "id": record_id, "shares": [share_row(share) for share in shares]}


def forget_row(ids: Iterable[str], revision: int) -> dict[str, Any]:
    """The row that forgets records."""
    return {"op": "forget", "rev": revision, "ids": list(ids)}


def numbered(rows: Iterable[Row], last: int) -> list[dict[str, Any]]:
    """Rows with the numbers that follow ``last``."""
    return [{"n": number, **row} for number, row in enumerate(rows, last + 1)]


def kept_row(entry: Entry, row: Row) -> dict[str, Any]:
    """The row that adds a record, with what later rows had changed of it."""
    kept = dict(row)
    if entry.superseded_by:
        kept.update(superseded_by=entry.superseded_by, superseded_since=entry.superseded_since)
    if entry.shares:
        kept["shares"] = [share_row(share) for share in entry.shares]
    return kept


def compacted(records: OwnerRecords, rows: Iterable[tuple[Entry, Row]]) -> Iterator[dict[str, Any]]:
    """The rows of a journal that holds what is left: one for each entry, with what later rows had changed."""
    if records.gone:
        yield {"n": 0, "op": "gone", "marks": list(records.gone)}
    last = 0
    for entry, row in rows:
        last = entry.number
        yield kept_row(entry, row)
    if last < records.last:
        yield {"n": records.last, "op": "end"}


def _since(before: Moment, after: Moment) -> int:
    """The tick from which on a record of ``before`` counts as superseded by one of ``after``: always, where nobody can
    tell which came first."""
    return after.tick if after.timeline == before.timeline else LOWEST


def _gone_mark(record_id: str, asked: str) -> str:
    mark = hashlib.sha256(f"{asked}\n{record_id}".encode()).hexdigest()[:16]
    return f"{_ARCHIVE}{mark}" if asked == _ARCHIVE else mark


def owner_shown(who: ActorId) -> str:
    """An owner in a message: its actor id, or its role where it has none."""
    return who.actor or who.role
