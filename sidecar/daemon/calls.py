"""The edge around every method: token, error mapping, counting. Servicers below it are plain ``async`` methods.

A servicer is any object whose methods carry the names of the contract. A method of the contract that no servicer has
answers UNIMPLEMENTED with a reason.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc

from sidecar.daemon.mapping import abort, internal, is_cancellation
from sidecar.daemon.stats import CallStats
from sidecar.errors import LorekeeperError, NotBuilt, Reason, Unauthenticated

_log = logging.getLogger("lorekeeper")
# grpc ships no types: a grpc.aio.ServicerContext.
Context: TypeAlias = Any


@dataclass(frozen=True)
class Service:
    """A service of the contract and the objects that answer its methods, the first that has a method wins."""

    descriptor: Any
    servicers: Sequence[object]

    def method(self, name: str) -> Callable[..., Any] | None:
        """What answers ``name``, or None where nothing does yet."""
        found = (getattr(servicer, name, None) for servicer in self.servicers)
        return next((method for method in found if callable(method)), None)


class Edge:
    """Wraps servicers into one gRPC handler."""

    def __init__(self, *, token: str, stats: CallStats) -> None:
        self._expected = f"Bearer {token}".encode()
        self._stats = stats

    def handler(self, services: Sequence[Service]) -> grpc.GenericRpcHandler:
        """All methods of all services in one look-up."""
        handlers = {}
        for service in services:
            for method in service.descriptor.methods:
                path = f"/{service.descriptor.full_name}/{method.name}"
                handlers[path] = self._method(service, method)
        return _Handlers(handlers)

    def _method(self, service: Service, method: Any) -> grpc.RpcMethodHandler:
        name = f"{service.descriptor.name}/{method.name}"
        answer = service.method(method.name)
        kind = ("stream" if method.client_streaming else "unary") + ("_stream" if method.server_streaming else "_unary")
        wrap = self._stream if method.server_streaming else self._unary
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(
            wrap(name, answer or _unbuilt(name, streams=method.server_streaming)),
            request_deserializer=method.input_type._concrete_class.FromString,
            response_serializer=method.output_type._concrete_class.SerializeToString,
        )

    def _unary(self, name: str, answer: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        async def call(request: Any, context: Context) -> Any:
            with self._counted(name):
                try:
                    self._check(context)
                    return await answer(request, context)
                except Exception as error:
                    await self._failed(context, error)

        return call

    def _stream(self, name: str, answer: Callable[..., AsyncIterator[Any]]) -> Callable[..., Any]:
        async def call(request: Any, context: Context) -> AsyncIterator[Any]:
            with self._counted(name):
                try:
                    self._check(context)
                    async for response in answer(request, context):
                        yield response
                except Exception as error:
                    await self._failed(context, error)

        return call

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        self._stats.running += 1
        failed = True
        try:
            yield
            failed = False
        finally:
            self._stats.running -= 1
            self._stats.ended(name, time.perf_counter() - began, failed=failed)

    def _check(self, context: Context) -> None:
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                given = value.encode() if isinstance(value, str) else bytes(value)
                if hmac.compare_digest(given, self._expected):
                    return
        raise Unauthenticated(
            "the call carries no valid token; send the metadata 'authorization: Bearer <token>' with the token of the "
            "handshake line or of daemon.json",
            reason=Reason.TOKEN_INVALID,
        )

    async def _failed(self, context: Context, error: Exception) -> None:
        if is_cancellation(error):
            raise error
        if not isinstance(error, LorekeeperError):
            told, incident = internal(error)
            _log.error("a call failed", exc_info=error, extra={"code": "internal_failure", "incident": incident})
            error = told
        await abort(context, error)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, handlers: dict[str, grpc.RpcMethodHandler]) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        return self._handlers.get(handler_call_details.method)


def _unbuilt(name: str, *, streams: bool) -> Callable[..., Any]:
    def refuse() -> None:
        raise NotBuilt(
            f"{name} is in the contract, but this version of Lorekeeper does not answer it yet",
            reason=Reason.NOT_IMPLEMENTED,
            method=name,
        )

    async def unary(request: Any, context: Any) -> None:
        refuse()

    async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
        refuse()
        yield

    return stream if streams else unary
