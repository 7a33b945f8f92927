"""Who may run a model, and when: bounded runs, bounded queue, bounded waits.

    enter ── no place left ─────────────▶ QUEUE_FULL
      │
    wait for a slot ── too long ────────▶ QUEUE_TIMEOUT (nothing was run)
      │
    run ── too long, or caller gone ────▶ the run is asked to stop; INFERENCE_TIMEOUT, or cancelled
      │
    slot is free once the run has really ended, however long after its caller has gone

Queries and documents have a door each: neither waits for the other's runs, nor for its queue.
Everything here happens on the event loop; it never blocks it and never looks at a text.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from sidecar.errors import LimitReached, LorekeeperError, NotReady, Reason, TimedOut

T = TypeVar("T")


@dataclass(frozen=True)
class AdmissionBounds:
    """``concurrent`` runs at once, ``queued`` calls waiting besides; times in seconds."""

    concurrent: int
    queued: int
    queue_seconds: float
    run_seconds: float


class Admission:
    """The door before one model, for one kind of text."""

    def __init__(self, bounds: AdmissionBounds) -> None:
        self.bounds = bounds
        self._free = bounds.concurrent
        self._places = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._stops: dict[asyncio.Future[object], Callable[[], None]] = {}
        self._closed = False

    @property
    def running(self) -> int:
        """Runs under way, abandoned ones included."""
        return self.bounds.concurrent - self._free

    @property
    def queued(self) -> int:
        """Calls that wait for a slot now."""
        return sum(not granted.done() for granted in self._line)

    @asynccontextmanager
    async def lane(self) -> AsyncIterator[Lane]:
        """A place for one call. Raises QUEUE_FULL at once where there is none, MODEL_UNLOADED once closed."""
        if self._closed:
            raise model_unloaded()
        if self._places >= self.bounds.concurrent + self.bounds.queued:
            raise LimitReached(
                f"{self.bounds.queued} embedding calls wait already; try again later",
                reason=Reason.QUEUE_FULL,
                limit="embedding.max_queued",
                value=self.bounds.queued,
            )
        self._places += 1
        lane = Lane(self)
        try:
            yield lane
        finally:
            lane.leave()

    async def close(self, grace: float) -> None:
        """Refuse new calls, turn the waiting ones away, give runs ``grace`` seconds, then stop them and wait."""
        self._closed = True
        for granted in self._line:
            if not granted.done():
                granted.set_exception(model_unloaded())
        self._line.clear()
        if self._stops and grace > 0:
            await asyncio.wait(list(self._stops), timeout=grace)
        for stop in list(self._stops.values()):
            stop()
        if self._stops:
            await asyncio.wait(list(self._stops))

    async def acquire(self) -> None:
        """Wait for a slot. Raises QUEUE_TIMEOUT; a cancelled caller leaves the line at once."""
        if self._closed:
            raise model_unloaded()
        if self._free > 0:
            self._free -= 1
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(granted)
        try:
            async with asyncio.timeout(self.bounds.queue_seconds):
                await asyncio.shield(granted)
        except BaseException as error:
            self._give_up(granted)
            if isinstance(error, TimeoutError):
                raise self._queue_timeout() from None
            raise

    def _give_up(self, granted: asyncio.Future[None]) -> None:
        """The slot may have been granted in the same moment: then it goes to the next."""
        if not granted.cancel() and granted.exception() is None:
            self.release()

    def release(self) -> None:
        """One slot is free: the first of those who still wait gets it."""
        while self._line:
            granted = self._line.popleft()
            if not granted.done():
                granted.set_result(None)
                return
        self._free += 1

    def started(self, run: asyncio.Future[T], stop: Callable[[], None]) -> None:
        """Hold the slot until ``run`` is over, whoever still waits for it."""
        self._stops[run] = stop  # type: ignore[index]  # futures of any result
        run.add_done_callback(self._ended)

    def leave(self) -> None:
        self._places -= 1

    def _ended(self, run: asyncio.Future[T]) -> None:
        del self._stops[run]  # type: ignore[arg-type]  # futures of any result
        if not run.cancelled():
            run.exception()  # told to the caller, if there still is one
        self.release()

    def _queue_timeout(self) -> TimedOut:
        return TimedOut(
            f"no place at the model within {self.bounds.queue_seconds:g} s; nothing was run: try again later",
            reason=Reason.QUEUE_TIMEOUT,
            limit="embedding.queue_seconds",
            value=self.bounds.queue_seconds,
        )


class Lane:
    """One call's way through the door: any number of runs, one after the other, within the time for one call."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._left = admission.bounds.run_seconds
        self._run: asyncio.Future[object] | None = None
        self.waited = 0.0
        """Seconds spent waiting for slots."""

    async def run(self, begin: Callable[[], asyncio.Future[T]], stop: Callable[[], None]) -> T:
        """What the future that ``begin`` makes gives. ``stop`` is called when nobody waits for it any more."""
        await self._slot()
        run = self._begin(begin, stop)
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                return await asyncio.shield(run)
        except TimeoutError:
            stop()
            raise self._too_slow() from None
        except asyncio.CancelledError:
            stop()
            if run.cancelled():
                raise model_unloaded() from None
            raise
        finally:
            self._left = max(0.0, self._left - (time.monotonic() - started))

    async def _slot(self) -> None:
        asked = time.monotonic()
        try:
            await self._admission.acquire()
        finally:
            self.waited += time.monotonic() - asked

    def _begin(self, begin: Callable[[], asyncio.Future[T]], stop: Callable[[], None]) -> asyncio.Future[T]:
        try:
            run = begin()
        except BaseException:
            self._admission.release()
            raise
        self._admission.started(run, stop)
        self._run = run  # type: ignore[assignment]  # futures of any result
        return run

    def leave(self) -> None:
        """Give the place back; an abandoned run keeps it until it has ended."""
        if self._run is None or self._run.done():
            self._admission.leave()
        else:
            self._run.add_done_callback(lambda _run: self._admission.leave())

    def _too_slow(self) -> LorekeeperError:
        seconds = self._admission.bounds.run_seconds
        return TimedOut(
            f"the model did not answer within {seconds:g} s; send fewer or shorter texts",
            reason=Reason.INFERENCE_TIMEOUT,
            limit="embedding.inference_seconds",
            value=seconds,
        )


def model_unloaded() -> NotReady:
    return NotReady("the model was unloaded meanwhile; load it and try again", reason=Reason.MODEL_UNLOADED)
