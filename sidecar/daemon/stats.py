"""Counts and latencies of each method, from the last calls only; never anything of what was in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

_KEPT = 1_024


@dataclass(slots=True)
class MethodCount:
    """One method: calls ended, how many of them with an error, and the last 1,024 durations in seconds."""

    count: int = 0
    errors: int = 0
    durations: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def percentile(self, share: float) -> float:
        """The duration in milliseconds that ``share`` of the kept calls stay under; 0 where there are none."""
        ordered = sorted(self.durations)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1_000 if ordered else 0.0


class CallStats:
    """Written and read on the event loop alone."""

    def __init__(self) -> None:
        self._methods: dict[str, MethodCount] = {}
        self.running = 0

    def ended(self, method: str, seconds: float, *, failed: bool) -> None:
        """Count one call of ``method``, such as ``/lorekeeper.v1.MemoryService/GetDocument``."""
        counted = self._methods.setdefault(method, MethodCount())
        counted.count += 1
        counted.errors += failed
        counted.durations.append(seconds)

    def methods(self) -> Mapping[str, MethodCount]:
        return self._methods
