"""The account of a search: which steps it took, how long each was, how much each looked at and passed on."""

from __future__ import annotations

from collections.abc import Callable

from sidecar.search.outcome import Stage, StageReport


class Stages:
    """Each step takes the time since the one before."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.told: list[StageReport] = []
        self._clock = clock
        self._begun = clock()

    def add(self, stage: Stage, scanned: int, candidates: int, *, reused: bool = False) -> None:
        """A step has ended now."""
        now = self._clock()
        self.took(stage, (now - self._begun) * 1_000, scanned, candidates, reused=reused)
        self._begun = now

    def took(self, stage: Stage, milliseconds: float, scanned: int, candidates: int, *, reused: bool = False) -> None:
        """A step was taken elsewhere."""
        self.told.append(StageReport(stage, milliseconds, scanned, candidates, reused))
