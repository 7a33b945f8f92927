"""Passes diagnostics to the log and to whoever watches; bounded, and never in the way of the work that reports."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from operator import attrgetter

from sidecar.diagnostics import Diagnostic, Severity
from sidecar.errors import LimitReached, Reason

_log = logging.getLogger("lorekeeper")
_LEVELS = {
    Severity.INFORMATION: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.ERROR: logging.ERROR,
}


@dataclass(frozen=True, slots=True)
class Numbered:
    """A diagnostic with its place in the daemon's life and its wall time in Unix seconds."""

    sequence: int
    time: float
    diagnostic: Diagnostic


class DiagnosticHub:
    """``report`` may be called from any thread; watching belongs to the event loop."""

    def __init__(self, *, kept: int, max_watchers: int) -> None:
        self._kept: deque[Numbered] = deque(maxlen=kept)
        # Apart, so that nothing else has to go for it.
        self._routine: deque[Numbered] = deque(maxlen=kept)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._watchers: set[asyncio.Event] = set()
        self._max_watchers = max_watchers
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake watchers on ``loop`` from now on."""
        self._loop = loop

    def report(self, diagnostic: Diagnostic) -> None:
        if diagnostic.routine and not self._watchers:
            return
        with self._lock:
            line = self._routine if diagnostic.routine else self._kept
            line.append(Numbered(next(self._numbers), time.time(), diagnostic))
        if not diagnostic.routine:
            _log.log(
                _LEVELS[diagnostic.severity],
                diagnostic.message,
                extra={"code": diagnostic.code, "details": dict(diagnostic.details)},
            )
        self._wake()

    async def watch(self, after: int | None) -> AsyncIterator[tuple[Numbered, int]]:
        """Diagnostics with a sequence above ``after`` (None: only new ones), and how many were missed before each.

        A number that this run has not reached is of an earlier run: all that is kept is told.
        Ends when the daemon stops. Raises LimitReached when too many watch.
        """
        if len(self._watchers) >= self._max_watchers:
            raise LimitReached(
                f"{self._max_watchers} streams watch already; end one of them first",
                reason=Reason.TOO_MANY_CALLS,
                limit="daemon.max_watchers",
                value=self._max_watchers,
            )
        newest = self._last()
        last = newest if after is None else after if after <= newest else 0
        changed = asyncio.Event()
        self._watchers.add(changed)
        try:
            while True:
                changed.clear()
                ends = self._closed  # looked at first, so that the last diagnostic is told before the end
                for numbered in self._since(last):
                    yield numbered, numbered.sequence - last - 1
                    last = numbered.sequence
                if ends:
                    return
                if self._last() == last:
                    await changed.wait()
        finally:
            self._watchers.discard(changed)

    def close(self) -> None:
        """End every watch."""
        self._closed = True
        self._wake()

    def _since(self, last: int) -> list[Numbered]:
        with self._lock:
            new = [kept for line in (self._kept, self._routine) for kept in line if kept.sequence > last]
        return sorted(new, key=attrgetter("sequence"))

    def _last(self) -> int:
        return max(line[-1].sequence if line else 0 for line in (self._kept, self._routine))

    def _wake(self) -> None:
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        for watcher in self._watchers:
            watcher.set()
