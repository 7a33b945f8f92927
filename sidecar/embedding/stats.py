"""Figures of the work with models: counts and percentiles of recent times. Never any text, nor anything made of one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from sidecar.errors import Reason

_RECENT = 512


class Operation(Enum):
    MODEL_LOAD = "model_load"
    QUERY = "query"
    DOCUMENTS = "documents"


@dataclass(frozen=True)
class OperationMetrics:
    """One finished call; ``failure`` is None when it succeeded. Times in seconds."""

    operation: Operation
    failure: Reason | None = None
    total: float = 0.0
    queue: float = 0.0
    tokenization: float = 0.0
    inference: float = 0.0
    texts: int = 0
    batch_sizes: tuple[int, ...] = ()
    tokens: int = 0
    cut_texts: int = 0


@dataclass(frozen=True)
class Latency:
    """Of the recent times, in seconds."""

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


@dataclass(frozen=True)
class WorkFigures:
    """Everything about one operation since the start; the latencies cover the last 512 successes."""

    operation: Operation
    count: int
    failures: dict[Reason, int]
    texts: int
    batches: int
    largest_batch: int
    tokens: int
    cut_texts: int
    total: Latency
    queue: Latency
    tokenization: Latency
    inference: Latency


@dataclass
class _Sums:
    count: int = 0
    texts: int = 0
    batches: int = 0
    largest_batch: int = 0
    tokens: int = 0
    cut_texts: int = 0
    failures: Counter[Reason] = field(default_factory=Counter)
    recent: deque[OperationMetrics] = field(default_factory=lambda: deque(maxlen=_RECENT))


class EmbeddingStats:
    """Written and read on the event loop only."""

    def __init__(self) -> None:
        self._sums = {operation: _Sums() for operation in Operation}

    def record(self, metrics: OperationMetrics) -> None:
        sums = self._sums[metrics.operation]
        sums.count += 1
        if metrics.failure is not None:
            sums.failures[metrics.failure] += 1
            return
        sums.texts += metrics.texts
        sums.batches += len(metrics.batch_sizes)
        sums.largest_batch = max(sums.largest_batch, *metrics.batch_sizes, 0)
        sums.tokens += metrics.tokens
        sums.cut_texts += metrics.cut_texts
        sums.recent.append(metrics)

    def figures(self) -> list[WorkFigures]:
        return [_figures(operation, sums) for operation, sums in self._sums.items()]


def latency(times: Sequence[float]) -> Latency:
    """Percentiles by nearest rank; all zero for no times."""
    if not times:
        return Latency()
    ordered = sorted(times)

    def at(percent: int) -> float:
        return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]

    return Latency(p50=at(50), p95=at(95), p99=at(99), longest=ordered[-1])


def _figures(operation: Operation, sums: _Sums) -> WorkFigures:
    return WorkFigures(
        operation=operation,
        count=sums.count,
        failures=dict(sums.failures),
        texts=sums.texts,
        batches=sums.batches,
        largest_batch=sums.largest_batch,
        tokens=sums.tokens,
        cut_texts=sums.cut_texts,
        total=latency([metrics.total for metrics in sums.recent]),
        queue=latency([metrics.queue for metrics in sums.recent]),
        tokenization=latency([metrics.tokenization for metrics in sums.recent]),
        inference=latency([metrics.inference for metrics in sums.recent]),
    )
