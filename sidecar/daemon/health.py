"""The standard ``grpc.health.v1.Health``: one state for the daemon (name ``""``) and one for each service.

Built when somebody asks first: a start need not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc

_SERVICE = "/grpc.health.v1.Health/"


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
        from grpc_health.v1 import health_pb2

        codec = {
            "request_deserializer": health_pb2.HealthCheckRequest.FromString,
            "response_serializer": health_pb2.HealthCheckResponse.SerializeToString,
        }
        self._methods[_SERVICE + "Check"] = grpc.unary_unary_rpc_method_handler(self._check, **codec)
        self._methods[_SERVICE + "Watch"] = grpc.unary_stream_rpc_method_handler(self._watch, **codec)

    async def _check(self, request: Any, context: Any) -> Any:
        return await (await self._ready()).Check(request, context)

    async def _watch(self, request: Any, context: Any) -> None:
        servicer = await self._ready()
        # A task of its own: gRPC ends a call whose method returns, not one whose method was cancelled.
        watch = asyncio.ensure_future(servicer.Watch(request, context))
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


def _status(serving: bool) -> Any:
    from grpc_health.v1 import health_pb2

    states = health_pb2.HealthCheckResponse
    return states.SERVING if serving else states.NOT_SERVING
