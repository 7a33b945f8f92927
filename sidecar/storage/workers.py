"""Disk work in threads: never on the event loop, one call at a time for one key (an actor, a save)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from sidecar.errors import LimitReached, Reason

T = TypeVar("T")


@dataclass(slots=True)
class _Call:
    abandoned: bool = False


class Workers:
    """``threads`` at work, at most ``queue`` calls in all waiting or running.

    A caller that goes away while its work waits changes nothing; work that has begun is finished, and the key stays
    locked until it is.
    """

    def __init__(self, *, threads: int, queue: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="disk")
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._queue = queue
        self._calls: set[asyncio.Task[object]] = set()

    async def run(self, key: Hashable, work: Callable[[], T]) -> T:
        """The answer of ``work``, called in a thread while no other work for ``key`` runs.

        Raises LimitReached when ``queue`` calls are under way.
        """
        if len(self._calls) >= self._queue:
            raise LimitReached(
                f"{self._queue} calls wait for the disk already; wait for some to end, then try again",
                reason=Reason.TOO_MANY_CALLS,
                limit="storage.max_waiting_calls",
                value=self._queue,
            )
        call = _Call()
        task = asyncio.ensure_future(self._locked(key, work, call))
        self._calls.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            call.abandoned = True
            raise

    async def _locked(self, key: Hashable, work: Callable[[], T], call: _Call) -> T:
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            if call.abandoned:
                raise asyncio.CancelledError
            return await asyncio.get_running_loop().run_in_executor(self._threads, _begin, work, call)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # told to the caller, if there still is one

    async def close(self) -> None:
        """Wait for what has begun, then end the threads."""
        if self._calls:
            await asyncio.wait(self._calls)
        self._threads.shutdown()


def _begin(work: Callable[[], T], call: _Call) -> T:
    """In a thread: the work, unless its caller went away while it waited for the thread."""
    if call.abandoned:
        raise asyncio.CancelledError
    return work()
