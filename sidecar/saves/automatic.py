"""Checkpoints that are made by themselves, for saves whose settings ask for them: after so many minutes or ticks of
game time, and only where something changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import LorekeeperError
from sidecar.memory.moments import Moment
from sidecar.saves.access import NO_DEADLINE, SaveAccess
from sidecar.saves.checkpoint import Checkpoint, Kind, Wish
from sidecar.saves.save_files import SaveFiles
from sidecar.saves.save_settings import SaveSettingsStore
from sidecar.saves.settings_rules import effective_settings


class AutomaticCheckpoints:
    """Looks every ``poll_seconds`` from :meth:`start` to :meth:`close`."""

    def __init__(
        self,
        files: SaveFiles,
        settings: SaveSettingsStore,
        access: SaveAccess,
        report: Report,
        *,
        poll_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._settings = settings
        self._access = access
        self._report = report
        self._poll_seconds = poll_seconds
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look; on the event loop."""
        self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        """Look no more; a checkpoint that has begun is finished."""
        if self._task is not None:
            self._task.cancel()

    async def make_due(self) -> None:
        """Make every checkpoint that is due now."""
        for save in await self._access.of_none(lambda: list(self._files.saves())):
            try:
                if await self._access.of_none(partial(self._due, save)):
                    await self._access.still(save, NO_DEADLINE, partial(self._make, save))
            except LorekeeperError as error:
                details = {"reason": str(error.reason)}
                told = Diagnostic("automatic_checkpoint_failed", error.message, Severity.WARNING, details)
                self._report(told)
        self._access.later(self._files.sweep)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._poll_seconds)
            await self.make_due()

    def _wanted(self, save: str) -> Any:
        settings = effective_settings(self._settings.read(save))
        return settings.automatic_checkpoints if settings.HasField("automatic_checkpoints") else None

    def _due(self, save: str) -> Wish | None:
        """The checkpoint that is to be made now; None where none is."""
        wanted = self._wanted(save)
        if wanted is None:
            return None
        newest = next(self._files.checkpoints.of_save(save), None)
        if newest is not None and newest.state == self._files.last_state(save):
            return None  # nothing has changed
        if wanted.HasField("every_ticks") and (moment := self._moment_due(save, wanted.every_ticks)) is not None:
            return Wish(moment=moment, kind=Kind.AUTOMATIC)
        late = newest is None or self._clock() - newest.created >= 60 * wanted.every_minutes
        return Wish(kind=Kind.AUTOMATIC) if wanted.HasField("every_minutes") and late else None

    def _moment_due(self, save: str, ticks: int) -> Moment | None:
        """A moment so many ticks after the newest checkpoint on its timeline; those from before a restore count not."""
        epoch = self._files.last_state(save).epoch
        kept = [kept.wish.moment for kept in self._files.checkpoints.of_save(save) if kept.state.epoch == epoch]
        for moment in self._files.latest(save):
            newest = next((one for one in kept if one and one.timeline == moment.timeline), None)
            if newest is None or moment.tick - newest.tick >= ticks:
                return moment
        return None

    def _make(self, save: str) -> Checkpoint | None:
        wish = self._due(save)
        if wish is None:
            return None  # somebody made one while this one waited
        made = self._files.checkpoint(save, wish)
        self._files.keep_newest(save, Kind.AUTOMATIC, self._wanted(save).keep)
        return made
