"""The model that writes summaries: a plain call from a thread of the compaction to a backend."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import aclosing
from typing import Any
from weakref import WeakSet

from sidecar.chat.backends.client import BackendClient, key_of
from sidecar.chat.backends.failures import BackendFailed, FailureKind
from sidecar.chat.backends.known import KnownBackends
from sidecar.chat.backends.profile import Backend, Kind
from sidecar.chat.backends.reasoning import without_reasoning
from sidecar.chat.backends.routing import summary_patterns
from sidecar.chat.backends.store import BackendStore
from sidecar.chat.backends.taking_turns import in_order
from sidecar.chat.backends.wire import SYSTEM, USER, Answer, Ask, WireMessage
from sidecar.chat.roles import Role
from sidecar.compaction.summariser import CompletionAnswer, CompletionRequest, Writer
from sidecar.errors import NotFound

_GIVEN_UP = CompletionAnswer("", ok=False)
_Answering = Callable[[CompletionRequest], Coroutine[Any, Any, CompletionAnswer]]


class SummaryCalls:
    """The calls of one compaction, from a thread to the event loop. Hanging up ends them for good."""

    def __init__(self, answer: _Answering, loop: asyncio.AbstractEventLoop) -> None:
        self._answer = answer
        self._loop = loop
        self._lock = threading.Lock()
        self._hung_up = False
        self._call: Future[CompletionAnswer] | None = None

    def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """The answer. Raises TimeoutError, and CancelledError once somebody has hung up."""
        with self._lock:
            if self._hung_up:
                raise CancelledError
            call = self._call = asyncio.run_coroutine_threadsafe(self._answer(request), self._loop)
        return call.result()

    def hang_up(self) -> None:
        """End the call that is under way; no further one is made."""
        with self._lock:
            self._hung_up = True
            if self._call:
                self._call.cancel()


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
        self._open: WeakSet[SummaryCalls] = WeakSet()

    def hang_up(self) -> None:
        """End every call that is under way, and begin none any more: the daemon is to end."""
        self._loop = None
        for calls in list(self._open):
            calls.hang_up()

    def find(self, role: Role, backend_id: str, api_key: str = "") -> Writer | None:
        """The backend of that id, else the routed one, else the one that answers the role; None where none can.

        Raises NotFound for an id that is not known.
        """
        backend = self.backend_of(role, backend_id)
        if backend is None or backend.kind is Kind.OFFLINE or self._loop is None:
            return None
        calls = SummaryCalls(self._answering(backend, key_of(backend, api_key)), self._loop)
        self._open.add(calls)
        return Writer(calls.complete, self._known.told_window(backend), calls.hang_up)

    def backend_of(self, role: Role, backend_id: str) -> Backend | None:
        """The backend that :meth:`find` finds. Raises NotFound."""
        if backend_id:
            return self._backends.get(backend_id)
        routed = self._backends.for_role(role.role_id, summary_patterns)
        if routed is not None:
            return routed
        try:
            return self._backends.get(role.backend_id) if role.backend_id else self._backends.for_role(role.role_id)
        except NotFound:
            return None

    def _answering(self, backend: Backend, key: str) -> _Answering:
        return lambda request: self._complete(backend, key, request)

    async def _complete(self, backend: Backend, key: str, request: CompletionRequest) -> CompletionAnswer:
        """Raises TimeoutError."""
        order = self._known.role_order(backend)
        ask = Ask(
            in_order([WireMessage(SYSTEM, request.system), WireMessage(USER, request.user)], order),
            temperature=request.temperature,
            max_output_tokens=request.max_output,
            role_id=request.role_id,
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
        except BackendFailed as error:
            if error.failure.kind is FailureKind.TIMEOUT:
                raise TimeoutError from error
            if error.failure.role_order > order:
                self._known.learn_role_order(backend, backend.model, error.failure.role_order)
                return await self._complete(backend, key, request)
            if error.failure.window:
                self._known.limit_window(backend, backend.model, error.failure.window)
            return _GIVEN_UP
        tokens = end.tokens
        said = without_reasoning(text)
        return CompletionAnswer(said, True, tokens.prompt if tokens else 0, tokens.completion if tokens else 0)
