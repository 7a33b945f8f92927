"""Rolling summaries on the disk: ``summary.json`` in the actor's folder, and those of this process only.

A summary into which messages of this process only were folded must not reach the disk: it lies over the stored one
until the process ends or it is cleared. A stored summary that cannot be read is never overwritten; clearing it is
the way out.

Calls for one actor are made one at a time by the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidecar.compaction.answers import Answers
from sidecar.compaction.marker import StoredSummary, split_marker
from sidecar.errors import Corrupt
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import read_json, unreadable, write_json
from sidecar.storage.keys import ActorId
from sidecar.storage.recent import RecentActors
from sidecar.storage.save_state import SaveStates

_FORMAT = 1
_FILE = "summary.json"
_MAX_CACHED = 1_024
_KEPT_ANSWERS = 16


@dataclass(frozen=True)
class Summary:
    """A summary with its version. ``version`` 0: there is none. ``updated`` is wall time in Unix seconds."""

    stored: StoredSummary = field(default_factory=StoredSummary)
    version: int = 0
    updated: int = 0
    persisted: bool = True
    answers: Answers = field(default_factory=lambda: Answers(_KEPT_ANSWERS), compare=False)

    @property
    def text(self) -> str:
        """Without the fold marker."""
        return split_marker(self.stored.text)[0]


class SummaryStore:
    """Reads, saves and clears summaries; success is returned after the bytes are safe."""

    def __init__(
        self, disk: Disk, actors: Actors, saves: SaveStates, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._disk = disk
        self._actors = actors
        self._saves = saves
        self._clock = clock
        self._cache: RecentActors[Summary] = RecentActors(_MAX_CACHED)
        self._session: dict[ActorId, Summary] = {}

    def cached(self, who: ActorId) -> Summary | None:
        """The summary if reading it costs no disk access."""
        return self._session.get(who) or self._cache.get(who)

    def read(self, who: ActorId) -> Summary:
        """The summary that a prompt uses. Raises Corrupt."""
        return self._session.get(who) or self.read_stored(who)

    def read_stored(self, who: ActorId) -> Summary:
        """The summary on the disk, whatever this process has besides. Raises Corrupt."""
        cached = self._cache.get(who)
        return cached if cached is not None else self._cache.keep(who, self._load(who))

    def save(
        self, who: ActorId, stored: StoredSummary, *, persist: bool, key: str = "", request: Sequence[Any] = ()
    ) -> Summary:
        """Puts the summary in the place of the one that :meth:`read` gives. Blank: the same as :meth:`clear`.

        Without ``persist`` it stays in this process. A call with an idempotency key is remembered with the version
        that it made. Raises Corrupt where the present one cannot be read.
        """
        present = self.read(who)
        if not stored.text.strip():
            self.clear(who, key=key, request=request, told={"version": 0, "updated": 0})
            return Summary()
        summary = self._next(present, stored, persist=persist)
        summary.answers.remember(key, request, {"version": summary.version, "updated": summary.updated})
        if persist:
            self._write(who, summary)
            self._session.pop(who, None)
        else:
            self._session[who] = summary
        return summary

    def save_stored(self, who: ActorId, stored: StoredSummary) -> None:
        """Saves beneath a summary of this process, which stays in force."""
        self._write(who, self._next(self.read_stored(who), stored, persist=True))

    def told(self, who: ActorId, key: str, request: Sequence[Any]) -> Mapping[str, Any] | None:
        """What an earlier call with this idempotency key was told; ``None`` where there was none, or it cannot be read.

        Raises AlreadyExists where the key was used for another request.
        """
        return self._answers(who).told(key, request)

    def clear(
        self, who: ActorId, *, key: str = "", request: Sequence[Any] = (), told: Mapping[str, Any] | None = None
    ) -> bool:
        """Removes it, also one that cannot be read. False where there was none. What retries hear outlives it.

        ``told`` is that for this call; ``None``: whether there was one.
        """
        path = self._actors.folder(who) / _FILE
        existed, answers = self.exists(who), self._answers(who)
        answers.remember(key, request, told or {"existed": existed})
        if not existed or not self._disk.exists(path):
            self._cache.keep(who, Summary(answers=answers))
        elif len(answers):
            self._write(who, Summary(answers=answers))
        else:
            self._saves.changed(who.save)
            self._disk.remove(path)
            self._cache.forget(who)
        self._session.pop(who, None)
        return existed

    def exists(self, who: ActorId) -> bool:
        """Whether there is one, also one that cannot be read. May be asked at any time."""
        try:
            return (self.cached(who) or self._load(who)).version > 0
        except Corrupt:
            return True

    def unstored(self) -> list[ActorId]:
        """The actors whose summaries live in this process only."""
        return list(self._session)

    def of_process(self, save: str) -> dict[ActorId, Summary]:
        """Those of a save, for :meth:`take_back`."""
        return {who: summary for who, summary in list(self._session.items()) if who.save == save}

    def take_back(self, summaries: Mapping[ActorId, Summary]) -> None:
        """Have in memory what was there before the files of a save were exchanged, their own being the same."""
        self._session.update(summaries)

    def erased(self, who: ActorId) -> None:
        """Forget what is in memory: the folder is gone or was exchanged."""
        self._session.pop(who, None)
        self._cache.erased(who)

    def exchanged(self, save: str) -> None:
        """Forget what is in memory of a whole save: its files were exchanged."""
        self._cache.exchanged(save)
        for who in [who for who in list(self._session) if who.save == save]:
            self._session.pop(who, None)

    def _answers(self, who: ActorId) -> Answers:
        try:
            return self.read(who).answers.copy()
        except Corrupt:
            return Answers(_KEPT_ANSWERS)

    def _next(self, present: Summary, stored: StoredSummary, *, persist: bool) -> Summary:
        return Summary(stored, present.version + 1, int(self._clock()), persist, present.answers.copy())

    def _write(self, who: ActorId, summary: Summary) -> None:
        self._saves.ensure(who.save)
        folder = self._actors.ensure(who)
        self._saves.changed(who.save)
        write_json(self._disk, folder / _FILE, _to_json(summary))
        self._cache.keep(who, summary)

    def _load(self, who: ActorId) -> Summary:
        path = self._actors.folder(who) / _FILE
        stored = read_json(self._disk, path)
        if stored is None:
            return Summary()
        try:
            return summary_from_json(stored)
        except (KeyError, TypeError, ValueError) as error:
            remedy = "clear the summary, or stop the daemon and run 'lorekeeper repair'"
            raise unreadable(self._disk, path, remedy) from error


def _to_json(summary: Summary) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "Summary": summary.stored.text,
        "folded_through": summary.stored.folded_through,
        "version": summary.version,
        "updated": summary.updated,
        "answers": summary.answers.to_json(),
    }


def summary_from_json(value: dict[str, Any]) -> Summary:
    """The summary of a ``summary.json``. Raises KeyError, TypeError or ValueError for anything else."""
    text = value["Summary"]
    if not isinstance(text, str):
        raise TypeError("a text is expected")
    stored = StoredSummary(text.strip(), _number(value.get("folded_through", 0), 2**53))
    summary = Summary(stored, _number(value.get("version", 1), 2**31), _number(value.get("updated", 0), 2**53))
    summary.answers.take(value.get("answers", ()))
    return summary


def _number(value: Any, end: int) -> int:
    if type(value) is not int or not 0 <= value < end:
        raise TypeError("a whole number is expected")
    return value
