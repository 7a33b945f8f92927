"""The edge around every method: token, error mapping, counting, and the gate of the save that a call is on. Servicers
below it are plain ``async`` methods.

A servicer is any object whose methods carry the names of the contract. A method of the contract that no servicer has
answers UNIMPLEMENTED with a reason. What a stream that failed tells beside its status, whoever ended it, is made of the
error by what its servicer has under the stream's name in ``details``.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

import grpc

from sidecar.daemon.contract import descriptor
from sidecar.daemon.mapping import abort, internal, is_cancellation
from sidecar.daemon.save_door import SaveDoor, SaveOf, save_reader
from sidecar.daemon.stats import CallStats
from sidecar.errors import InvalidInput, LorekeeperError, NotBuilt, Reason, Unauthenticated

_log = logging.getLogger("lorekeeper")
# grpc ships no types: a grpc.aio.ServicerContext.
Context: TypeAlias = Any


# Long enough for a client to connect and ask for health, short enough to be done before its first real call.
_BEFORE_WARMING_SECONDS = 0.1
Open = Callable[[], Sequence[object]]
Decode = Callable[[Any], Any]
DetailOf = Callable[[LorekeeperError], Any]


class Edge(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The handler of every method of the contract. A service is opened by its first call, or by :meth:`warm`.

    ``services`` has, for each full name, what makes the objects that answer it; the first that has a method wins.
    """

    def __init__(self, *, token: str, stats: CallStats, services: Mapping[str, Open], door: SaveDoor) -> None:
        self._door = door
        self._expected = f"Bearer {token}".encode()
        self._stats = stats
        self._closed = dict(services)
        self._methods: dict[str, grpc.RpcMethodHandler] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """What gRPC asks for each call."""
        path: str = handler_call_details.method
        known = self._is_known(handler_call_details.invocation_metadata)
        if path not in self._methods:
            try:
                self._open(path[1:].partition("/")[0])
            except Exception as error:
                return self._refusal(path, error if known else _unknown_caller())
        found = self._methods.get(path)
        return found if known or found is None else self._refusal(path, _unknown_caller())

    async def warm(self) -> None:
        """Open what no call has opened yet, one service at a time, with room for the first calls in between."""
        for name in list(self._closed):
            await asyncio.sleep(_BEFORE_WARMING_SECONDS)
            with suppress(Exception):  # its first call is told why
                self._open(name)

    def _open(self, name: str) -> None:
        open_service = self._closed.get(name)
        if open_service is None:
            return
        servicers, described = open_service(), descriptor(name)
        for method in described.methods:
            path = f"/{name}/{method.name}"
            self._methods[path] = self._method(path, method, servicers)
        del self._closed[name]

    def _refusal(self, path: str, error: Exception) -> grpc.RpcMethodHandler:
        """What refuses one call, of any kind, before its message has come, so that strangers hold no place and no
        memory."""

        async def refuse(request: Any, context: Context) -> AsyncIterator[Any]:
            raise error
            yield

        return grpc.stream_stream_rpc_method_handler(
            self._stream(path, refuse, lambda request: request, lambda _: None)
        )

    def _method(self, name: str, method: Any, servicers: Sequence[object]) -> grpc.RpcMethodHandler:
        found = (getattr(servicer, method.name, None) for servicer in servicers)
        answer = next((one for one in found if callable(one)), None) or _unbuilt(name, streams=method.server_streaming)
        kinds = [("unary", "stream")[streams] for streams in (method.client_streaming, method.server_streaming)]
        make = getattr(grpc, f"{kinds[0]}_{kinds[1]}_rpc_method_handler")
        details: dict[str, DetailOf] = {}
        for servicer in servicers:
            details |= getattr(servicer, "details", {})
        stream = partial(self._stream, detail_of=details.get(method.name))
        wrap = stream if method.server_streaming else self._unary
        decode = partial(_each if method.client_streaming else _decoded, method.input_type._concrete_class.FromString)
        # Without a deserializer gRPC hands the bytes on: bytes that are no message are refused as all else is.
        return make(
            wrap(name, answer, decode, save_reader(method)),
            response_serializer=method.output_type._concrete_class.SerializeToString,
        )

    def _unary(
        self, name: str, answer: Callable[..., Awaitable[Any]], decode: Decode, save_of: SaveOf
    ) -> Callable[..., Any]:
        async def call(request: Any, context: Context) -> Any:
            with self._counted(name):
                try:
                    asked = decode(request)
                    with await self._door.enter(save_of(asked), context):
                        return await answer(asked, context)
                except Exception as error:
                    await self._failed(context, error)

        return call

    def _stream(
        self,
        name: str,
        answer: Callable[..., AsyncIterator[Any]],
        decode: Decode,
        save_of: SaveOf,
        detail_of: DetailOf | None = None,
    ) -> Callable[..., Any]:
        async def call(request: Any, context: Context) -> AsyncIterator[Any]:
            with self._counted(name):
                try:
                    asked = decode(request)
                    with _detailed(detail_of), await self._door.enter(save_of(asked), context) as passage:
                        async for response in answer(asked, context):
                            if passage is not None:
                                passage.handing = True
                            yield response
                            if passage is not None:
                                passage.goes_on()
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

    def _is_known(self, metadata: Iterable[tuple[str, str | bytes]] | None) -> bool:
        """Whether a call carries the token."""
        for key, value in metadata or ():
            if key == "authorization":
                given = value.encode() if isinstance(value, str) else bytes(value)
                if hmac.compare_digest(given, self._expected):
                    return True
        return False

    async def _failed(self, context: Context, error: Exception) -> None:
        if is_cancellation(error):
            raise error
        if not isinstance(error, LorekeeperError):
            told, incident = internal(error)
            _log.error("a call failed", exc_info=error, extra={"code": "internal_failure", "incident": incident})
            error = told
        await abort(context, error)


@contextmanager
def _detailed(detail_of: DetailOf | None) -> Iterator[None]:
    """An error that has no detail of its own gets the one that ``detail_of`` makes."""
    try:
        yield
    except LorekeeperError as error:
        if detail_of is not None and error.detail is None:
            error.detail = detail_of(error)
        raise


def _unknown_caller() -> Unauthenticated:
    return Unauthenticated(
        "the call carries no valid token; send the metadata 'authorization: Bearer <token>' with the token of the "
        "handshake line or of daemon.json",
        reason=Reason.TOKEN_INVALID,
    )


def _decoded(read: Decode, data: bytes) -> Any:
    """The message in ``data``. Raises InvalidInput where there is none."""
    try:
        return read(data)
    except Exception as error:  # a DecodeError, whose module a start need not read
        raise InvalidInput(
            "the request is no message of this method: its bytes are damaged, or a text in it is not UTF-8",
            reason=Reason.FIELD_INVALID,
        ) from error


async def _each(read: Decode, requests: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """The messages of a stream of requests, each as in :func:`_decoded`."""
    async for data in requests:
        yield _decoded(read, data)


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
