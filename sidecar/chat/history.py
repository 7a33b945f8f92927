"""One actor's history: two windows over one list of rows. No I/O.

    rows  ─ u ─ a ─ call ─ result ─ u ─ a ─ …
            └──────── the newest 2,000 rows are the transcript
            └──────── the newest 500 messages are the history, wherever they stand

A row lives as long as one of the windows holds it. What leaves a window is told, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sidecar.chat.rows import Row, message_of
from sidecar.compaction.cuts import Cut, CutKind, Unit, cut_from_json
from sidecar.compaction.messages import Message


@dataclass(frozen=True)
class Caps:
    """How much is kept."""

    messages: int
    rows: int

    @property
    def slack(self) -> int:
        """Lines of the file that may be dead before it is written anew."""
        return max(16, self.rows // 8)


class Added(NamedTuple):
    """What one append did."""

    appended: int = 0
    messages: int = 0
    evicted: int = 0
    last_order: int = 0
    rows: int = 0
    rows_dropped: int = 0
    folded: tuple[Cut, ...] = ()
    """What was cut where messages were folded before they left."""

    def cuts(self, left_for: str = "") -> tuple[Cut, ...]:
        """What the caps and the fold cut, told as data; ``left_for`` says where the messages are that left."""
        history = Cut(CutKind.HISTORY_CAP, Unit.MESSAGES, self.messages, self.evicted, left_for)
        transcript = Cut(CutKind.TRANSCRIPT_CAP, Unit.ROWS, self.rows, self.rows_dropped, "the oldest rows went")
        return (*(cut for cut in (history, transcript) if cut.dropped), *self.folded)

    def to_json(self) -> dict[str, Any]:
        """As it is kept for a retry."""
        return {**self._asdict(), "folded": [cut.to_json() for cut in self.folded]}


def added_from_json(told: Mapping[str, Any]) -> Added:
    """What :meth:`Added.to_json` wrote, now or before folds told their cuts."""
    return Added(**{**told, "folded": tuple(map(cut_from_json, told.get("folded", ())))})


@dataclass
class History:
    """The rows of one actor, oldest first, and the numbers that the next ones get."""

    caps: Caps
    chat: list[Row] = field(default_factory=list)
    transcript: list[Row] = field(default_factory=list)
    _messages: list[Message] = field(default_factory=list)
    last_order: int = 0
    last_number: int = 0
    weight: int = 0
    session_weight: int = 0
    """The part of ``weight`` that lives as long as the process only."""
    dead: int = 0
    """Rows of the file that no window holds any more."""

    def numbered(self, drafts: Sequence[Row], *, time: int, messages: bool) -> list[Row]:
        """The drafts with their time and places; with ``messages`` they become messages of the history too."""
        return [
            draft._replace(
                time=time,
                order=self.last_order + place,
                number=self.last_number + place if messages else 0,
            )
            for place, draft in enumerate(drafts, 1)
        ]

    def leaving(self, coming: int) -> int:
        """How many of the oldest messages go when ``coming`` new ones come, of these too where they are many."""
        return max(0, len(self.chat) + coming - self.caps.messages)

    def outcome(self, rows: Sequence[Row]) -> Added:
        """What adding the rows will do."""
        messages = len(self.chat) + sum(1 for row in rows if row.number)
        held = len(self.transcript) + len(rows)
        return Added(
            appended=len(rows),
            messages=min(messages, self.caps.messages),
            evicted=max(0, messages - self.caps.messages),
            last_order=rows[-1].order if rows else 0,
            rows=min(held, self.caps.rows),
            rows_dropped=max(0, held - self.caps.rows),
        )

    def add(self, rows: Sequence[Row]) -> Added:
        """Takes the rows in and lets go of what is beyond the caps."""
        outcome = self.outcome(rows)
        for row in rows:
            self._take(row)
        if outcome.evicted or outcome.rows_dropped:
            self._trim(outcome.evicted, outcome.rows_dropped)
        return outcome

    def live_rows(self) -> list[Row]:
        """All rows that one of the windows holds, oldest first."""
        first = self.transcript[0].order if self.transcript else self.last_order + 1
        return [row for row in self.chat if row.order < first] + self.transcript

    def messages(self) -> tuple[Message, ...]:
        """The history as compaction sees it, oldest first."""
        return tuple(self._messages)

    def _take(self, row: Row) -> None:
        self.transcript.append(row)
        if row.order > self.last_order:
            self.last_order = row.order
        if row.number:
            self.chat.append(row)
            self._messages.append(message_of(row))
            self.last_number = max(self.last_number, row.number)
        weight = row.weight
        self.weight += weight
        self.session_weight += 0 if row.persisted else weight

    def _trim(self, evicted: int, dropped: int) -> None:
        out = {row.order: row for row in (*self.chat[:evicted], *self.transcript[:dropped])}
        del self.chat[:evicted], self._messages[:evicted], self.transcript[:dropped]
        for row in out.values():
            if not self._holds(row):
                self.weight -= row.weight
                self.session_weight -= 0 if row.persisted else row.weight
                self.dead += row.persisted

    def _holds(self, row: Row) -> bool:
        in_transcript = bool(self.transcript) and row.order >= self.transcript[0].order
        return in_transcript or (row.number > 0 and bool(self.chat) and row.number >= self.chat[0].number)
