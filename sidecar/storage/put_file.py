"""What calls have put for the whole data folder, by id: in memory and in one file.

{"format": 1, "roles": [{"role_id": "Merchant", "persist_history": true}]}       roles.json
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from sidecar.errors import InvalidInput, LimitReached, Reason
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import objects_in, read_json, unreadable, write_json

T = TypeVar("T")
_FORMAT = 1


class PutFile(Generic[T]):
    """``<what>.json``. Puts and deletes are safe on the disk when they return. Thread-safe.

    Every call raises Corrupt where the file cannot be read, until it can.
    """

    def __init__(
        self,
        disk: Disk,
        what: str,
        *,
        most: int,
        limit: str,
        read: Callable[[Iterable[dict[str, Any]]], dict[str, T]],
        write: Callable[[T], Mapping[str, Any]],
    ) -> None:
        """At most ``most`` are kept, by the setting ``limit``. ``read`` gives by id what ``write`` has written, and
        raises InvalidInput or ValueError for anything else."""
        self._disk = disk
        self._what = what
        self._path = disk.root / f"{what}.json"
        self._most = most
        self._limit = limit
        self._from_json = read
        self._to_json = write
        self._lock = threading.RLock()
        self._known: dict[str, T] | None = None

    @property
    def known(self) -> Mapping[str, T]:
        """What was put, by id."""
        if self._known is None:
            with self._lock:
                self._known = self._known or self._load()
        return self._known

    def put(self, known_as: str, value: T) -> None:
        """Keep ``value`` in the place of the one with its id. Raises LimitReached."""
        with self._lock:
            after = {**self.known, known_as: value}
            if len(after) > self._most:
                raise LimitReached(
                    f"there are {self._most} {self._what} already; delete some, or raise the limit",
                    reason=Reason.TOO_MANY_ITEMS,
                    limit=self._limit,
                    value=self._most,
                )
            self._save(after)

    def delete(self, known_as: str) -> bool:
        """Remove what was put. False where nothing was."""
        with self._lock:
            if known_as not in self.known:
                return False
            self._save({key: value for key, value in self.known.items() if key != known_as})
        return True

    def _save(self, after: dict[str, T]) -> None:
        stored = [dict(self._to_json(value)) for value in after.values()]
        write_json(self._disk, self._path, {"format": _FORMAT, self._what: stored})
        self._known = after

    def _load(self) -> dict[str, T]:
        stored = read_json(self._disk, self._path)
        try:
            return self._from_json(objects_in(stored, self._what))
        except (InvalidInput, ValueError) as error:
            remedy = f"mend it, or stop the daemon, run 'lorekeeper repair' and put the {self._what} again"
            raise unreadable(self._disk, self._path, remedy) from error
