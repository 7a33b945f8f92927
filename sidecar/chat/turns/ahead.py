"""An answer that is asked for before anybody listens: the model reads the prompt while the line is being stored.

Nothing of it is heard before it is read, and closing it ends the work at the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from sidecar.chat.backends.wire import Answer
from sidecar.chat.turns.background import cancel_once

Pieces = AsyncGenerator[str | Answer, None]


class Ahead:
    """Pieces of an answer, the first of which is waited for from now on. What goes wrong is raised to the reader."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._first = asyncio.ensure_future(_next(pieces))

    async def __aiter__(self) -> AsyncIterator[str | Answer]:
        first = await self._first
        if first is None:
            return
        yield first
        async for piece in self._pieces:
            yield piece

    async def aclose(self) -> None:
        """End the request, wherever it stands."""
        if not self._first.done():
            cancel_once(self._first)
            await asyncio.wait([self._first])
        if not self._first.cancelled():
            self._first.exception()  # told to the reader, if there was one
        await self._pieces.aclose()


async def _next(pieces: Pieces) -> str | Answer | None:
    return await anext(pieces, None)
