"""Who may use a save now. Many use it together; what exchanges its files has it alone.

There are two doors, because a checkpoint must not wait for a turn that talks to its model for a minute, and a restore
must not let that turn write into the state that it restores:

    calls   the daemon's edge leads every call on a save through here, also a read that is answered from memory.
            ``alone`` shuts it: running calls have a moment to end and are ended then, later ones wait.
    work    ``Workers`` leads every piece of disk work through here. ``still`` shuts only this one: no file of the save
            changes meanwhile, and calls wait for their next access to the disk.

Everything here belongs to the event loop; nothing blocks it. Work that a thread has begun is waited for, never broken
off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from types import TracebackType

from sidecar.errors import NotReady, Reason, Stale


@dataclass(slots=True, eq=False)
class _Doors:
    """The doors of one save, as long as anybody uses it."""

    calls: set[Passage] = field(default_factory=set)
    work: int = 0
    held_work: list[Callable[[], object]] = field(default_factory=list)
    calls_shut: bool = False
    work_shut: bool = False
    users: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    def changed(self) -> None:
        """Let everyone who waits look again."""
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            future = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            await future


class Passage:
    """One call's stay inside a save. A call that is ended by an exchange leaves with Stale.

    ``handing`` is set while the edge hands an answer of a stream to its client, who may be slow: an exchange waits for
    that no longer, and the call hears of its end when it :meth:`goes_on`.
    """

    __slots__ = ("_doors", "_gate", "_save", "_task", "ended", "handing")

    def __init__(self, gate: SaveGate, save: str, doors: _Doors) -> None:
        self._gate = gate
        self._save = save
        self._doors = doors
        self._task = asyncio.current_task()
        self.ended = False
        self.handing = False

    def end(self) -> None:
        """Break the call off where it waits now."""
        if self.ended:
            return
        self.ended = True
        if self.handing:
            self._leave()
        elif self._task is not None:
            self._task.cancel()

    def goes_on(self) -> None:
        """The answer was handed over. Raises Stale where the call was ended meanwhile."""
        self.handing = False
        if self.ended:
            raise self._stale()

    def __enter__(self) -> Passage:
        self._doors.calls.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        self._gate.left(self._save, self._doors)
        if self.ended and self._task is not None:
            self._task.uncancel()
            if isinstance(error, asyncio.CancelledError):
                raise self._stale() from error

    def _leave(self) -> None:
        self._doors.calls.discard(self)
        if self._doors.calls_shut:
            self._doors.changed()

    def _stale(self) -> Stale:
        return Stale(
            "the save was restored, replaced or erased while the call ran; nothing of the call is in what it is now: "
            "read again, then repeat",
            reason=Reason.SAVE_RESTORED,
        )


class SaveGate:
    """The doors of all saves."""

    def __init__(self) -> None:
        self._saves: dict[str, _Doors] = {}
        self._held: dict[str, Callable[[], None]] = {}

    def hold(self, save: str, settle: Callable[[], None]) -> None:
        """Let nobody in before ``settle`` was called without an error, which whoever comes in tries. From any thread,
        while its caller has the save alone."""
        self._held[save] = settle

    async def enter(self, save: str, *, seconds: float) -> Passage:
        """Let a call in: use the passage in a ``with``. Raises NotReady where the save stays shut for ``seconds``."""
        doors = self._used(save)
        try:
            await self._settle(save)
            if doors.calls_shut:
                await _within(seconds, doors.until(lambda: not doors.calls_shut))
            return Passage(self, save, doors)
        except BaseException:
            self.left(save, doors)
            raise

    def begin_work(self, save: str, work: Callable[[], object]) -> None:
        """Call ``work``, which begins one piece of disk work, now or once the save is no longer still. It ends with
        :meth:`end_work`."""
        doors = self._used(save)
        if doors.work_shut:
            doors.held_work.append(work)
        else:
            doors.work += 1
            work()

    def end_work(self, save: str) -> None:
        """A piece of work has ended."""
        doors = self._saves[save]
        doors.work -= 1
        if doors.work_shut:
            doors.changed()
        self.left(save, doors)

    @asynccontextmanager
    async def still(self, save: str, *, seconds: float) -> AsyncIterator[None]:
        """No disk work of the save runs meanwhile; calls go on. Raises NotReady where its turn does not come."""
        async with self._turn(save, seconds) as doors:
            with self._shut_work(doors):
                await doors.until(lambda: doors.work == 0)
                yield

    @asynccontextmanager
    async def alone(self, save: str, *, seconds: float, grace_seconds: float) -> AsyncIterator[int]:
        """Nobody uses the save meanwhile; how many calls had to be ended for it. Raises NotReady like :meth:`still`."""
        async with self._turn(save, seconds) as doors:
            doors.calls_shut = True
            try:
                ended = await self._end_calls(doors, grace_seconds)
                with self._shut_work(doors):
                    await doors.until(lambda: doors.work == 0)
                    yield ended
            finally:
                doors.calls_shut = False
                doors.changed()

    def shut(self, save: str) -> bool:
        """Whether the save is being exchanged now."""
        doors = self._saves.get(save)
        return doors is not None and doors.calls_shut

    def left(self, save: str, doors: _Doors) -> None:
        """One user fewer; the last one takes the doors away."""
        doors.users -= 1
        if not doors.users:
            del self._saves[save]

    async def _settle(self, save: str) -> None:
        settle = self._held.get(save)
        if settle is not None:
            await asyncio.to_thread(settle)
            if self._held.get(save) is settle:
                del self._held[save]

    def _used(self, save: str) -> _Doors:
        doors = self._saves.get(save)
        if doors is None:
            doors = self._saves[save] = _Doors()
        doors.users += 1
        return doors

    @asynccontextmanager
    async def _turn(self, save: str, seconds: float) -> AsyncIterator[_Doors]:
        """What wants a save for itself takes turns."""
        doors = self._used(save)
        try:
            await _within(seconds, doors.turn.acquire())
            try:
                await self._settle(save)
                yield doors
            finally:
                doors.turn.release()
        finally:
            self.left(save, doors)

    @contextmanager
    def _shut_work(self, doors: _Doors) -> Iterator[None]:
        doors.work_shut = True
        try:
            yield
        finally:
            doors.work_shut = False
            held, doors.held_work = doors.held_work, []
            doors.work += len(held)
            for work in held:
                work()

    async def _end_calls(self, doors: _Doors, grace_seconds: float) -> int:
        try:
            async with asyncio.timeout(grace_seconds):
                await doors.until(lambda: not doors.calls)
        except TimeoutError:
            pass  # those that are left are ended
        running = list(doors.calls)
        for passage in running:
            passage.end()
        await doors.until(lambda: not doors.calls)
        return len(running)


async def _within(seconds: float, waiting: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError as error:
        raise NotReady(
            "the save is being restored, replaced or erased, or kept as a checkpoint; try again in a moment",
            reason=Reason.SAVE_BUSY,
        ) from error


def patience(remaining: float | None, *, most: float) -> float:
    """How many seconds a call may wait for its turn: at most ``most``, short enough to be told why in vain.

    ``remaining`` are the seconds to the call's deadline, None where it has none.
    """
    return most if remaining is None else max(0.0, min(most, 0.9 * remaining))
