"""The ranking of ``docs/recall.md`` in plain Python, row by row and term by term: what tests compare with."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from sidecar.memory.moments import Moment
from sidecar.memory.records import RecordHead
from sidecar.search.channels import Weights
from sidecar.search.options import Fusion, Mode, Options


@dataclass(frozen=True)
class Row:
    """A record: its terms, its similarity to the query (None without a vector), its conversation (None) and place.

    Whose it is, and its head, where the order is asked for too.
    """

    words: Sequence[tuple[str, ...]]
    similarity: float | None = None
    conversation: Hashable | None = None
    ordinal: int = 0
    owner: str = ""
    head: RecordHead | None = None


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


def weights_of(options: Options, rows: Sequence[Row]) -> Weights:
    """The weights of the channels: those of the mode's defaults that the query does not give itself."""
    turns = any(lent(row, other) for row in rows for other in rows if other is not row)
    usual = (0.2, 0.5, 1.0, 1.0) if turns else (1.0, 0.5, 0.0, 0.0)
    if options.fusion is Fusion.RECIPROCAL_RANK:
        usual = (1.0, 1.0, 0.0, 0.0)
    asked = options.given
    named = (asked.words, asked.meaning, asked.context_words, asked.context_meaning)
    words, meaning_, near, meaning_near = (
        default if value is None else value for value, default in zip(named, usual, strict=True)
    )
    by_words, by_meaning = options.mode is not Mode.VECTOR, options.mode is not Mode.LEXICAL
    return Weights(words * by_words, meaning_ * by_meaning, near * by_words, meaning_near * by_meaning)


def tie(row: Row) -> tuple:
    """What decides between equal scores."""
    head = row.head
    return (-head.importance, -head.moment.tick, row.owner, head.record_id.encode("utf-16-be"))


def by_rank(words, rows: Sequence[Row], options: Options) -> list[float | None]:
    """Reciprocal rank: the weight over k plus the place, for each channel that found a row."""
    weights = weights_of(options, rows)
    lists = []
    for context, of_words, of_meaning in (
        (False, weights.words, weights.meaning),
        (True, weights.context_words, weights.context_meaning),
    ):
        scores = [score if score > 0 else None for score in bm25(words, rows, context=context)]
        floor = -2.0 if options.floor is None else options.floor
        values = [None if v is None or v < floor else v for v in meaning(rows, context=context)]
        lists += [(of_words, scores), (of_meaning, values)]
    totals: list[float | None] = [None] * len(rows)
    for weight, values in lists:
        found = [index for index, value in enumerate(values) if value is not None and weight > 0]
        for rank, index in enumerate(sorted(found, key=lambda i: (-values[i], tie(rows[i]))), 1):
            totals[index] = (totals[index] or 0.0) + weight / (options.rrf_k + rank)
    return totals


def reference_order(words, rows: Sequence[Row], options: Options, *, now: Moment | None) -> list[int]:
    """The rows that are found, in their final order."""
    if not words or not rows:
        return []
    weights = weights_of(options, rows)
    if options.fusion is Fusion.RECIPROCAL_RANK:
        scores, clear = by_rank(words, rows, options), 1 / (5 * (options.rrf_k + 1))
    else:
        scores, clear = fused(words, rows, weights, options.floor), 7.5
    clear *= max(weights.words, weights.meaning, weights.context_words, weights.context_meaning)
    found = [index for index, score in enumerate(scores) if score is not None]
    order = sorted(found, key=lambda index: (-round(scores[index], 9), tie(rows[index])))
    return order if options.order is None else reordered(order, rows, scores, clear, options.order, now)


def reordered(order, rows, scores, clear, options, now) -> list[int]:
    """Importance, recency and variety, chosen one by one; nobody moves by more than five places."""
    worth, place = {}, 0.0
    for number, index in enumerate(order):
        if number:
            gap = round(scores[order[number - 1]], 9) - round(scores[index], 9)
            place += min(1.0, max(0.05, gap / clear))
        head = rows[index].head
        worth[index] = int((len(order) - place) * options.source_order_weight + 0.5)
        worth[index] += int(head.importance * options.importance_weight + 0.5)
        if now and options.half_life_ticks and head.moment.tick <= now.tick:
            worth[index] += int(
                options.recency_weight * 0.5 ** ((now.tick - head.moment.tick) / options.half_life_ticks)
            )
    shift = 5 if options.source_order_weight else len(order)
    waiting, chosen = list(order), []
    while waiting and len(chosen) < options.max_greedy_selections:
        reach = [index for index in waiting if order.index(index) <= len(chosen) + shift]
        if order.index(waiting[0]) <= len(chosen) - shift:
            reach = waiting[:1]

        def value(index: int) -> int:
            alike = [likeness(rows[index].head, rows[one].head) for one in chosen]
            return worth[index] - options.diversity_penalty * max(alike, default=0)

        best = max(reach, key=lambda index: (value(index), -order.index(index)))
        chosen.append(best)
        waiting.remove(best)
    return chosen + waiting


def likeness(one: RecordHead, other: RecordHead) -> int:
    """Tags in common, and one each for scope and kind."""
    return len(set(one.tags) & set(other.tags)) + (one.scope == other.scope) + (one.kind == other.kind)
