"""The log: one JSON object a line, to standard error and to a rotated file, written by a thread of its own.

What it never has: memory text, prompts, tokens, keys, raw ids. A full pipe or disk drops lines, never delays a call.
"""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

_WAITING = 1_000
_LOGGER = "lorekeeper"


class LogWriter:
    """Installed once by the daemon; ``close`` waits a moment for what is still to be written."""

    def __init__(self, *, level: str, file: Path | None, max_bytes: int, files: int) -> None:
        self._queue: queue.Queue[logging.LogRecord | None] = queue.Queue(_WAITING)
        self._handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
        if file is not None and files > 0:
            from logging.handlers import RotatingFileHandler

            rotated = RotatingFileHandler(
                file, maxBytes=max_bytes, backupCount=files, encoding="utf-8", delay=True, errors="backslashreplace"
            )
            self._handlers.append(rotated)
        for handler in self._handlers:
            handler.setFormatter(_JsonLines())
        logging.raiseExceptions = False
        logger = logging.getLogger(_LOGGER)
        logger.setLevel(level.upper())
        logger.propagate = False
        logger.addHandler(_Enqueue(self._queue))
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def close(self, *, seconds: float = 1.0) -> None:
        """Write what waits, for at most ``seconds``."""
        try:
            self._queue.put(None, timeout=seconds)
        except queue.Full:
            return
        self._thread.join(seconds)

    def _write(self) -> None:
        while (record := self._queue.get()) is not None:
            for handler in self._handlers:
                handler.handle(record)
        for handler in self._handlers:
            handler.close()


class _Enqueue(logging.Handler):
    def __init__(self, waiting: queue.Queue[logging.LogRecord | None]) -> None:
        super().__init__()
        self._waiting = waiting

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            return


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
