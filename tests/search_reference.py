"""The ranking of ``docs/recall.md`` in plain Python, row by row and term by term: what tests compare with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.search.channels import Weights


@dataclass(frozen=True)
class Row:
    """A record: its terms, its similarity to the query (None without a vector), its conversation (None) and place."""

    words: Sequence[tuple[str, ...]]
    similarity: float | None = None
    conversation: int | None = None
    ordinal: int = 0


def lent(row: Row, other: Row) -> float:
    """What one turn lends to another."""
    gap = abs(row.ordinal - other.ordinal)
    same = row.conversation is not None and row.conversation == other.conversation
    return 0.7**gap if same and gap in (1, 2) else 0.0


def gathered(rows: Sequence[Row], own: Sequence[float]) -> list[float]:
    """Each row's number plus what its neighbours lend."""
    return [
        own[index] + sum(lent(row, other) * value for other, value in zip(rows, own, strict=True))
        for index, row in enumerate(rows)
    ]


def rarity(counts: Sequence[float]) -> float:
    """How rare a term is among the rows."""
    holding = sum(count > 0 for count in counts)
    return math.log(1 + (len(counts) - holding + 0.5) / (holding + 0.5))


def bm25(words, rows: Sequence[Row], *, context: bool) -> list[float]:
    """Own words, or words in context."""

    def counts(term: str) -> list[float]:
        own = [float(sum(term in word for word in row.words)) for row in rows]
        return gathered(rows, own) if context else own

    lengths = [float(len(row.words)) for row in rows]
    sizes = [max(1.0, size) for size in (gathered(rows, lengths) if context else lengths)]
    average, b = sum(sizes) / len(sizes), 0.4 if context else 0.75

    def term_score(term: str, index: int) -> float:
        count = counts(term)[index]
        return rarity(counts(term)) * count * 2.2 / (count + 1.2 * (1 - b + b * sizes[index] / average))

    return [
        sum(max((1.0 if term == word[0] else 0.7) * term_score(term, index) for term in word) for word in words)
        for index in range(len(rows))
    ]


def normalised_words(words, rows: Sequence[Row], scores: Sequence[float]) -> list[float]:
    """A share of the best answer."""
    whole = sum(rarity([float(any(word[0] in held for held in row.words)) for row in rows]) for word in words)
    best = max([*scores, 0.4 * whole])
    return [15 * (score / best) ** 1.25 if score > 0 else 0.0 for score in scores]


def meaning(rows: Sequence[Row], *, context: bool) -> list[float | None]:
    """Own similarity, or the weighted mean of it and the neighbours'."""
    found: list[float | None] = []
    for row in rows:
        near = [(1.0 if other is row else lent(row, other) * context, other.similarity) for other in rows]
        known = [(weight, value) for weight, value in near if weight and value is not None]
        total = sum(weight for weight, _ in known)
        found.append(round(sum(weight * value for weight, value in known) / total, 6) if known else None)
    return found


def normalised_meaning(values: Sequence[float | None]) -> list[float]:
    """Deviations from the mean, emphasised."""
    known = [value for value in values if value is not None]
    if not known:
        return [0.0] * len(values)
    mean = sum(known) / len(known)
    spread = max(0.05, math.sqrt(sum((value - mean) ** 2 for value in known) / len(known)))
    away = [0.0 if value is None else (value - mean) / spread for value in values]
    return [math.copysign(abs(distance) ** 1.5, distance) for distance in away]


def fused(words, rows: Sequence[Row], weights: Weights, floor: float | None = None) -> list[float | None]:
    """The score of each row; None where no channel found it."""
    totals, found = [0.0] * len(rows), [False] * len(rows)
    for context, of_words, of_meaning in (
        (False, weights.words, weights.meaning),
        (True, weights.context_words, weights.context_meaning),
    ):
        scores, values = bm25(words, rows, context=context), meaning(rows, context=context)
        parts = zip(normalised_words(words, rows, scores), normalised_meaning(values), strict=True)
        for index, (word_part, meaning_part) in enumerate(parts):
            value = values[index]
            totals[index] += of_words * word_part + of_meaning * meaning_part
            found[index] |= of_words > 0 and scores[index] > 0
            found[index] |= of_meaning > 0 and value is not None and (floor is None or value >= floor)
    return [total if hit else None for total, hit in zip(totals, found, strict=True)]
