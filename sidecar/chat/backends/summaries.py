"""The model that writes summaries: a plain call from a thread of the compaction to a backend."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from sidecar.chat.backends.client import BackendClient, key_of
from sidecar.chat.backends.failures import BackendFailed
from sidecar.chat.backends.known import KnownBackends
from sidecar.chat.backends.profile import Backend, Kind
from sidecar.chat.backends.routing import summary_patterns
from sidecar.chat.backends.store import BackendStore
from sidecar.chat.backends.wire import SYSTEM, USER, Answer, Ask, WireMessage
from sidecar.chat.roles import Role
from sidecar.compaction.summariser import CompletionAnswer, CompletionRequest, Writer
from sidecar.errors import NotFound

_GIVEN_UP = CompletionAnswer("", ok=False)


class SummaryModels:
    """Finds the backend that writes a role's summaries. ``loop`` is the one that the client runs on."""

    def __init__(
        self,
        backends: BackendStore,
        client: BackendClient,
        known: KnownBackends,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self._backends = backends
        self._known = known
        self._client = client
        self._loop = loop

    def find(self, role: Role, backend_id: str, api_key: str = "") -> Writer | None:
        """The backend of that id, else the routed one, else the one that answers the role; None where none can.

        Raises NotFound for an id that is not known.
        """
        backend = self._chosen(role, backend_id)
        if backend is None or backend.kind is Kind.OFFLINE or self._loop is None:
            return None
        return Writer(self._completing(backend, key_of(backend, api_key), self._loop), self._known.told_window(backend))

    def _chosen(self, role: Role, backend_id: str) -> Backend | None:
        if backend_id:
            return self._backends.get(backend_id)
        routed = self._backends.for_role(role.role_id, summary_patterns)
        if routed is not None:
            return routed
        try:
            return self._backends.get(role.backend_id) if role.backend_id else self._backends.for_role(role.role_id)
        except NotFound:
            return None

    def _completing(
        self, backend: Backend, key: str, loop: asyncio.AbstractEventLoop
    ) -> Callable[[CompletionRequest], CompletionAnswer]:
        def complete(request: CompletionRequest) -> CompletionAnswer:
            return asyncio.run_coroutine_threadsafe(self._complete(backend, key, request), loop).result()

        return complete

    async def _complete(self, backend: Backend, key: str, request: CompletionRequest) -> CompletionAnswer:
        ask = Ask(
            [WireMessage(SYSTEM, request.system), WireMessage(USER, request.user)],
            temperature=request.temperature,
            max_output_tokens=request.max_output,
        )
        text, end = "", Answer()
        limit_ms = backend.total_timeout_ms or backend.idle_timeout_ms
        try:
            async with (
                asyncio.timeout(limit_ms / 1_000),
                aclosing(self._client.answer(backend, ask, key=key)) as pieces,
            ):
                async for piece in pieces:
                    if isinstance(piece, Answer):
                        end = piece
                    else:
                        text += piece
        except BackendFailed:
            return _GIVEN_UP
        tokens = end.tokens
        return CompletionAnswer(text, True, tokens.prompt if tokens else 0, tokens.completion if tokens else 0)
