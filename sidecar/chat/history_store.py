"""Histories on the disk: ``history.jsonl`` in the actor's folder, one line a row, and rows that never touch it.

What is kept for this process only lives beside the stored rows, in the same order, and is never written: not by a
later append, not by a rewrite, not by a summary. A history that holds such rows stays in memory until it is cleared.

Calls for one actor are made one at a time by the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sidecar.chat.history import Added, Caps, History, added_from_json
from sidecar.chat.open_histories import OpenHistories, OpenHistory
from sidecar.chat.rows import Row, retimed, row_from_json, row_to_json
from sidecar.compaction.answers import Answers, answer_json
from sidecar.compaction.cuts import Cut
from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import Corrupt, LimitReached, Reason
from sidecar.settings import ChatSettings
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.journal import Journal, Torn, whole_rows
from sidecar.storage.keys import ActorId
from sidecar.storage.save_state import SaveStates

_FILE = "history.jsonl"


class HistoryStore:
    """Reads, appends to and clears histories; success is returned after the bytes are safe."""

    def __init__(
        self,
        disk: Disk,
        actors: Actors,
        saves: SaveStates,
        limits: ChatSettings,
        report: Report,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._disk = disk
        self._actors = actors
        self._saves = saves
        self._limits = limits
        self._report = report
        self._clock = clock
        self._caps = Caps(limits.max_messages, limits.max_transcript_rows)
        self._opened = OpenHistories(max_chars=limits.max_cached_chars)

    def cached(self, who: ActorId) -> History | None:
        """The history if reading it costs no disk access."""
        opened = self._opened.get(who)
        return opened.history if opened else None

    def read(self, who: ActorId) -> History:
        """The history; an empty one where nothing is kept. It is never to be changed. Raises Corrupt."""
        return self._open(who).history

    def known_answer(self, who: ActorId, request: Sequence[Any], key: str) -> Added | None:
        """What an earlier append with this idempotency key was told. Raises AlreadyExists for another request."""
        told = self._open(who).answers.told(key, request)
        return added_from_json(told) if told is not None else None

    def prepared(self, who: ActorId, drafts: Sequence[Row], *, messages: bool) -> list[Row]:
        """The rows that an append of the drafts would add now. Raises Corrupt."""
        timelines = self._saves.about(who.save).timelines
        numbered = self._open(who).history.numbered(drafts, time=int(self._clock()), messages=messages)
        return [retimed(row, timelines) for row in numbered]

    def append(
        self,
        who: ActorId,
        drafts: Sequence[Row],
        *,
        messages: bool,
        folded: tuple[Cut, ...] = (),
        request: Sequence[Any] = (),
        key: str = "",
    ) -> Added:
        """Adds rows, all or none; with ``messages`` they become messages of the history too.

        ``folded`` is what was cut to make room for them, which a retry is to hear as well. Drafts say themselves
        whether they reach the disk. Raises LimitReached, Corrupt, and what the disk raises.
        """
        opened = self._open(who)
        rows = self.prepared(who, drafts, messages=messages)
        self._require_room(rows)
        added = opened.history.outcome(rows)._replace(folded=folded)
        stored = [row_to_json(row) for row in rows if row.persisted]
        told = added.to_json() if key else {}
        if stored and key:
            stored[-1]["answer"] = answer_json(key, request, told)
        if stored:
            self._write(who, opened, stored)
        opened.history.add(rows)
        if added.evicted and not opened.cap_told:
            opened.cap_told = True
            self._report(_capped(added, self._caps))
        opened.answers.remember(key, request, told)
        self._opened.keep(who, opened)
        return added

    def known_clear(self, who: ActorId, request: Sequence[Any], key: str) -> Mapping[str, Any] | None:
        """What an earlier clear with this idempotency key was told. Raises AlreadyExists for another request."""
        return self._open_or_replace(who).answers.told(key, request)

    def sizes(self, who: ActorId) -> tuple[int, int]:
        """Messages and transcript rows that are kept; 0 where they cannot be read."""
        history = self._open_or_replace(who).history
        return len(history.chat), len(history.transcript)

    def clear(
        self, who: ActorId, *, request: Sequence[Any] = (), key: str = "", told: Mapping[str, Any] | None = None
    ) -> None:
        """Removes all rows, also of a history that cannot be read. The numbering goes on.

        ``told`` is what a retry with the same idempotency key will hear.
        """
        opened = self._open_or_replace(who)
        numbers = opened.history
        fresh = History(self._caps, last_order=numbers.last_order, last_number=numbers.last_number)
        empty = OpenHistory(fresh, opened.journal, opened.answers.copy())
        empty.answers.remember(key, request, told or {})
        if self._disk.exists(self._file(who)):
            self._saves.changed(who.save)
            empty.journal.rewrite([_head(empty)])
        else:
            empty.head_owed = opened.head_owed or bool(key)
        self._opened.keep(who, empty)

    def unstored(self) -> list[ActorId]:
        """The actors with rows that live in this process only."""
        return self._opened.unstored()

    def of_process(self, save: str) -> dict[ActorId, OpenHistory]:
        """Those of a save, as they are in memory, for :meth:`take_back`."""
        found = ((who, self._opened.get(who)) for who in self.unstored() if who.save == save)
        return {who: opened for who, opened in found if opened is not None}

    def take_back(self, histories: Mapping[ActorId, OpenHistory]) -> None:
        """Have in memory what was there before the files of a save were exchanged, their own being the same."""
        for who, opened in histories.items():
            self._opened.keep(who, opened)

    def erased(self, who: ActorId) -> None:
        """Forget what is in memory: the folder is gone or was exchanged."""
        self._opened.drop(who)

    def exchanged(self, save: str) -> None:
        """Forget what is in memory of a save, also what never touched the disk: it belongs to what was exchanged."""
        self._opened.drop_save(save)

    def _open(self, who: ActorId) -> OpenHistory:
        opened = self._opened.get(who)
        if opened is None:
            opened = self._load(who)
            self._opened.keep(who, opened)
        return opened

    def _open_or_replace(self, who: ActorId) -> OpenHistory:
        try:
            return self._open(who)
        except Corrupt:
            opened = self._new(who)
            rows, _ = whole_rows(self._disk.read(self._file(who)))
            opened.history.last_order, opened.history.last_number = _last_numbers(rows)
            return opened

    def _new(self, who: ActorId) -> OpenHistory:
        journal = Journal(self._disk, self._file(who))
        return OpenHistory(History(self._caps), journal, Answers(self._limits.kept_answers))

    def _load(self, who: ActorId) -> OpenHistory:
        opened = self._new(who)
        loaded = opened.journal.load()
        if loaded.torn:
            self._report(_torn(loaded.torn))
        try:
            rows = [row for line in loaded.lines for row in take_row(opened, line.row)]
        except (KeyError, TypeError, ValueError) as error:
            raise self._unreadable(who) from error
        timelines = self._saves.about(who.save).timelines
        opened.history.add([retimed(row, timelines) for row in rows])
        return opened

    def _write(self, who: ActorId, opened: OpenHistory, stored: list[dict[str, Any]]) -> None:
        self._saves.ensure(who.save)
        self._actors.ensure(who)
        self._saves.changed(who.save)
        if opened.history.dead >= self._caps.slack:
            live = [row_to_json(row) for row in opened.history.live_rows() if row.persisted]
            opened.journal.rewrite([_head(opened), *live])
            opened.history.dead = 0
        opened.journal.append([_head(opened), *stored] if opened.head_owed else stored)
        opened.head_owed = False

    def _require_room(self, rows: Sequence[Row]) -> None:
        coming = sum(row.weight for row in rows if not row.persisted)
        if coming and self._opened.session_chars + coming > self._limits.max_session_chars:
            raise LimitReached(
                "the messages that are kept for this process only fill their room; clear some histories, or let their "
                "roles persist them",
                reason=Reason.SESSION_FULL,
                limit="chat.max_session_chars",
                value=self._limits.max_session_chars,
            )

    def _file(self, who: ActorId) -> Path:
        return self._actors.folder(who) / _FILE

    def _unreadable(self, who: ActorId) -> Corrupt:
        shown = shown_path(self._disk, self._file(who))
        return Corrupt(
            f"'{shown}' holds a row that cannot be read and was left as it is; stop the daemon and run "
            "'lorekeeper repair'",
            reason=Reason.STORAGE_CORRUPT,
            file=shown,
        )


def take_row(opened: OpenHistory, value: Mapping[str, Any]) -> list[Row]:
    """The row of one line; whatever else stands in it is kept in ``opened``.

    Raises KeyError, TypeError or ValueError for a line that is not a history's.
    """
    if "last" in value:
        last_order, last_number = value["last"]
        if type(last_order) is not int or type(last_number) is not int:
            raise TypeError("whole numbers are expected")
        opened.history.last_order, opened.history.last_number = last_order, last_number
        opened.answers.take(value["answers"])
        return []
    if "answer" in value:
        opened.answers.take([value["answer"]])
    return [row_from_json(value)]


def _last_numbers(rows: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Where the numbers of a damaged history stand, as far as it can be read: they go on after it was cleared."""
    last = [0, 0]
    for row in rows:
        for index, value in enumerate(row.get("last", (row.get("o"), row.get("m")))):
            if type(value) is int and index < len(last):
                last[index] = max(last[index], value)
    return last[0], last[1]


def _head(opened: OpenHistory) -> dict[str, Any]:
    """The first line of a file that is written anew: where the numbers stand, and what retries hear."""
    return {"last": [opened.history.last_order, opened.history.last_number], "answers": opened.answers.to_json()}


def _torn(torn: Torn) -> Diagnostic:
    return Diagnostic(
        "journal_torn",
        "the end of a history was not written whole and was cut off; it had not been acknowledged",
        Severity.WARNING,
        {"file": torn.file, "dropped_bytes": str(torn.dropped_bytes)},
    )


def _capped(added: Added, caps: Caps) -> Diagnostic:
    return Diagnostic(
        "history_capped",
        f"a history reached its cap of {caps.messages} messages: the oldest leave it from now on",
        Severity.WARNING,
        {"dropped": str(added.evicted), "kept": str(added.messages), "limit": "chat.max_messages"},
    )
