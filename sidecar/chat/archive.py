"""The archive: every stored message that was folded or left the history, whole, for Search.

``archive.jsonl`` in the actor's folder holds rows as ``history.jsonl`` does, oldest first, each message once. Rows of
this process only never come here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sidecar.chat.rows import Row, row_from_json, row_to_json
from sidecar.errors import Corrupt, Reason
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal
from sidecar.storage.keys import ActorId

_FILE = "archive.jsonl"


@dataclass
class _Open:
    journal: Journal
    count: int
    last_number: int


class Archive:
    """Adds to and reads archives. Calls for one actor are made one at a time by the caller."""

    def __init__(self, disk: Disk, actors: Actors) -> None:
        self._disk = disk
        self._actors = actors
        self._known: dict[ActorId, _Open] = {}

    def add(self, who: ActorId, rows: Sequence[Row]) -> int:
        """Adds the messages that are not in it yet, all or none; how many there were. Raises Corrupt."""
        if not any(row.persisted for row in rows):
            return 0
        opened = self._open(who)
        new = [row for row in rows if row.persisted and row.number > opened.last_number]
        if new:
            self._actors.ensure(who)
            opened.journal.append([row_to_json(row) for row in new])
            opened.count += len(new)
            opened.last_number = new[-1].number
        return len(new)

    def holds(self, who: ActorId, rows: Sequence[Row]) -> bool:
        """Whether all of these messages that may be stored are in it. Raises Corrupt."""
        stored = [row.number for row in rows if row.persisted]
        return not stored or stored[-1] <= self._open(who).last_number

    def read(self, who: ActorId) -> Iterator[Row]:
        """The archived messages, oldest first. Raises Corrupt."""
        for line in self._journal(who).load().lines:
            try:
                yield row_from_json(line.row)
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

    def _open(self, who: ActorId) -> _Open:
        if who not in self._known:
            rows = list(self.read(who))
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[who] = _Open(self._journal(who), len(rows), rows[-1].number if rows else 0)
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


_MAX_KNOWN = 10_000
