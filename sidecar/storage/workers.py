"""Disk work in threads: never on the event loop, one call at a time for one key (an actor, a save).

Every key tells its save, so that a checkpoint can have the save's files stand still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from sidecar.errors import LimitReached, Reason
from sidecar.storage.save_gate import SaveGate

T = TypeVar("T")


class OfSave(Hashable, Protocol):
    """What work may be ordered by: an actor's address, or a :class:`SaveKey`."""

    @property
    def save(self) -> str: ...


class SaveKey(NamedTuple):
    """Work of one ``kind`` on a whole save; ``save`` is empty for what belongs to none."""

    kind: str
    save: str


@dataclass(frozen=True, eq=False)
class OwnKey:
    """A key for one piece of work on a save, which waits for no other."""

    save: str


@dataclass(slots=True)
class _Call:
    abandoned: bool = False


def _nothing() -> None:
    """Work that has begun is finished."""


class Workers:
    """Through ``gate``, ``threads`` at work, at most ``queue`` calls in all waiting or running.

    A caller that goes away while its work waits changes nothing; work that has begun is finished, and the key stays
    locked until it is.
    """

    def __init__(self, gate: SaveGate, *, threads: int, queue: int, limit: str = "storage.max_waiting_calls") -> None:
        """``limit`` is the setting that ``queue`` comes from."""
        self._limit = limit
        self._gate = gate
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="disk")
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._queue = queue
        self._calls: set[asyncio.Task[object]] = set()

    async def run(self, key: OfSave, work: Callable[[], T], *, left: Callable[[], None] = _nothing) -> T:
        """The answer of ``work``, called in a thread while no other work for ``key`` runs.

        ``left`` is called when the caller goes away before: it may end work that has begun. Raises LimitReached when
        ``queue`` calls are under way.
        """
        if len(self._calls) >= self._queue:
            raise LimitReached(
                f"{self._queue} calls wait or run already ({self._limit}); wait for some to end, then try again",
                reason=Reason.TOO_MANY_CALLS,
                limit=self._limit,
                value=self._queue,
            )
        call = _Call()
        try:
            return await self.to_the_end(self._locked(key, work, call))
        except asyncio.CancelledError:
            call.abandoned = True
            left()
            raise

    def begin(self, key: OfSave, work: Callable[[], object]) -> None:
        """Have ``work`` done like :meth:`run` without waiting for it; what it raises is lost."""
        self._track(self._locked(key, work, _Call()))

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """The answer of ``work``, which goes on when the caller goes away."""
        return await asyncio.shield(self._track(work))

    def _track(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(work)
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    async def _locked(self, key: OfSave, work: Callable[[], T], call: _Call) -> T:
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock, self._gate.work(key.save):
            if call.abandoned:
                raise asyncio.CancelledError
            return await asyncio.get_running_loop().run_in_executor(self._threads, _begin, work, call)

    async def run_past_gate(self, work: Callable[[], T]) -> T:
        """The answer of ``work``, called in a thread at once: for who has the save still or alone."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

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
