"""The backends of a data folder, in ``backends.json``. No key ever stands in it.

{"format": 1, "backends": [{"backend_id": "local", "base_url": "http://127.0.0.1:8080/v1", "model": "qwen"}]}
"""

from __future__ import annotations

import threading

from sidecar.chat.backends.profile import (
    OFFLINE,
    OFFLINE_ID,
    Backend,
    backend_from_json,
    backend_to_json,
    checked_backend,
)
from sidecar.chat.backends.routing import Patterns, routed, turn_patterns
from sidecar.errors import Corrupt, InvalidInput, LimitReached, NotFound, Reason
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import objects_in, read_json, write_json
from sidecar.storage.keys import ordinal

_FORMAT = 1
_FILE = "backends.json"


class BackendStore:
    """Finds backends at any time; puts and deletes are safe on the disk when they return. Thread-safe.

    Every call raises Corrupt where ``backends.json`` cannot be read: no line must go to another model in silence.
    """

    def __init__(self, disk: Disk, *, max_backends: int) -> None:
        self._disk = disk
        self._path = disk.root / _FILE
        self._max_backends = max_backends
        self._lock = threading.RLock()
        self._read: dict[str, Backend] | None = None

    @property
    def _put(self) -> dict[str, Backend]:
        """What calls have put. Raises Corrupt where ``backends.json`` cannot be read, at every call until it can."""
        if self._read is None:
            with self._lock:
                self._read = self._read or self._load()
        return self._read

    def all(self) -> list[Backend]:
        """Every backend, ``offline`` included, ordered by id."""
        known = {OFFLINE_ID: OFFLINE} | self._put
        return [known[backend_id] for backend_id in sorted(known, key=ordinal)]

    def listed(self) -> list[Backend]:
        """Those that were put, ordered by id."""
        return [self._put[backend_id] for backend_id in sorted(self._put, key=ordinal)]

    def get(self, backend_id: str) -> Backend:
        """Raises NotFound."""
        wanted = backend_id.strip()
        found = self._put.get(wanted) or (OFFLINE if wanted == OFFLINE_ID else None)
        if found is None:
            raise NotFound(
                f"there is no backend '{wanted}'; put it first, or see ListBackends",
                reason=Reason.BACKEND_NOT_FOUND,
                field="backend_id",
            )
        return found

    def for_role(self, role_id: str, patterns: Patterns = turn_patterns) -> Backend | None:
        """The backend that the routes name for a role; None where none does."""
        return routed(role_id, self.all(), patterns)

    def put(self, backend: Backend) -> Backend:
        """Sets a backend in the place of the one with its id. Raises InvalidInput, LimitReached."""
        checked = checked_backend(backend)
        with self._lock:
            after = self._put | {checked.backend_id: checked}
            if len(after) > self._max_backends:
                raise LimitReached(
                    f"there are {self._max_backends} backends already; delete some, or raise the limit",
                    reason=Reason.TOO_MANY_ITEMS,
                    limit="backends.max_backends",
                    value=self._max_backends,
                )
            self._save(after)
        return checked

    def delete(self, backend_id: str) -> bool:
        """Removes what was put. False where nothing was."""
        wanted = backend_id.strip()
        with self._lock:
            if wanted not in self._put:
                return False
            self._save({known: backend for known, backend in self._put.items() if known != wanted})
        return True

    def _save(self, put: dict[str, Backend]) -> None:
        write_json(
            self._disk, self._path, {"format": _FORMAT, "backends": [backend_to_json(one) for one in put.values()]}
        )
        self._read = put

    def _load(self) -> dict[str, Backend]:
        stored = read_json(self._disk, self._path)
        try:
            backends = [backend_from_json(value) for value in objects_in(stored, "backends")]
        except (InvalidInput, ValueError) as error:
            raise Corrupt(
                f"'{_FILE}' cannot be read and was left as it is; mend it, or stop the daemon, run 'lorekeeper repair' "
                "and put the backends again",
                reason=Reason.STORAGE_CORRUPT,
                file=_FILE,
            ) from error
        return {backend.backend_id: backend for backend in backends}
