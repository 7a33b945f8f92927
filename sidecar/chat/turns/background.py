"""Work that goes on when the call that began it is over: what must still be stored, histories that are being folded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Background:
    """Keeps its tasks until they end; the daemon's end waits for them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin the work. Its failure is told to who awaits the task, and to nobody else."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Wait for all that has begun."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()


def cancel_once(task: asyncio.Task[Any]) -> None:
    """Cancels a task that nobody has cancelled yet.

    A second cancel would break into the tidying up after the first, and leave the connection to the model open.
    """
    if not task.cancelling():
        task.cancel()
