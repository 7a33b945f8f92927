"""Where a batch for many owners is safe at once: one write and one fsync instead of one an owner.

    saves/s-<key>/inbox.jsonl       {"owner":["wolf"],"rows":[{"n":1,"op":"add",…}]}
    saves/s-<key>/inbox.old.jsonl   the same, being moved into the owners' journals

The rows are acknowledged here, and moved to the owners' journals in the background. The old inbox is removed once all
its owners have their rows; after a kill both are read again, and a row that an owner has already counts once, by its
number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sidecar.errors import Corrupt, Reason
from sidecar.memory.records import actor_of, actor_row
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.journal import Journal
from sidecar.storage.keys import ActorId

_NEW, _OLD = "inbox.jsonl", "inbox.old.jsonl"
OwnerRows = tuple[ActorId, Sequence[dict[str, Any]]]


class Left(NamedTuple):
    """What was left behind of an owner, and how many bytes that is."""

    who: ActorId
    rows: Sequence[dict[str, Any]]
    size: int


class Inbox:
    """One save's inbox. All calls but :meth:`load` are made with the save's inbox lock held."""

    def __init__(self, disk: Disk, folder: Path, save: str) -> None:
        self._disk = disk
        self._save = save
        self._new, self._old = folder / _NEW, folder / _OLD
        self._journal = Journal(disk, self._new)

    def exists(self) -> bool:
        """Whether anything lies here."""
        return self._disk.exists(self._new) or self._disk.exists(self._old)

    def load(self) -> list[Left]:
        """What was acknowledged and may not be in the journals yet, in its order. Raises Corrupt."""
        lines = [*Journal(self._disk, self._old).load().lines, *self._journal.load().lines]
        try:
            return [Left(actor_of(line.row["owner"], self._save), line.row["rows"], line.length) for line in lines]
        except (KeyError, TypeError) as error:
            raise self._corrupt() from error

    def append(self, owners: Iterable[OwnerRows]) -> list[int]:
        """Make the rows safe, all or none; how many bytes each owner's take."""
        return [span.length for span in self._journal.append(_lines(owners))]

    def set_aside(self) -> None:
        """Begin a new inbox; what was there becomes the old one, unless there is one still."""
        if not self._disk.exists(self._old) and self._disk.exists(self._new):
            self._disk.rename(self._new, self._old)

    def moved(self, stuck: Sequence[OwnerRows], *, all_rows: bool) -> None:
        """The rows of the old inbox are in their journals, those of the new one too with ``all_rows``; except what is
        ``stuck``, because its owner's journal cannot be read."""
        if stuck:
            Journal(self._disk, self._old).rewrite(_lines(stuck))
        else:
            self._disk.remove(self._old)
        if all_rows:
            self._disk.remove(self._new)

    def _corrupt(self) -> Corrupt:
        shown = shown_path(self._disk, self._new)
        return Corrupt(
            f"'{shown}' has a row that is not one of ours; it was left as it is; "
            "stop the daemon and run 'lorekeeper repair'",
            reason=Reason.STORAGE_CORRUPT,
            file=shown,
        )


def _lines(owners: Iterable[OwnerRows]) -> list[dict[str, Any]]:
    return [{"owner": actor_row(who), "rows": rows} for who, rows in owners]
