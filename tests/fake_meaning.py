"""F of the cases: a daemon whose embedding server says (1, 0) for what is about cats and (0, 1) for anything else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from embedding_server import Asked, EmbeddingServer, answer, embedding_server

CATS = ("cat", "feline")


def about_cats(text: str) -> list[float]:
    return [1.0, 0.0] if any(word in text.casefold() for word in CATS) else [0.0, 1.0]


@dataclass
class Meaning:
    """What the server does with each request. ``spoils`` are texts that fail any request they are in."""

    server: EmbeddingServer
    vector: Callable[[str], list[float]] = about_cats
    spoils: set[str] = field(default_factory=set)
    hangs: Callable[[Asked], bool] = lambda _asked: False
    down: bool = False
    released: threading.Event = field(default_factory=threading.Event)

    def reply(self, asked: Asked, handler: BaseHTTPRequestHandler) -> None:
        if self.hangs(asked):
            self.released.wait(20)
        if self.down or self.spoils.intersection(asked.texts):
            answer(handler, {"error": "no"}, status=500)
            return
        rows = [{"index": index, "embedding": self.vector(text)} for index, text in enumerate(asked.texts)]
        answer(handler, {"data": rows})

    def texts(self) -> list[str]:
        """Every text that was embedded so far, the one that tries the server left out."""
        return [text for asked in self.server.asked[1:] for text in asked.texts]

    def until_asked(self, word: str, seconds: float = 15.0) -> None:
        """Return once a text with this word was asked for."""
        deadline = time.monotonic() + seconds
        while not any(word in text for text in self.texts()):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def settings(self, **more: Any) -> list[str]:
        """Arguments of a daemon that uses it."""
        given = {
            "embedding.model": "openai",
            "embedding.openai_url": self.server.address,
            "embedding.openai_model": "fake",
            "search.index_delay_seconds": 0.01,
            **{name.replace("__", "."): value for name, value in more.items()},
        }
        return [part for name, value in given.items() for part in ("--set", f"{name}={value}")]


@contextmanager
def fake_meaning() -> Iterator[Meaning]:
    with embedding_server() as server:
        meaning = Meaning(server)
        server.default = meaning.reply
        try:
            yield meaning
        finally:
            meaning.released.set()
