"""The archive: every stored message that was folded or left the history, whole, for Search.

``archive.jsonl`` in the actor's folder holds rows as ``history.jsonl`` does, oldest first, each message once. Rows of
this process only never come here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sidecar.chat.rows import Row, retimed, row_from_json, row_to_json
from sidecar.errors import Corrupt, Reason
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal
from sidecar.storage.keys import ActorId
from sidecar.storage.save_state import SaveStates

_FILE = "archive.jsonl"
_MAX_KNOWN = 1_000
_MAX_RECENT = 1_000


@dataclass
class _Open:
    journal: Journal
    count: int = 0
    last_number: int = 0
    recent: OrderedDict[int, int] = field(default_factory=OrderedDict)
    """Hashes of the newest messages by number: a history that lost its end in a power cut numbers anew."""

    def take(self, row: Row) -> None:
        self.count += 1
        self.last_number = max(self.last_number, row.number)
        self.recent[row.number] = hash(row.content)
        if len(self.recent) > _MAX_RECENT:
            self.recent.popitem(last=False)

    def lacks(self, row: Row) -> bool:
        if row.number in self.recent:
            return self.recent[row.number] != hash(row.content)
        return row.number > self.last_number


class Archive:
    """Adds to and reads archives. Calls for one actor are made one at a time by the caller."""

    def __init__(self, disk: Disk, actors: Actors, saves: SaveStates) -> None:
        self._disk = disk
        self._actors = actors
        self._saves = saves
        self._known: dict[ActorId, _Open] = {}

    def add(self, who: ActorId, rows: Sequence[Row]) -> int:
        """Adds the messages that are not in it yet, all or none; how many there were. Raises Corrupt."""
        new = self._lacking(who, rows)
        if new:
            self._actors.ensure(who)
            opened = self._open(who)
            opened.journal.append([row_to_json(row) for row in new])
            for row in new:
                opened.take(row)
        return len(new)

    def holds(self, who: ActorId, rows: Sequence[Row]) -> bool:
        """Whether all of these messages that may be stored are in it. Raises Corrupt."""
        return not self._lacking(who, rows)

    def read(self, who: ActorId) -> Iterator[Row]:
        """The archived messages, oldest first. Raises Corrupt."""
        timelines = self._saves.about(who.save).timelines
        for line in self._journal(who).load().lines:
            try:
                yield retimed(row_from_json(line.row), timelines)
            except (KeyError, TypeError, ValueError) as error:
                raise self._unreadable(who) from error

    def count(self, who: ActorId) -> int:
        """How many messages it holds."""
        return self._open(who).count

    def clear(self, who: ActorId) -> int:
        """Removes it, also one that cannot be read; how many messages it held as far as is known."""
        try:
            count = self.count(who)
        except Corrupt:
            count = 0
        self._disk.remove(self._actors.folder(who) / _FILE)
        self.erased(who)
        return count

    def erased(self, who: ActorId) -> None:
        """Forget what is in memory: the folder is gone or was exchanged."""
        self._known.pop(who, None)

    def exchanged(self, save: str) -> None:
        """Forget what is in memory of a save whose files were exchanged."""
        for who in [who for who in list(self._known) if who.save == save]:
            del self._known[who]

    def _lacking(self, who: ActorId, rows: Sequence[Row]) -> list[Row]:
        stored = [row for row in rows if row.persisted]
        if not stored:
            return []
        opened = self._open(who)
        return [row for row in stored if opened.lacks(row)]

    def _open(self, who: ActorId) -> _Open:
        if who not in self._known:
            opened = _Open(self._journal(who))
            for row in self.read(who):
                opened.take(row)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[who] = opened
        return self._known[who]

    def _journal(self, who: ActorId) -> Journal:
        return Journal(self._disk, self._actors.folder(who) / _FILE)

    def _unreadable(self, who: ActorId) -> Corrupt:
        shown = self._shown(self._actors.folder(who) / _FILE)
        return Corrupt(
            f"'{shown}' holds a row that cannot be read and was left as it is; stop the daemon and run "
            "'lorekeeper repair'",
            reason=Reason.STORAGE_CORRUPT,
            file=shown,
        )

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._disk.root).as_posix()
