"""A model server that plays scripts: real HTTP over loopback, in a thread of this process.

    server.play(stream("Good ", "day."))                     the next request is answered by two pieces and an end
    server.play(stream("Good ", gate, "day."))               the second piece waits for ``gate = server.gate()`` to open
    server.play(error(503, {"error": …}), stream("Hello."))  the first request fails, the second does not

Every request is kept. A request without a script is answered by the standing one, an echo of its last message.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WAIT_SECONDS = 30.0


class Gate:
    """A place in a script where the server waits until the test opens it. Made by :meth:`WireServer.gate`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.opened = asyncio.Event()

    def open(self) -> None:
        self._loop.call_soon_threadsafe(self.opened.set)


Step = bytes | Gate


@dataclass
class Request:
    """One request that came in; ``gone`` is set when its caller has hung up."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    gone: threading.Event = field(default_factory=threading.Event)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    @property
    def said(self) -> str:
        """All message texts, for a look at what a model was told."""
        return "\n".join(str(message["content"]) for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """What goes out: a head and steps. Not ``chunked``, the body ends with the connection."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    chunked: bool = True
    hang_up: bool = False
    """Break the connection where the body should end."""
    hold: bool = False
    """Send everything and then neither end the body nor hang up, until the caller does."""


Script = Reply | Callable[[Request], Reply]


class WireServer:
    """``base_url`` is what a backend is given. Use it as a context manager."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.standing: Script = lambda request: stream(f"You said: {request.messages[-1]['content']}")
        self.models: Reply = whole({"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        self.routes: dict[str, Reply] = {}
        self._scripts: deque[Script] = deque()
        self._came = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    def __enter__(self) -> WireServer:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(WAIT_SECONDS)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(WAIT_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_SECONDS)
        self._loop.close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def turns(self) -> list[Request]:
        """The requests for answers."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    def gate(self) -> Gate:
        """A new gate, closed."""
        return Gate(self._loop)

    def play(self, *scripts: Script) -> None:
        """The next requests for answers, in this order."""
        self._scripts.extend(scripts)

    def wait_for(self, count: int) -> list[Request]:
        """The requests for answers, once there are ``count`` of them."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.turns) >= count, WAIT_SECONDS), "no request came"
        return self.turns

    def reply_to(self, request: Request) -> Reply:
        """Keep the request and choose its reply."""
        with self._came:
            self.requests.append(request)
            self._came.notify_all()
        if request.path in self.routes:
            return self.routes[request.path]
        if request.method == "GET":
            return self.models if request.path.endswith("/models") else error(404, {"error": "no such path"})
        script = self._scripts.popleft() if self._scripts else self.standing
        return script if isinstance(script, Reply) else script(request)

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(lambda: _Connection(self, self._connections), "127.0.0.1", 0)

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections):
            connection.end()
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """One caller's connection: requests in, scripts out, one after another."""

    def __init__(self, server: WireServer, known: set[_Connection]) -> None:
        self._server = server
        self._known = known
        self._buffer = bytearray()
        self._playing: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()
        self._request: Request | None = None
        self._out: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._out = transport
        self._known.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._playing is None:
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._known.discard(self)
        self._gone.set()
        if self._request:
            self._request.gone.set()

    def end(self) -> None:
        if self._playing:
            self._playing.cancel()
        self._out.abort()

    def _next(self) -> None:
        request = _taken(self._buffer)
        if request:
            self._request = request
            self._playing = asyncio.ensure_future(self._play(self._server.reply_to(request)))

    async def _play(self, reply: Reply) -> None:
        self._out.write(_head(reply))
        for step in reply.steps:
            if isinstance(step, Gate):
                await self._wait(step.opened)
            else:
                self._out.write(b"%x\r\n%s\r\n" % (len(step), step) if reply.chunked else step)
        if reply.hold:
            await self._gone.wait()
        if reply.hang_up or not reply.chunked:
            self._out.close()
            return
        self._out.write(b"0\r\n\r\n")
        self._request = self._playing = None
        self._next()

    async def _wait(self, opened: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(each.wait()) for each in (opened, self._gone)]
        await asyncio.wait(waits, timeout=WAIT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def _taken(buffer: bytearray) -> Request | None:
    """The first whole request, taken out of the buffer."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = buffer[:end].decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    begin, length = end + 4, int(headers.get("content-length", 0))
    if len(buffer) < begin + length:
        return None
    body = bytes(buffer[begin : begin + length])
    del buffer[: begin + length]
    return Request(method, path, headers, json.loads(body) if body else {})


def _head(reply: Reply) -> bytes:
    headers = {"content-type": "text/event-stream", **reply.headers}
    headers |= {"transfer-encoding": "chunked"} if reply.chunked else {"connection": "close"}
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def event(value: Mapping[str, Any] | str) -> bytes:
    """One event of a stream."""
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"data: {data}\n\n".encode()


def delta(**said: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": said, "finish_reason": None}], "model": "scripted"})


def end(finish: str = "stop", *, usage: Mapping[str, Any] | None = None) -> bytes:
    closing = event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "model": "scripted"})
    told = event({"choices": [], "usage": usage}) if usage else b""
    return closing + told + event("[DONE]")


def usage(prompt: int, completion: int = 1, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


def stream(*parts: str | Gate, finish: str = "stop", tokens: Mapping[str, Any] | None = None) -> Reply:
    """Text in these pieces; an event among them is waited for."""
    steps: list[Step] = [part if isinstance(part, Gate) else delta(content=part) for part in parts]
    return Reply([*steps, end(finish, usage=tokens)])


def calls(*wanted: tuple[str, Any], text: str = "", tokens: Mapping[str, Any] | None = None) -> Reply:
    """Tool calls; arguments that are text go out as they are."""
    steps: list[Step] = [delta(content=text)] if text else []
    for index, (name, arguments) in enumerate(wanted):
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        opening = {"index": index, "id": f"id{index}", "type": "function", "function": {"name": name, "arguments": ""}}
        steps.append(delta(tool_calls=[opening]))
        steps.append(delta(tool_calls=[{"index": index, "function": {"arguments": written}}]))
    return Reply([*steps, end("tool_calls", usage=tokens)])


def whole(value: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """An answer that is not streamed."""
    return Reply([json.dumps(value).encode()], status, {"content-type": "application/json", **(headers or {})})


def error(status: int, value: Mapping[str, Any], **headers: str) -> Reply:
    """A refusal; names of headers are written with underscores."""
    return whole(value, status=status, headers={name.replace("_", "-"): each for name, each in headers.items()})
