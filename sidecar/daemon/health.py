"""The standard ``grpc.health.v1.Health``: one state for the daemon (name ``""``) and one for each service.

Watch is the library's, built when somebody asks first. Check is answered in the wire's own bytes, which are two: a
client that polls for the start need not wait until the daemon has read protobuf.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc

_SERVICE = "/grpc.health.v1.Health/"
# HealthCheckResponse: field 1, an enum.
_SERVING, _NOT_SERVING = b"\x08\x01", b"\x08\x02"
# HealthCheckRequest: field 1, a text; its length is one byte for every name that there is.
_SERVICE_FIELD = 0x0A


class Health(grpc.GenericRpcHandler):  # type: ignore[misc]
    """All calls belong to the event loop."""

    def __init__(self, names: Iterable[str], *, waiting: Iterable[str] = ()) -> None:
        """``names`` serve from the start, but for those that are ``waiting`` for something."""
        self._serving = dict.fromkeys(names, True) | dict.fromkeys(waiting, False)
        self._servicer: Any = None
        self._methods: dict[str, grpc.RpcMethodHandler] = {}
        self._watches: set[asyncio.Future[Any]] = set()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """What gRPC asks for each call."""
        if not self._methods and handler_call_details.method.startswith(_SERVICE):
            self._open()
        return self._methods.get(handler_call_details.method)

    async def tell(self, name: str, serving: bool) -> None:
        """Change the state of one service; whoever watches it hears."""
        self._serving[name] = serving
        if self._servicer is not None:
            await self._servicer.set(name, _status(serving))

    async def end(self) -> None:
        """Nothing serves any more, and nobody watches on."""
        for name in self._serving:
            await self.tell(name, False)
        for watch in list(self._watches):
            watch.cancel()

    def _open(self) -> None:
        self._methods[_SERVICE + "Check"] = grpc.unary_unary_rpc_method_handler(self._check)
        self._methods[_SERVICE + "Watch"] = grpc.unary_stream_rpc_method_handler(self._watch)

    async def _check(self, request: bytes, context: Any) -> bytes:
        serving = self._serving.get(_asked(request))
        if serving is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service; '' asks for the whole daemon")
        return _SERVING if serving else _NOT_SERVING

    async def _watch(self, request: bytes, context: Any) -> None:
        servicer = await self._ready()
        # A task of its own: gRPC ends a call whose method returns, not one whose method was cancelled.
        watch = asyncio.ensure_future(servicer.Watch(_parsed(request), _Bytes(context)))
        self._watches.add(watch)
        try:
            await asyncio.wait({watch})
        finally:
            self._watches.discard(watch)
            watch.cancel()
        if not watch.cancelled():
            watch.result()

    async def _ready(self) -> Any:
        if self._servicer is None:
            from grpc_health.v1 import health

            self._servicer = health.aio.HealthServicer()
            for name, serving in self._serving.items():
                await self._servicer.set(name, _status(serving))
        return self._servicer


class _Bytes:
    """The context of a stream of bytes, for a servicer that writes messages."""

    def __init__(self, context: Any) -> None:
        self._context = context

    async def write(self, message: Any) -> None:
        await self._context.write(message.SerializeToString())


def _asked(request: bytes) -> str:
    """The name in a request; anything but the plain form of a short name is read with care, by the library."""
    if not request:
        return ""
    plain = len(request) > 1 and request[0] == _SERVICE_FIELD and request[1] == len(request) - 2 < 0x80
    return request[2:].decode("utf-8", errors="replace") if plain else str(_parsed(request).service)


def _parsed(request: bytes) -> Any:
    from grpc_health.v1 import health_pb2

    return health_pb2.HealthCheckRequest.FromString(request)


def _status(serving: bool) -> Any:
    from grpc_health.v1 import health_pb2

    states = health_pb2.HealthCheckResponse
    return states.SERVING if serving else states.NOT_SERVING
