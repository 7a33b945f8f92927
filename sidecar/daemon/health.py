"""The standard ``grpc.health.v1.Health``: one state for the daemon (name ``""``) and one for each service.

Answers are the wire's own bytes, which are two: a client that polls for the start need not wait until the daemon has
read protobuf. Anybody may ask, so nobody who asks and does not listen may keep others waiting, nor the daemon's end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc

_SERVICE = "/grpc.health.v1.Health/"
# HealthCheckResponse: field 1, an enum.
_SERVING, _NOT_SERVING, _UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"
# HealthCheckRequest: field 1, a text; its length is one byte for every name that there is.
_SERVICE_FIELD = 0x0A


class Health(grpc.GenericRpcHandler):  # type: ignore[misc]
    """All calls belong to the event loop."""

    def __init__(self, names: Iterable[str], *, waiting: Iterable[str] = (), max_watchers: int) -> None:
        """``names`` serve from the start, but for those that are ``waiting`` for something."""
        self._states = dict.fromkeys(names, _SERVING) | dict.fromkeys(waiting, _NOT_SERVING)
        self._max_watchers = max_watchers
        self._methods: dict[str, grpc.RpcMethodHandler] = {}
        self._watchers: set[asyncio.Event] = set()
        self._ended = False

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """What gRPC asks for each call."""
        if not self._methods and handler_call_details.method.startswith(_SERVICE):
            self._open()
        return self._methods.get(handler_call_details.method)

    def tell(self, name: str, serving: bool) -> None:
        """Change the state of one service; whoever watches it hears."""
        self._states[name] = _SERVING if serving else _NOT_SERVING
        for watcher in self._watchers:
            watcher.set()

    def end(self) -> None:
        """Nothing serves any more, and nobody watches on."""
        self._ended = True
        for name in self._states:
            self.tell(name, False)

    def _open(self) -> None:
        self._methods[_SERVICE + "Check"] = grpc.unary_unary_rpc_method_handler(self._check)
        self._methods[_SERVICE + "Watch"] = grpc.unary_stream_rpc_method_handler(self._watch)

    async def _check(self, request: bytes, context: Any) -> bytes:
        state = self._states.get(await _asked(request, context))
        if state is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service; '' asks for the whole daemon")
        return state or _UNKNOWN

    async def _watch(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        name, told, changed = await _asked(request, context), b"", asyncio.Event()
        if len(self._watchers) >= self._max_watchers:
            message = f"{self._max_watchers} streams watch already (daemon.max_health_watchers); end one of them first"
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, message)
        self._watchers.add(changed)
        try:
            while True:
                changed.clear()
                state, ends = self._states.get(name, _UNKNOWN), self._ended
                if state != told:
                    yield state
                    told = state
                if ends:
                    return
                await changed.wait()
        finally:
            self._watchers.discard(changed)


async def _asked(request: bytes, context: Any) -> str:
    """The name in a request; anything but the plain form of a short name is read with care, by the library."""
    if not request:
        return ""
    plain = len(request) > 1 and request[0] == _SERVICE_FIELD and request[1] == len(request) - 2 < 0x80
    if plain:
        return request[2:].decode("utf-8", errors="replace")
    from grpc_health.v1 import health_pb2

    try:
        return str(health_pb2.HealthCheckRequest.FromString(request).service)
    except Exception:  # a DecodeError, whose module a start need not read
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the request is no message of this method")
        raise
