"""What this process has found out about backends: windows, how tools reach their models, the roles that those take.

It is asked before each turn and learns from each answer; nothing of it is stored.
"""

from __future__ import annotations

import asyncio

from sidecar.chat.backends.client import BackendClient
from sidecar.chat.backends.failures import BackendFailed
from sidecar.chat.backends.profile import DEFAULT_WINDOW, Backend, Kind, ToolChannel
from sidecar.chat.backends.servers import DETAILS, OLLAMA, OLLAMA_WINDOW, Server, server_of, with_details
from sidecar.chat.backends.taking_turns import RoleOrder
from sidecar.storage.recent import Recent

_MAX_KNOWN = 1_000
Spot = tuple[str, str]


class KnownBackends:
    """One for the whole daemon. A backend is known by its address and model."""

    def __init__(self, client: BackendClient, *, probe_timeout_ms: int) -> None:
        self._client = client
        self._timeout = probe_timeout_ms / 1_000
        self._windows: Recent[Spot, int] = Recent(_MAX_KNOWN)
        self._limits: Recent[Spot, int] = Recent(_MAX_KNOWN)
        self._channels: Recent[Spot, ToolChannel] = Recent(_MAX_KNOWN)
        self._orders: Recent[Spot, RoleOrder] = Recent(_MAX_KNOWN)

    async def window(self, backend: Backend, model: str, key: str) -> int:
        """The window in tokens: what the profile says, else what the server tells, never more than an overflow told.

        0 for ``offline``, which has no window of its own.
        """
        if backend.kind is Kind.OFFLINE:
            return backend.context_tokens
        spot = _spot(backend, model)
        window = backend.context_tokens or self._windows.get(spot) or 0
        if not window:
            window = await self._asked(backend, model, key)
            if window:
                self._windows.keep(spot, window)
        return self._limited(spot, window or DEFAULT_WINDOW)

    def told_window(self, backend: Backend) -> int:
        """The window in force, as far as it is known without asking."""
        spot = _spot(backend, backend.model)
        return self._limited(spot, backend.context_tokens or self._windows.get(spot) or DEFAULT_WINDOW)

    def limit_window(self, backend: Backend, model: str, window: int) -> None:
        """An overflow has told that the window is no larger than this."""
        self._limits.keep(_spot(backend, model), window)

    def channel(self, backend: Backend, model: str = "") -> ToolChannel:
        """How tools reach the model: what the profile says, else what was found out; AUTO where nothing was yet."""
        if backend.tool_channel is not ToolChannel.AUTO:
            return backend.tool_channel
        return self._channels.get(_spot(backend, model)) or ToolChannel.AUTO

    def learn_channel(self, backend: Backend, model: str, channel: ToolChannel) -> None:
        """The model has called a tool natively, or the server has refused tools."""
        self._channels.keep(_spot(backend, model), channel)

    def role_order(self, backend: Backend, model: str = "") -> RoleOrder:
        """In which order the model's chat template takes roles: any, unless it has refused one."""
        return self._orders.get(_spot(backend, model)) or RoleOrder.ANY

    def learn_role_order(self, backend: Backend, model: str, order: RoleOrder) -> None:
        """The template has refused a prompt and takes only this order."""
        self._orders.keep(_spot(backend, model), order)

    def forget(self, backend: Backend) -> None:
        """The backend was put anew: find out again."""
        for known in (self._windows, self._limits, self._channels, self._orders):
            known.forget_where(lambda spot: spot[0] == backend.base_url)

    def _limited(self, spot: Spot, window: int) -> int:
        return min(window, self._limits.get(spot) or window)

    async def _asked(self, backend: Backend, model: str, key: str) -> int:
        """0 where the server does not tell in time."""
        try:
            async with asyncio.timeout(self._timeout):
                server = await look(self._client, backend, key)
        except (BackendFailed, TimeoutError):
            return 0
        found = server.fitting(model) if server else None
        window = found.window if found else 0
        return window or (OLLAMA_WINDOW if server and server.name == OLLAMA else 0)


async def look(client: BackendClient, backend: Backend, key: str) -> Server | None:
    """What answers at the backend's address; None where it is no model server. Raises BackendFailed."""
    server = server_of(await client.fetch(backend, "/models", key=key))
    details = DETAILS.get(server.name) if server else None
    if server is None or details is None:
        return server
    try:
        return with_details(server, await client.fetch(backend, details, key=key, at_root=True))
    except BackendFailed:
        return server


def _spot(backend: Backend, model: str) -> Spot:
    return backend.base_url, model or backend.model
