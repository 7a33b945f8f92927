"""Cuts a call into runs of the model: sorted by length, within the bounds, so that little padding is computed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_BYTES_OF_INPUTS = 3 * 8
_BYTES_OF_FLOAT = 4


@dataclass(frozen=True)
class BatchBounds:
    """The largest run: texts, tokens (padding not counted), and bytes of inputs and output."""

    texts: int
    tokens: int
    tensor_bytes: int
    dimensions: int


def tensor_bytes(texts: int, longest: int, dimensions: int) -> int:
    """Bytes of three int64 inputs and one float32 output for a padded batch."""
    return texts * longest * (_BYTES_OF_INPUTS + dimensions * _BYTES_OF_FLOAT)


def batches(lengths: Sequence[int], bounds: BatchBounds) -> list[list[int]]:
    """Positions of the texts, batch by batch, shortest first; a text over a bound stands alone."""
    runs: list[list[int]] = []
    tokens = 0
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[position]
        if runs and _fits(len(runs[-1]), tokens, length, bounds):
            runs[-1].append(position)
            tokens += length
        else:
            runs.append([position])
            tokens = length
    return runs


def _fits(count: int, tokens: int, length: int, bounds: BatchBounds) -> bool:
    """Whether one more text, the longest so far, may join a run of ``count`` texts."""
    return (
        count < bounds.texts
        and tokens + length <= bounds.tokens
        and tensor_bytes(count + 1, length, bounds.dimensions) <= bounds.tensor_bytes
    )
