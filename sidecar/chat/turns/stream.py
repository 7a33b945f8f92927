"""Events from a task to whoever reads them. A reader that goes away ends the task; a slow one makes it wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Generic, TypeVar

from sidecar.chat.turns.background import Background, cancel_once

T = TypeVar("T")


class Stream(Generic[T]):
    """At most ``most`` items wait to be read."""

    def __init__(self, background: Background, *, most: int) -> None:
        self._background = background
        self._items: asyncio.Queue[T | None] = asyncio.Queue(most)
        self._task: asyncio.Task[Any] | None = None

    async def tell(self, item: T) -> None:
        """Hand one item to the reader, who gets to pass it on before the next one is made."""
        await self._items.put(item)
        await asyncio.sleep(0)

    async def read(self, work: Coroutine[Any, Any, None]) -> AsyncIterator[T]:
        """Run ``work`` and yield what it tells; what it raises comes after the last item."""
        task = self._task = self._background.start(self._to_the_end(work))
        try:
            while (item := await self._items.get()) is not None:
                yield item
            await task
        finally:
            cancel_once(task)

    def end(self) -> None:
        """The reader is gone."""
        if self._task:
            cancel_once(self._task)

    async def _to_the_end(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except Exception:
            await self._items.put(None)
            raise
        await self._items.put(None)
