"""HTTP to one backend: a request out, pieces of text and the end of the answer back.

Redirects are not followed. Proxies of the environment are used for other machines only. What a server says in an
error is classified and never passed on. A caller that stops reading closes the connection, which ends the work at
the server.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sidecar.bounds import fits_in_head
from sidecar.chat.backends.addresses import is_loopback
from sidecar.chat.backends.failures import (
    BackendFailed,
    Failure,
    FailureKind,
    failure_of,
    status_failure,
)
from sidecar.chat.backends.profile import Backend
from sidecar.chat.backends.streams import AnswerStream, too_long, whole_answer
from sidecar.chat.backends.wire import Answer, Ask
from sidecar.settings import BackendSettings

if TYPE_CHECKING:
    import httpx

    Carrier = httpx.AsyncClient | httpx.AsyncHTTPTransport

_MAX_ERROR_BYTES = 65_536
_END_SECONDS = 0.05
_NEVER = math.inf
_NOTHING: Mapping[str, str] = MappingProxyType({})
_ODD_KEY = "the key is not printable ASCII, so no request can carry it; set the profile's environment variable anew"
_PACKED = "the backend packs its answer, though it is asked not to; switch its compression off"
# Most servers close what was idle for 5 seconds: a request must not meet that end on its way.
_KEPT_OPEN_SECONDS = 4.0


class BackendClient:
    """Connections to backends, kept open between requests."""

    def __init__(self, limits: BackendSettings) -> None:
        self._limits = limits
        self._carriers: dict[tuple[bool, bool], Carrier] = {}
        self._making = asyncio.Lock()

    async def close(self) -> None:
        """Close every connection."""
        carriers, self._carriers = list(self._carriers.values()), {}
        for carrier in carriers:
            await carrier.aclose()

    async def answer(self, backend: Backend, ask: Ask, *, key: str = "") -> AsyncGenerator[str | Answer, None]:
        """Pieces of text as they come, then one Answer. Raises BackendFailed."""
        body = json.dumps(ask.body(backend), ensure_ascii=False).encode("utf-8")
        path, own = "/chat/completions", ask.headers()
        async with self._response(backend, "POST", path, key=key, body=body, own=own) as response:
            if "json" in response.headers.get("content-type", ""):
                for part in whole_answer(await self._read(response)):
                    yield part
                return
            async for piece in self._streamed(response):
                yield piece

    async def fetch(self, backend: Backend, path: str, *, key: str = "", at_root: bool = False) -> Any:
        """The JSON that a GET answers; None where it is no JSON. Raises BackendFailed."""
        async with self._response(backend, "GET", path, key=key, at_root=at_root) as response:
            try:
                return json.loads(await self._read(response))
            except (ValueError, RecursionError):
                return None

    @asynccontextmanager
    async def _response(
        self,
        backend: Backend,
        method: str,
        path: str,
        *,
        key: str,
        body: bytes = b"",
        own: Mapping[str, str] = _NOTHING,
        at_root: bool = False,
    ) -> AsyncIterator[httpx.Response]:
        """A response with a good status. What httpx raises becomes BackendFailed."""
        if not fits_in_head(key):
            raise BackendFailed(Failure(FailureKind.AUTH_EXPIRED, _ODD_KEY), backend.backend_id)
        base = _root(backend.base_url) if at_root else backend.base_url
        carrier = await self._carrier(base)
        import httpx

        try:
            request = httpx.Request(
                method,
                f"{base}{path}",
                content=body or None,
                headers=_headers(backend, key, body) | dict(own),
                extensions={"timeout": _timeouts(backend).as_dict()},
            )
            async with aclosing(await _begun(carrier, request, backend)) as response:
                await _require_good(response, backend)
                yield response
        except httpx.TimeoutException as error:
            raise BackendFailed(failure_of(_timeout_kind(error)), backend.backend_id) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise BackendFailed(failure_of(FailureKind.BACKEND_UNAVAILABLE), backend.backend_id) from error
        except BackendFailed as error:
            error.backend_id = backend.backend_id
            raise

    async def _read(self, response: httpx.Response) -> bytes:
        """The whole body."""
        data = bytearray()
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > self._limits.max_answer_bytes:
                raise BackendFailed(too_long())
        return bytes(data)

    async def _streamed(self, response: httpx.Response) -> AsyncGenerator[str | Answer, None]:
        stream, ends = AnswerStream(self._limits.max_event_bytes), _NEVER
        chunks, size = response.aiter_raw(), 0
        while (chunk := await _next(chunks, ends)) is not None:
            size += len(chunk)
            if size > self._limits.max_answer_bytes:
                raise BackendFailed(too_long())
            for text in stream.feed(chunk):
                yield text
            ends = min(ends, time.monotonic() + self._grace(stream))
        delimited = any(name in response.headers for name in ("content-length", "transfer-encoding"))
        for part in stream.end(delimited=delimited):
            yield part

    def _grace(self, stream: AnswerStream) -> float:
        """How long to wait for more, in seconds: for the end of the body only, the token count, or as long as it takes.

        A body that is read to its end leaves the connection open for the next turn.
        """
        if stream.done:
            return _END_SECONDS
        return self._limits.end_grace_ms / 1_000 if stream.parts.ended else _NEVER

    async def _carrier(self, base: str) -> Carrier:
        """One for this machine and one for others, made in a thread: the first one reads a large library."""
        parts = urlsplit(base)
        spot = is_loopback(parts.hostname or ""), parts.scheme == "https"
        async with self._making:
            if spot not in self._carriers:
                self._carriers[spot] = await asyncio.to_thread(self._made, *spot)
        return self._carriers[spot]

    def _made(self, local: bool, secure: bool) -> Carrier:
        """Without TLS no certificates are loaded. What a client adds to its transport (proxies, cookies, redirects) is
        of no use on this machine, and a fifth of the work of a request."""
        import httpx

        pool = httpx.Limits(
            max_connections=self._limits.max_connections,
            max_keepalive_connections=64,
            keepalive_expiry=_KEPT_OPEN_SECONDS,
        )
        if local:
            return httpx.AsyncHTTPTransport(verify=secure, trust_env=False, limits=pool)
        return httpx.AsyncClient(verify=secure, follow_redirects=False, limits=pool)


async def _begun(carrier: Carrier, request: httpx.Request, backend: Backend) -> httpx.Response:
    """What :func:`_sent` gives, in a time that no server stretches by 1xx answers or headers that come bit by bit."""
    try:
        async with asyncio.timeout((backend.connect_timeout_ms + backend.idle_timeout_ms) / 1_000):
            return await _sent(carrier, request)
    except TimeoutError as error:
        raise BackendFailed(failure_of(FailureKind.TIMEOUT)) from error


async def _require_good(response: httpx.Response, backend: Backend) -> None:
    """Raises BackendFailed for a bad status, and for a body that is packed."""
    if response.status_code != 200:
        told = await _told(response, backend)
        raise BackendFailed(_refused(response.status_code, told, response.headers), backend.backend_id)
    if response.headers.get("content-encoding", "identity") != "identity":
        raise BackendFailed(Failure(FailureKind.PROVIDER_ERROR, _PACKED), backend.backend_id)


async def _told(response: httpx.Response, backend: Backend) -> bytes:
    """What a server says in an error, as far as it fits and comes in time."""
    data = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(backend.idle_timeout_ms / 1_000):
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) >= _MAX_ERROR_BYTES:
                    break
    return bytes(data[:_MAX_ERROR_BYTES])


async def _sent(carrier: Carrier, request: httpx.Request) -> httpx.Response:
    """The beginning of the response, whose body is still to be read."""
    import httpx

    if isinstance(carrier, httpx.AsyncClient):
        return await carrier.send(request, stream=True)
    return await carrier.handle_async_request(request)


def key_of(backend: Backend, given: str = "") -> str:
    """The key for a call: the one given with it, else that of the profile's environment variable."""
    return given or (os.environ.get(backend.api_key_env, "").strip() if backend.api_key_env else "")


async def _next(chunks: AsyncIterator[bytes], ends: float) -> bytes | None:
    """The next bytes; None at the end.

    Where the answer is complete, ``ends`` is when nobody waits for more, and a connection that breaks is an end.
    """
    if ends == _NEVER:
        return await anext(chunks, None)
    import httpx

    try:
        async with asyncio.timeout(ends - time.monotonic()):
            return await anext(chunks, None)
    except (TimeoutError, httpx.HTTPError):
        return None


def _refused(status: int, body: bytes, headers: Mapping[str, str]) -> Failure:
    if 300 <= status < 400:
        message = "the backend sends the request elsewhere, and redirects are not followed; put its true address"
        return Failure(FailureKind.INVALID_REQUEST, message, status)
    return status_failure(status, body, headers)


def _timeout_kind(error: Exception) -> FailureKind:
    import httpx

    down = isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
    return FailureKind.BACKEND_UNAVAILABLE if down else FailureKind.TIMEOUT


def _headers(backend: Backend, key: str, body: bytes) -> dict[str, str]:
    """Names are in lower case, so that the daemon's own take the place of a profile's."""
    headers = {name.lower(): value for name, value in backend.headers.items()}
    headers["x-request-id"] = secrets.token_hex(16)
    headers["accept-encoding"] = "identity"  # a few packed bytes can be gigabytes
    if body:
        headers["content-type"] = "application/json"
    if key and backend.api_key_header:
        headers[backend.api_key_header.lower()] = key
    elif key:
        headers["authorization"] = f"Bearer {key}"
    return headers


def _timeouts(backend: Backend) -> httpx.Timeout:
    import httpx

    connect, idle = backend.connect_timeout_ms / 1_000, backend.idle_timeout_ms / 1_000
    return httpx.Timeout(connect=connect, read=idle, write=idle, pool=connect)


def _root(base: str) -> str:
    """The server's address without its path."""
    parts = urlsplit(base)
    return f"{parts.scheme}://{parts.netloc}"
