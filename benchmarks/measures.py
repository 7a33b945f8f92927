"""Recall as numbers: the share of what should be found that stands among the first k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def means(recalls: Iterable[Sequence[float]]) -> list[float]:
    """The mean of each column."""
    return [float(mean) for mean in np.mean(list(recalls), axis=0)]


def table(head: Sequence[str], lines: Iterable[tuple[str, Sequence[float]]]) -> str:
    """A Markdown table of a name and three decimals a column."""
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    rows += [f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |" for name, values in lines]
    return "\n".join(rows)
