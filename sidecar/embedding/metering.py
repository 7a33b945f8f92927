"""Measures one call: how it ended, how long each part took. An observer that fails changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sidecar.embedding.admission import Lane
from sidecar.embedding.provider import Embedded
from sidecar.embedding.stats import EmbeddingStats, Operation, OperationMetrics
from sidecar.errors import LorekeeperError, Reason

Observer = Callable[[OperationMetrics], None]


@dataclass
class Call:
    """Filled in by the one who works; what is missing at the end stays zero."""

    lane: Lane | None = None
    embedded: Embedded | None = None
    cut_texts: int = 0


class Meter:
    """Feeds the figures and an observer."""

    def __init__(self, stats: EmbeddingStats, observer: Observer) -> None:
        self._stats = stats
        self._observer = observer

    @contextmanager
    def measured(self, operation: Operation) -> Iterator[Call]:
        """Records the block's outcome and lets its error go on."""
        call = Call()
        started = time.monotonic()
        failure: Reason | None = None
        try:
            yield call
        except BaseException as error:
            failure = reason_of(error)
            raise
        finally:
            self._record(_metrics(operation, call, failure, time.monotonic() - started))

    def _record(self, metrics: OperationMetrics) -> None:
        self._stats.record(metrics)
        try:
            self._observer(metrics)
        except Exception:  # an observer never changes a result
            return


def reason_of(error: BaseException) -> Reason:
    if isinstance(error, LorekeeperError):
        return error.reason
    ended = isinstance(error, asyncio.CancelledError | GeneratorExit)
    return Reason.EMBEDDING_CANCELLED if ended else Reason.INTERNAL


def _metrics(operation: Operation, call: Call, failure: Reason | None, total: float) -> OperationMetrics:
    queue = call.lane.waited if call.lane else 0.0
    embedded = call.embedded
    if embedded is None:
        return OperationMetrics(operation, failure=failure, total=total, queue=queue)
    return OperationMetrics(
        operation,
        failure=failure,
        total=total,
        queue=queue,
        tokenization=embedded.tokenization,
        inference=embedded.inference,
        texts=len(embedded.tokens),
        batch_sizes=embedded.batch_sizes,
        tokens=sum(embedded.tokens),
        cut_texts=call.cut_texts,
    )
