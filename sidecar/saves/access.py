"""How the calls of SaveService come to a save: together with others, while it stands still, or alone.

What has the save still or alone goes on to its end when its caller goes away: a restore is never left in its middle.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from sidecar.settings import SavesSettings
from sidecar.storage.save_gate import SaveGate, patience
from sidecar.storage.workers import OwnKey, SaveKey, Workers

T = TypeVar("T")


class _NoDeadline:
    """Stands in for the context of a call where there is none."""

    def time_remaining(self) -> None:
        return None


NO_DEADLINE = _NoDeadline()


class SaveAccess:
    """``context`` is that of the call: its deadline bounds the waiting. All raise NotReady where it is over first."""

    def __init__(self, gate: SaveGate, workers: Workers, limits: SavesSettings) -> None:
        self._gate = gate
        self._workers = workers
        self._limits = limits

    def exchanging(self, save: str) -> bool:
        """Whether the save is being restored, replaced or erased now."""
        return self._gate.shut(save)

    async def of_none(self, work: Callable[[], T], *, lane: str = "saves") -> T:
        """The answer of work that belongs to no single save; what has the same ``lane`` comes one after another."""
        return await self._workers.run(SaveKey(lane, ""), work)

    async def together(self, save: str, context: Any, work: Callable[[], T]) -> T:
        """The answer of work beside that of others."""
        with await self._gate.enter(save, seconds=self._patience(context)):
            return await self._workers.run(SaveKey("saves", save), work)

    async def still(self, save: str, context: Any, work: Callable[[], T]) -> T:
        """The answer of work while no file of the save changes."""
        return await self._workers.to_the_end(self._still(save, self._patience(context), work))

    async def alone(
        self, save: str, context: Any, work: Callable[[], T], *, check: Callable[[], object] | None = None
    ) -> tuple[T, int]:
        """The answer of work while nobody uses the save, and how many calls were ended for it. ``check`` raises before
        any is, where the work would be refused."""
        if check is not None:
            await self.together(save, context, check)
        return await self._workers.to_the_end(self._alone(save, self._patience(context), work))

    async def forking(
        self, source: str, new: str, context: Any, work: Callable[[], T], *, check: Callable[[], object]
    ) -> T:
        """The answer of work while one save stands still and nobody uses the other; ``check`` as for :meth:`alone`."""
        await self.together(new, context, check)
        return await self._workers.to_the_end(self._forking(source, new, self._patience(context), work))

    def later(self, work: Callable[[], None]) -> None:
        """Begin work that belongs to no save and that nobody waits for."""
        self._workers.begin(OwnKey(""), work)

    async def _still(self, save: str, seconds: float, work: Callable[[], T]) -> T:
        async with self._gate.still(save, seconds=seconds):
            return await self._workers.run_past_gate(work)

    async def _alone(self, save: str, seconds: float, work: Callable[[], T]) -> tuple[T, int]:
        async with self._gate.alone(save, seconds=seconds, grace_seconds=self._limits.grace_seconds) as ended:
            return await self._workers.run_past_gate(work), ended

    async def _forking(self, source: str, new: str, seconds: float, work: Callable[[], T]) -> T:
        async with AsyncExitStack() as stack:
            for save in sorted({source, new}):  # in one order, so that two forks never wait for each other
                if save == new:
                    grace = self._limits.grace_seconds
                    await stack.enter_async_context(self._gate.alone(save, seconds=seconds, grace_seconds=grace))
                else:
                    await stack.enter_async_context(self._gate.still(save, seconds=seconds))
            return await self._workers.run_past_gate(work)

    def _patience(self, context: Any) -> float:
        return patience(context.time_remaining(), most=self._limits.wait_seconds)
