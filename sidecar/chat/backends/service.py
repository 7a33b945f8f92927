"""ChatService: the backends. Thin: it translates, calls one thing, and translates back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sidecar.chat.backends.client import BackendClient, key_of
from sidecar.chat.backends.known import KnownBackends
from sidecar.chat.backends.messages import backend_from, info_to, probed_to
from sidecar.chat.backends.probe import Probed, Prober, Problem
from sidecar.chat.backends.profile import Backend, Kind, checked_backend
from sidecar.chat.backends.store import BackendStore
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2
from sidecar.storage.keys import checked_id
from sidecar.storage.workers import SaveKey, Workers
from sidecar.wire import Paging, api_key_from, page

_PROBE_MS = 10_000
_PROBE_BOUNDS = (100, 300_000)


class BackendService:
    """Puts, lists, deletes and probes backends."""

    def __init__(
        self, *, store: BackendStore, client: BackendClient, known: KnownBackends, workers: Workers, paging: Paging
    ) -> None:
        self._store = store
        self._client = client
        self._known = known
        self._workers = workers
        self._paging = paging

    async def PutBackend(self, request: chat_pb2.PutBackendRequest, context: Any) -> chat_pb2.PutBackendResponse:
        with _named():
            backend = backend_from(request.backend)
            put = await self._workers.run(SaveKey("backends", ""), lambda: self._store.put(backend))
        self._known.forget(put)
        return chat_pb2.PutBackendResponse(backend=self._info(put))

    async def ListBackends(self, request: chat_pb2.ListBackendsRequest, context: Any) -> chat_pb2.ListBackendsResponse:
        chosen = page(
            self._store.listed(),
            key=lambda backend: backend.backend_id,
            size=request.page_size,
            token=request.page_token,
            paging=self._paging,
            weight=lambda _: 70_000,
        )
        return chat_pb2.ListBackendsResponse(
            backends=[self._info(backend) for backend in chosen.items], next_page_token=chosen.next_token
        )

    async def DeleteBackend(
        self, request: chat_pb2.DeleteBackendRequest, context: Any
    ) -> chat_pb2.DeleteBackendResponse:
        backend_id = checked_id(request.backend_id, "backend_id")
        if not backend_id:
            raise InvalidInput("backend_id is required", reason=Reason.FIELD_REQUIRED, field="backend_id")
        existed = await self._workers.run(SaveKey("backends", ""), lambda: self._store.delete(backend_id))
        return chat_pb2.DeleteBackendResponse(existed=existed)

    async def ProbeBackend(self, request: chat_pb2.ProbeBackendRequest, context: Any) -> chat_pb2.ProbeBackendResponse:
        began, timeout_ms = time.perf_counter(), _timeout(request)
        api_key = api_key_from(request.api_key, "api_key")
        try:
            backend = self._target(request)
        except InvalidInput as error:
            if error.reason is not Reason.ADDRESS_NOT_ALLOWED:
                raise
            return probed_to(Probed().with_problem(Problem.ADDRESS_NOT_ALLOWED), duration_ms=0)
        if backend.kind is Kind.OFFLINE:
            return probed_to(_OFFLINE, duration_ms=0)
        prober = Prober(self._client, backend, key_of(backend, api_key))
        found = await prober.probe(try_model=request.try_model, timeout_ms=timeout_ms)
        return probed_to(found, duration_ms=1_000 * (time.perf_counter() - began))

    def _target(self, request: chat_pb2.ProbeBackendRequest) -> Backend:
        """The backend that is meant. Raises InvalidInput, NotFound."""
        target = request.WhichOneof("target")
        if target == "backend_id":
            return self._store.get(request.backend_id)
        if target is None:
            raise InvalidInput("name a backend, or describe one", reason=Reason.FIELD_REQUIRED, field="target")
        with _named():
            return checked_backend(backend_from(_filled(request.backend)), model_required=False)

    def _info(self, backend: Backend) -> backend_pb2.BackendInfo:
        return info_to(backend, self._known, key_present=bool(key_of(backend)))


_OFFLINE = Probed(reachable=True, server="offline", model="offline", streaming=True, native_tools=False)


def _filled(message: backend_pb2.Backend) -> backend_pb2.Backend:
    """A backend that is only tried needs no id, and takes whatever model the server has."""
    filled = backend_pb2.Backend()
    filled.CopyFrom(message)
    filled.backend_id = message.backend_id or "probe"
    return filled


def _timeout(request: chat_pb2.ProbeBackendRequest) -> int:
    if not request.HasField("timeout_ms"):
        return _PROBE_MS
    low, high = _PROBE_BOUNDS
    if not low <= request.timeout_ms <= high:
        raise InvalidInput(
            f"timeout_ms is {request.timeout_ms}; it must be from {low} to {high}",
            reason=Reason.FIELD_INVALID,
            field="timeout_ms",
        )
    return request.timeout_ms


@contextmanager
def _named() -> Iterator[None]:
    """Fields of a profile stand in ``backend`` of the request."""
    try:
        yield
    except InvalidInput as error:
        error.field = f"backend.{error.field}"
        raise
