"""Embeds what was remembered, behind the journals: a few texts at a time, from each owner in its turn.

    owner changed ─> index written ─> owner waits here ─> texts without a vector ─> model ─> vector cache

Only owners wait, never texts: what is missing is asked of the index and the cache, so that nothing is embedded twice
and a kill loses nothing. Queries go first. A model that is gone or fails is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.errors import LorekeeperError
from sidecar.memory.record_store import lock_order
from sidecar.search.meaning import Meanings
from sidecar.search.near_duplicates import NearDuplicates
from sidecar.search.owner_texts import OwnerTexts, Wanted
from sidecar.search.vector_garbage import VectorGarbage
from sidecar.search.vector_maker import VectorMaker
from sidecar.settings import SearchSettings
from sidecar.storage.keys import ActorId

# So long background work gives way to queries that never end; then a few texts are embedded beside them.
_MOST_WAIT = 0.1
_FEW = 2
_FIRST_PAUSE, _MOST_PAUSE = 0.5, 30.0
_SHARE = 8
_WINDOW = 2_048


class EmbeddingQueue:
    """``changed`` and ``opened`` may be called from any thread; everything else belongs to the event loop."""

    def __init__(
        self,
        engine: EmbeddingEngine,
        texts: OwnerTexts,
        maker: VectorMaker,
        near: NearDuplicates,
        garbage: VectorGarbage,
        meanings: Meanings,
        owners_of: Callable[[str], Iterable[ActorId]],
        loop: asyncio.AbstractEventLoop | None,
        limits: SearchSettings,
        report: Report,
    ) -> None:
        """``owners_of`` tells the owners of a save."""
        self._engine = engine
        self._texts = texts
        self._maker = maker
        self._near = near
        self._garbage = garbage
        self._meanings = meanings
        self._owners_of = owners_of
        self._loop = loop
        self._limits = limits
        self._report = report
        self._owners: OrderedDict[ActorId, list[Wanted]] = OrderedDict()
        self._more: set[ActorId] = set()
        self._saves: dict[str, int] = {}
        self._at_work: set[ActorId] = set()
        self._seen: set[str] = set()
        self._woken = asyncio.Event()
        self._pause = 0.0
        self._task: asyncio.Task[None] | None = None

    def changed(self, who: ActorId) -> None:
        """An owner may have texts without a vector."""
        self._call(self._add, who)

    def opened(self, save: str) -> None:
        """Any owner of a save may."""
        self._call(self._add_save, save)

    def model_changed(self) -> None:
        """A model is ready, or there is none any more: what is missing is asked anew, by saves."""
        self._pause = 0.0
        self._owners.clear()
        for save in self._seen:
            self._add_save(save)

    async def pending(self) -> int:
        """How many records wait for their vector; 0 without a model. Raises Unavailable."""
        return await asyncio.to_thread(self._count, self._at_work.union(self._owners), list(self._saves))

    def _count(self, owners: set[ActorId], saves: Iterable[str]) -> int:
        return sum(len(self._wanted(who)) for who in owners.union(*map(self._owners_of, saves)))

    async def close(self) -> None:
        """End; what is left is found again at the next start."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _call(self, add: Callable[..., None], what: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(add, what)

    def _add(self, who: ActorId) -> None:
        if who in self._owners or len(self._owners) < self._limits.max_embedding_owners:
            self._owners[who] = []  # what is missing is asked anew
        else:
            self._saves[who.save] = 0
        self._wake()

    def _add_save(self, save: str) -> None:
        self._seen.add(save)
        self._saves[save] = 0
        self._wake()

    def _wake(self) -> None:
        self._woken.set()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            while (self._owners or self._saves) and self._engine.identity is not None:
                await self._step()

    async def _step(self) -> None:
        """Embed one batch; where the model or the disk is at fault, try again after a pause that grows."""
        quiet = await self._meanings.quiet(at_most=_MOST_WAIT)
        self._at_work.clear()
        try:
            batch = await self._batch(self._limits.embedding_batch if quiet else _FEW)
            await self._maker.make(await asyncio.to_thread(self._texts.read, batch))
            await asyncio.to_thread(self._garbage.released, [one.text for one in batch])
            self._pause = 0.0
            await asyncio.to_thread(self._made, batch)
        except Exception as error:  # whatever it is, it is tried again: nobody else would
            for who in self._at_work:
                self._owners[who] = []  # what is missing is asked anew, this batch among it
            await self._wait_after(error)

    def _made(self, batch: Sequence[Wanted]) -> None:
        identity = self._engine.identity
        if identity is not None:
            self._near.look(identity, batch)

    async def _batch(self, most: int) -> list[Wanted]:
        """Texts of several owners, a few of each: who has many does not keep the others waiting."""
        if not self._owners:
            await self._take_save()
        batch: list[Wanted] = []
        for who in list(self._owners):
            room = most - len(batch)
            if not room:
                break
            batch += await self._share(who, min(room, _SHARE) if len(self._owners) > 1 else room)
        return batch

    async def _take_save(self) -> None:
        """Let the owners of a save wait here, so many of them at a time."""
        save, first = self._saves.popitem()
        owners = await asyncio.to_thread(lambda: sorted(self._owners_of(save), key=lock_order))
        end = first + self._limits.max_embedding_owners
        if end < len(owners):
            self._saves.setdefault(save, end)
        for who in owners[first:end]:
            self._owners.setdefault(who, [])

    async def _share(self, who: ActorId, count: int) -> list[Wanted]:
        """The next few texts of an owner, which goes to the end of the line if it has more."""
        wanted = self._owners.pop(who, [])
        self._at_work.add(who)
        if not wanted:
            wanted = await self._missing(who)
        if len(wanted) > count or who in self._more:
            self._owners.setdefault(who, wanted[count:])
        return wanted[:count]

    async def _missing(self, who: ActorId) -> list[Wanted]:
        """The texts of an owner that should get a vector, so many of them at a time."""
        self._more.discard(who)
        wanted = await asyncio.to_thread(self._wanted, who)
        if len(wanted) > _WINDOW:
            self._more.add(who)
        return wanted[:_WINDOW]

    def _wanted(self, who: ActorId) -> list[Wanted]:
        """All texts of an owner that should get a vector; none without a model."""
        identity = self._engine.identity
        found = self._texts.missing(who, identity) if identity else []
        return [one for one in found if not self._maker.has_failed(one.text)]

    async def _wait_after(self, error: Exception) -> None:
        self._pause = min(max(_FIRST_PAUSE, 2 * self._pause), _MOST_PAUSE)
        if self._pause == _FIRST_PAUSE:
            reason = str(error.reason) if isinstance(error, LorekeeperError) else type(error).__name__
            what = "texts could not be embedded in the background; that is tried again"
            self._report(Diagnostic("embedding_paused", what, Severity.WARNING, {"reason": reason}))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._woken.wait()
