"""Disk work in threads: never on the event loop, one call at a time for one key (an actor, a save).

Every key tells its save, so that a checkpoint can have the save's files stand still.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

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


@dataclass(slots=True, eq=False)
class _Call(Generic[T]):
    """A piece of work and who waits for it. An answer that was cancelled is waited for by nobody."""

    key: OfSave
    work: Callable[[], T]
    answer: asyncio.Future[T]

    def ended(self) -> Callable[[], None]:
        """In a thread: do the work, and tell what settles the answer."""
        if self.answer.cancelled():
            return _nothing
        try:
            return partial(self.answer.set_result, self.work())
        except BaseException as error:
            return partial(self.answer.set_exception, error)


def _nothing() -> None:
    """Work that has begun is finished."""


class Workers:
    """Through ``gate``, ``threads`` at work, at most ``queue`` calls in all waiting or running.

    A caller that goes away while its work waits changes nothing; work that has begun is finished, and its key is not
    free until it is.
    """

    def __init__(self, gate: SaveGate, *, threads: int, queue: int, limit: str = "storage.max_waiting_calls") -> None:
        """``limit`` is the setting that ``queue`` comes from."""
        self._limit = limit
        self._gate = gate
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="disk")
        self._lines: dict[OfSave, deque[_Call[Any]]] = {}
        self._queue = queue
        self._under_way = 0
        self._all_ended: asyncio.Future[None] | None = None

    async def run(self, key: OfSave, work: Callable[[], T], *, left: Callable[[], None] = _nothing) -> T:
        """The answer of ``work``, called in a thread while no other work for ``key`` runs.

        ``left`` is called when the caller goes away before: it may end work that has begun. Raises LimitReached when
        ``queue`` calls are under way.
        """
        if self._under_way >= self._queue:
            raise LimitReached(
                f"{self._queue} calls wait or run already ({self._limit}); wait for some to end, then try again",
                reason=Reason.TOO_MANY_CALLS,
                limit=self._limit,
                value=self._queue,
            )
        try:
            return await self._lined_up(key, work)
        except asyncio.CancelledError:
            left()
            raise

    def begin(self, key: OfSave, work: Callable[[], object]) -> None:
        """Have ``work`` done like :meth:`run` without waiting for it; what it raises is lost."""
        self._lined_up(key, work)

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """The answer of ``work``, which goes on when the caller goes away."""
        self._under_way += 1
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._settled)
        return await asyncio.shield(task)

    async def run_past_gate(self, work: Callable[[], T]) -> T:
        """The answer of ``work``, called in a thread at once: for who has the save still or alone."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def close(self) -> None:
        """Wait for what has begun, then end the threads."""
        if self._under_way:
            self._all_ended = asyncio.get_running_loop().create_future()
            await self._all_ended
        self._threads.shutdown()

    def _lined_up(self, key: OfSave, work: Callable[[], T]) -> asyncio.Future[T]:
        """What work will answer that comes after all other for its key. No task and no lock: most calls come here."""
        self._under_way += 1
        call = _Call(key, work, asyncio.get_running_loop().create_future())
        line = self._lines.setdefault(key, deque())
        line.append(call)
        if len(line) == 1:
            self._begin(call)
        return call.answer

    def _begin(self, call: _Call[Any]) -> None:
        self._gate.begin_work(call.key.save, partial(self._threads.submit, self._in_thread, call))

    def _in_thread(self, call: _Call[Any]) -> None:
        call.answer.get_loop().call_soon_threadsafe(self._ended, call, call.ended())

    def _ended(self, call: _Call[Any], settle: Callable[[], None]) -> None:
        self._gate.end_work(call.key.save)
        line = self._lines[call.key]
        line.popleft()
        if line:
            self._begin(line[0])
        else:
            del self._lines[call.key]
        if not call.answer.done():
            settle()
        self._settled(call.answer)

    def _settled(self, answer: asyncio.Future[Any]) -> None:
        if not answer.cancelled():
            answer.exception()  # told to the caller, if there still is one
        self._under_way -= 1
        if self._all_ended is not None and not self._under_way:
            self._all_ended.set_result(None)
