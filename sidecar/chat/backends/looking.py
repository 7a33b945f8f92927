"""Has the windows known that a compaction depends on, before it begins in a thread: servers are asked for theirs.

A backend that is not there is passed over; who needs it is told.
"""

from __future__ import annotations

from contextlib import suppress

from sidecar.chat.backends.client import key_of
from sidecar.chat.backends.known import KnownBackends
from sidecar.chat.backends.profile import Backend
from sidecar.chat.backends.store import BackendStore
from sidecar.chat.backends.summaries import SummaryModels
from sidecar.chat.roles import Role
from sidecar.errors import NotFound


class Looking:
    """A server that does not tell is asked again each time, as before each turn."""

    def __init__(self, backends: BackendStore, known: KnownBackends, models: SummaryModels) -> None:
        self._backends = backends
        self._known = known
        self._models = models

    async def at_speaker(self, role: Role) -> None:
        """The backend that answers the role."""
        with suppress(NotFound):
            own = role.backend_id
            await self._look(self._backends.get(own) if own else self._backends.for_role(role.role_id))

    async def at_writer(self, role: Role, backend_id: str, api_key: str) -> None:
        """The backend that writes the role's summaries, or the one of the id."""
        with suppress(NotFound):
            await self._look(self._models.backend_of(role, backend_id), api_key)

    async def _look(self, backend: Backend | None, api_key: str = "") -> None:
        if backend is not None:
            await self._known.window(backend, backend.model, key_of(backend, api_key))
