"""A real HTTP server that speaks the embeddings wire, well or badly as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[["Asked", BaseHTTPRequestHandler], None]


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    texts: list[str]


@dataclass
class EmbeddingServer:
    """``replies`` are used up one by one; then ``default`` answers, as a rule a text by its length and one."""

    address: str
    asked: list[Asked] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    default: Reply = field(default_factory=lambda: well)
    ended: threading.Event = field(default_factory=threading.Event)


def vectors(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def answer(handler: BaseHTTPRequestHandler, body: Any, *, status: int = 200, cut: int = 0) -> None:
    """Send JSON (or raw bytes); with ``cut``, that many bytes fewer than promised."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data[: len(data) - cut])


def well(asked: Asked, handler: BaseHTTPRequestHandler) -> None:
    rows = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors(asked.texts))]
    answer(handler, {"data": rows, "usage": {"prompt_tokens": 7}})


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked = Asked(self.path, {key.lower(): value for key, value in self.headers.items()}, body["input"])
            server.asked.append(asked)
            reply = server.replies.pop(0) if server.replies else server.default
            with suppress(ConnectionError):  # who asked may have gone away
                reply(asked, self)

        def log_message(self, *_arguments: Any) -> None:
            """Nothing to say."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.address = f"http://127.0.0.1:{http.server_port}"
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.ended.set()
        http.shutdown()
        http.server_close()
