"""The archive: every stored message that was folded or left the history, whole, for Search.

An archived message is a record of its actor: kind TURN, in the conversation of its history, with its number as place.
So whatever holds for records holds for it: search, checkpoints, forks, exports, erasures. Rows of this process only
never come here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence

from sidecar.chat.rows import Row
from sidecar.diagnostics import Diagnostic, Report
from sidecar.memory.moments import UNDATED, Moment
from sidecar.memory.record_ids import TURN_PREFIX
from sidecar.memory.record_store import RecordStore
from sidecar.memory.records import Authority, Kind, Record, RecordHead
from sidecar.storage.keys import ActorId

#: The conversation and the scope of every archived turn.
CHAT = "chat"


class Archive:
    """Adds to archives. Calls for one actor are made one at a time by the caller."""

    def __init__(self, records: Callable[[], RecordStore], *, most: int, report: Report) -> None:
        """``records`` is asked when something is archived; ``most`` bounds the messages of one actor."""
        self._records = records
        self._most = most
        self._report = report

    def add(self, who: ActorId, rows: Sequence[Row]) -> None:
        """Adds the messages that are not in it yet, all or none. The oldest beyond the bound go, and that is told.

        Raises Corrupt.
        """
        stored = [row for row in rows if row.persisted]
        if stored:
            dropped = self._records().archive(who, list(self._turns(who, stored)), most=self._most)
            if dropped:
                self._report(_full(dropped, self._most))

    def holds(self, who: ActorId, rows: Sequence[Row]) -> bool:
        """Whether all of these messages that may be stored are in it, or were until they were forgotten. Raises
        Corrupt."""
        with self._records().opened(who) as owner:
            records = owner.records()
            return all(records.was_archived(turn_id(row)) for row in rows if row.persisted)

    def clear(self, who: ActorId) -> int:
        """Removes it; how many messages it held. Raises Corrupt."""
        with self._records().opened(who) as owner:
            held = [key for key, entry in owner.records().entries.items() if entry.head.archived]
            return self._records().forget(who, held)

    def _turns(self, who: ActorId, rows: Sequence[Row]) -> Iterator[Record]:
        """The records of messages. One without a moment was said at that of the last one before it that has any."""
        moment = self._last_moment(who)
        for row in rows:
            moment = row.moment or moment
            yield turn_of(row, moment)

    def _last_moment(self, who: ActorId) -> Moment:
        with self._records().opened(who) as owner:
            newest = reversed(owner.records().entries.values())
            return next((entry.head.moment for entry in newest if entry.head.archived), UNDATED)


def turn_of(row: Row, moment: Moment) -> Record:
    """The record of a message."""
    head = RecordHead(
        record_id=turn_id(row),
        scope=CHAT,
        kind=Kind.TURN,
        moment=moment,
        source_input_id=row.input_id,
        conversation_id=CHAT,
        ordinal=row.number,
        authority=Authority.ARCHIVE,
        speaker=row.speaker or row.key,
    )
    return Record(head, json.dumps({"text": row.content}, ensure_ascii=False), row.content)


def turn_id(row: Row) -> str:
    """Made from the place and the words of a message: a history that lost its end in a power cut numbers anew."""
    place = json.dumps([row.number, row.key, row.content]).encode()
    return TURN_PREFIX + hashlib.sha256(place).hexdigest()[:32]


def _full(dropped: int, most: int) -> Diagnostic:
    return Diagnostic(
        "archive_full",
        f"an archive holds {most} messages, and its oldest were dropped for new ones",
        details={"dropped": str(dropped), "kept": str(most), "limit": "chat.max_archived_messages"},
    )
