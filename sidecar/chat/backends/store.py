"""The backends of a data folder, in ``backends.json``. No key ever stands in it.

{"format": 1, "backends": [{"backend_id": "local", "base_url": "http://127.0.0.1:8080/v1", "model": "qwen"}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sidecar.chat.backends.profile import (
    OFFLINE,
    OFFLINE_ID,
    Backend,
    backend_from_json,
    backend_to_json,
    checked_backend,
)
from sidecar.chat.backends.routing import Patterns, routed, turn_patterns
from sidecar.errors import NotFound, Reason
from sidecar.storage.disk import Disk
from sidecar.storage.keys import ordinal
from sidecar.storage.put_file import PutFile


class BackendStore:
    """Finds backends at any time; puts and deletes are safe on the disk when they return. Thread-safe.

    Every call raises Corrupt where ``backends.json`` cannot be read: no line must go to another model in silence.
    """

    def __init__(self, disk: Disk, *, max_backends: int) -> None:
        self._put = PutFile(
            disk, "backends", most=max_backends, limit="backends.max_backends", read=_by_id, write=backend_to_json
        )

    def all(self) -> list[Backend]:
        """Every backend, ``offline`` included, ordered by id."""
        known = {OFFLINE_ID: OFFLINE, **self._put.known}
        return [known[backend_id] for backend_id in sorted(known, key=ordinal)]

    def listed(self) -> list[Backend]:
        """Those that were put, ordered by id."""
        put = self._put.known
        return [put[backend_id] for backend_id in sorted(put, key=ordinal)]

    def get(self, backend_id: str) -> Backend:
        """Raises NotFound."""
        wanted = backend_id.strip()
        found = self._put.known.get(wanted) or (OFFLINE if wanted == OFFLINE_ID else None)
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
        self._put.put(checked.backend_id, checked)
        return checked

    def delete(self, backend_id: str) -> bool:
        """Removes what was put. False where nothing was."""
        return self._put.delete(backend_id.strip())


def _by_id(stored: Iterable[Mapping[str, Any]]) -> dict[str, Backend]:
    backends = map(backend_from_json, stored)
    return {backend.backend_id: backend for backend in backends}
