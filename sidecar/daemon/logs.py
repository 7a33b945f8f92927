"""The log: one JSON object a line, to standard error and to a rotated file, written by a thread of its own.

What it never has: memory text, prompts, tokens, keys, raw ids. A full pipe or disk drops lines, never delays a call.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from sidecar.storage.file_disk import require_no_link

_WAITING = 1_000
_LOGGER = "lorekeeper"


class LogWriter:
    """Installed once by the daemon; ``close`` waits a moment for what is still to be written."""

    def __init__(self, *, level: str, file: Path | None, max_bytes: int, files: int) -> None:
        self._sinks = [_Sink(_StandardError())]
        if file is not None and files > 0:
            self._sinks.append(_Sink(_RotatedFile(file, max_bytes, files)))
        logging.raiseExceptions = False
        logger = logging.getLogger(_LOGGER)
        logger.setLevel(level.upper())
        logger.propagate = False
        logger.addHandler(_Enqueue(self._sinks))

    def close(self, *, seconds: float = 1.0) -> None:
        """Write what waits, for at most ``seconds`` for each place that it goes to."""
        for sink in self._sinks:
            sink.close(seconds)


class _Writes(Protocol):
    def handle(self, record: logging.LogRecord) -> object: ...

    def close(self) -> None: ...


class _Sink:
    """A place where lines go, with a queue and a thread of its own: a full pipe keeps no line from the file."""

    def __init__(self, target: _Writes) -> None:
        self._target = target
        self._queue: queue.Queue[logging.LogRecord | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def put(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(record)

    def close(self, seconds: float) -> None:
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=seconds)
            self._thread.join(seconds)

    def _write(self) -> None:
        while (record := self._queue.get()) is not None:
            self._target.handle(record)
        self._target.close()


class _RotatedFile:
    """The file, its folder and what rotates it are made with the first line, in the thread that writes. While they
    cannot be made, or lead elsewhere, lines are dropped."""

    def __init__(self, file: Path, max_bytes: int, files: int) -> None:
        self._made_of = (file, max_bytes, files)
        self._handler: logging.Handler | None = None

    def handle(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            self._handler = self._handler or self._open()
            self._handler.handle(record)

    def close(self) -> None:
        if self._handler is not None:
            self._handler.close()

    def _open(self) -> logging.Handler:
        from logging.handlers import RotatingFileHandler

        file, max_bytes, files = self._made_of
        file.parent.mkdir(mode=0o700, exist_ok=True)
        require_no_link(file)
        handler = RotatingFileHandler(
            file, maxBytes=max_bytes, backupCount=files, encoding="utf-8", delay=True, errors="backslashreplace"
        )
        handler.setFormatter(_JsonLines())
        return handler


class _StandardError:
    """Plain writes of the descriptor: Python's own stream has a lock that ending the interpreter waits for."""

    def __init__(self) -> None:
        self._lines = _JsonLines()

    def handle(self, record: logging.LogRecord) -> None:
        data = self._lines.format(record).encode("ascii") + b"\n"
        with contextlib.suppress(OSError):
            while data:
                data = data[os.write(2, data) :]

    def close(self) -> None:
        """Nothing to do: the descriptor is the process's own."""


class _Enqueue(logging.Handler):
    def __init__(self, sinks: Sequence[_Sink]) -> None:
        super().__init__()
        self._sinks = sinks

    def emit(self, record: logging.LogRecord) -> None:
        for sink in self._sinks:
            sink.put(record)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        for name in ("code", "details", "incident"):
            if value := getattr(record, name, None):
                line[name] = value
        if record.exc_info and record.exc_info[1] is not None:
            line["failure"] = _without_texts(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True)


def _without_texts(error: BaseException) -> dict[str, Any]:
    """The kind of a failure and where it happened; its message may quote what a game stored, so it stays out."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    return {"kind": type(error).__name__, "at": places[-12:]}
