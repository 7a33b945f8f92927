"""Which backend and model answer a turn, and how they are to be asked. No I/O but the environment's variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecar.chat.backends.client import key_of
from sidecar.chat.backends.profile import OFFLINE_ID, Backend, Kind, ToolChannel
from sidecar.chat.backends.store import BackendStore
from sidecar.chat.backends.taking_turns import RoleOrder
from sidecar.chat.roles import Role


@dataclass(frozen=True)
class Chosen:
    """A backend with the model, the key and the window of one turn; ``channel`` AUTO is not found out yet."""

    backend: Backend
    model: str
    key: str = field(default="", repr=False)
    window: int = 0
    channel: ToolChannel = ToolChannel.AUTO
    role_order: RoleOrder = RoleOrder.ANY

    @property
    def native(self) -> bool:
        """Whether tools go out as the wire has them: also where it is not known yet that the model takes them so."""
        return self.channel is not ToolChannel.TEXT

    @property
    def offline(self) -> bool:
        """Whether there is no server to ask."""
        return self.backend.kind is Kind.OFFLINE


def chosen_backend(
    backends: BackendStore, role: Role, *, backend_id: str = "", model: str = "", api_key: str = ""
) -> Chosen:
    """The turn's own backend, else the role's, else the routed one, else ``offline``. Raises NotFound."""
    wanted = backend_id or role.backend_id
    backend = backends.get(wanted) if wanted else backends.for_role(role.role_id) or backends.get(OFFLINE_ID)
    return Chosen(backend, model or backend.model, key_of(backend, api_key))


def fallback_of(backends: BackendStore, failed: Backend, tried: set[str]) -> Chosen | None:
    """The backend that takes over; None where none is left. The turn's own key does not go there."""
    wanted = failed.fallback_backend_id
    known = {backend.backend_id: backend for backend in backends.all()}
    backend = known.get(wanted) if wanted not in tried else None
    return Chosen(backend, backend.model, key_of(backend)) if backend else None
