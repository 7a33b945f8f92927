"""Moves acknowledged records from the inboxes to their owners' journals, behind the calls."""

from __future__ import annotations

from sidecar.diagnostics import Report
from sidecar.memory.record_store import RecordStore
from sidecar.storage.background import Background

_OWNERS_AT_ONCE = 64
_DELAY_SECONDS = 0.2


class RecordMover:
    """Begins a moment after a change, and works until the inboxes are empty: a few owners of each save in turn. What is
    left at the end of the daemon is moved when the save is used again."""

    def __init__(self, store: RecordStore, report: Report) -> None:
        self._store = store
        self._round: list[str] = []
        self._background = Background(
            "record mover", self._work, delay_seconds=_DELAY_SECONDS, report=report, urgent=store.waits_long
        )
        store.listen(lambda _: self._background.wake())

    def close(self) -> None:
        """Finish the owners that have begun."""
        self._background.close()

    def _work(self) -> bool:
        self._round = self._round or self._store.waiting_saves()
        if self._round:
            self._store.flush(self._round.pop(0), most=_OWNERS_AT_ONCE)
        return bool(self._round or self._store.waiting_saves())
