"""The channels in plain Python: for few rows, where NumPy takes longer to begin than this takes to end, and for a
daemon that has no NumPy.

The formulas are those of ``bm25``, ``context``, ``channels`` and ``fusion``, row by row instead of column by column;
a property test says that both give the same. Only rows that were found are looked at: scores are dictionaries by row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan, sqrt
from typing import Any

from sidecar.search.bm25 import B_CONTEXT, K1, STAND_IN_WORTH, B, rarity, whole_score
from sidecar.search.channels import (
    BEST_WORDS,
    EMPHASIS_OF_WORDS,
    FULL_ANSWER,
    LEAST_SPREAD,
    SIMILARITY_DECIMALS,
    Weights,
)
from sidecar.search.context import ALONE, DECAY, RADIUS
from sidecar.search.fusion import DECIMALS, RRF_K
from sidecar.search.terms import Word

Scores = dict[int, float]
#: For each row that has neighbours: who they are, and at which weight they lend to it.
Lenders = Mapping[int, Sequence[tuple[int, float]]]


@dataclass(frozen=True)
class PlainLexicon:
    """The words of the rows: for each of a query's terms how often each row holds it, and each row's length."""

    postings: Mapping[str, Mapping[int, float]]
    lengths: Sequence[float]


@dataclass(frozen=True)
class PlainChannel:
    """What one way of finding says: the score of each row that it found, and, as far as it knows rows, how far each
    stands out. ``below`` are the scores of rows that count though it did not find them; ``places`` those of the rows
    that it found, where only places count."""

    scores: Scores
    normalised: Scores
    weight: float
    below: Scores = field(default_factory=dict)
    places: Mapping[int, int] | None = None

    def of(self, row: int) -> tuple[float, int, float] | None:
        """Score, place (equal ones share theirs unless places count) and normalised score of a row; None for one that
        does not count."""
        score = self.scores.get(row, self.below.get(row))
        return None if score is None else (score, self._place(row, score), self.normalised[row])

    def _place(self, row: int, score: float) -> int:
        if self.places is not None:
            return self.places[row]
        return 1 + len(self._ascending) - bisect_right(self._ascending, score)

    @cached_property
    def _ascending(self) -> list[float]:
        return sorted([*self.scores.values(), *self.below.values()])


def bm25(words: Iterable[Word], lexicon: PlainLexicon, *, b: float = B) -> Scores:
    """The score of each row that holds a word of the query."""
    scores: Scores = {}
    sizes = [length if length > 1.0 else 1.0 for length in lexicon.lengths]
    total = len(sizes)
    mean = sum(sizes) / total if sizes else 1.0
    for word in words:
        best: Scores = {}
        for term in word:
            posting = lexicon.postings.get(term, {})
            worth = rarity(total, len(posting)) * (1.0 if term == word[0] else STAND_IN_WORTH)
            for row, count in posting.items():
                damping = K1 * (1 - b + b * sizes[row] / mean)
                score = worth * count * (K1 + 1) / (count + damping)
                if score > best.get(row, 0.0):
                    best[row] = score
        for row, score in best.items():
            scores[row] = scores.get(row, 0.0) + score
    return scores


def words_channels(
    words: Sequence[Word], lexicon: PlainLexicon, lenders: Lenders, weights: Weights
) -> dict[str, PlainChannel]:
    """Own words and words in context, by the names of ``Weights``; those of weight 0 are left out."""
    whole = whole_score(words, lexicon.postings, len(lexicon.lengths))
    channels = {}
    if weights.words:
        channels["words"] = _words_channel(bm25(words, lexicon), whole, weights.words)
    if weights.context_words:
        scores = bm25(words, in_context(lexicon, lenders), b=B_CONTEXT)
        channels["context_words"] = _words_channel(scores, whole, weights.context_words)
    return channels


def meaning_channels(
    similarities: Sequence[float], lenders: Lenders, weights: Weights, *, floor: float | None = None
) -> dict[str, PlainChannel]:
    """Own meaning and meaning in context, by the names of ``Weights``; those of weight 0 are left out. Similarities are
    NaN for rows without a vector."""
    known = {row: value for row, value in enumerate(similarities) if not isnan(value)}
    channels = {}
    if weights.meaning:
        channels["meaning"] = _meaning_channel(known, weights.meaning, floor)
    if weights.context_meaning:
        near = _similarities_in_context(known, lenders)
        channels["context_meaning"] = _meaning_channel(near, weights.context_meaning, floor)
    return channels


def neighbours(conversations: Sequence[int], ordinals: Sequence[int]) -> Lenders:
    """Who stands beside whom, by the number of each row's conversation (ALONE for none) and its place in it."""
    rows = [row for row, conversation in enumerate(conversations) if conversation != ALONE]
    rows.sort(key=lambda row: (conversations[row], ordinals[row]))
    beside = (pair for step in range(1, RADIUS + 1) for pair in zip(rows, rows[step:], strict=False))
    pairs = [
        (one, other, DECAY**gap)
        for one, other in beside
        if conversations[one] == conversations[other] and 1 <= (gap := ordinals[other] - ordinals[one]) <= RADIUS
    ]
    lenders = defaultdict(list)
    for earlier, later, weight in pairs:
        lenders[later].append((earlier, weight))
    for earlier, later, weight in pairs:
        lenders[earlier].append((later, weight))
    return lenders


def in_context(lexicon: PlainLexicon, lenders: Lenders) -> PlainLexicon:
    """The lexicon when each row also holds, at their weight, the words of its neighbours."""
    own = lexicon.lengths
    lengths = [
        length + sum(weight * own[other] for other, weight in lenders[row]) if row in lenders else length
        for row, length in enumerate(own)
    ]
    postings = {term: _posting_in_context(posting, lenders) for term, posting in lexicon.postings.items()}
    return PlainLexicon(postings, lengths)


def weighted_sum(channels: Collection[PlainChannel]) -> Scores:
    """The fused score of each row that a channel found."""
    totals = {row: 0.0 for channel in channels for row in channel.scores}
    for channel in channels:
        for row in totals:
            totals[row] += channel.weight * channel.normalised.get(row, 0.0)
    return {row: round(total, DECIMALS) for row, total in totals.items()}


def by_rank(channel: PlainChannel, tie: Callable[[int], Any], *, k: float = RRF_K) -> PlainChannel:
    """A channel of which only the places count; of rows with equal scores the one with the lesser ``tie`` comes
    first."""
    order = sorted((-score, tie(row), row) for row, score in channel.scores.items())
    places = {row: place for place, (_, _, row) in enumerate(order, 1)}
    shares = {row: 1 / (k + place) for row, place in places.items()}
    return PlainChannel(channel.scores, shares, channel.weight, places=places)


def _words_channel(scores: Scores, whole: float, weight: float) -> PlainChannel:
    best = max(max(scores.values(), default=0.0), FULL_ANSWER * whole)
    normalised = {row: BEST_WORDS * (score / best) ** EMPHASIS_OF_WORDS for row, score in scores.items()}
    return PlainChannel(scores, normalised, weight)


def _meaning_channel(similarities: Scores, weight: float, floor: float | None) -> PlainChannel:
    scores = {row: round(min(1.0, max(-1.0, value)), SIMILARITY_DECIMALS) for row, value in similarities.items()}
    if not scores:
        return PlainChannel({}, {}, weight)
    mean = sum(scores.values()) / len(scores)
    spread = max(sqrt(sum((score - mean) ** 2 for score in scores.values()) / len(scores)), LEAST_SPREAD)
    distances = {row: (score - mean) / spread for row, score in scores.items()}
    normalised = {row: distance * sqrt(abs(distance)) for row, distance in distances.items()}
    if floor is None:
        return PlainChannel(scores, normalised, weight)
    found = {row: score for row, score in scores.items() if score >= floor}
    below = {row: score for row, score in scores.items() if score < floor}
    return PlainChannel(found, normalised, weight, below)


def _posting_in_context(posting: Mapping[int, float], lenders: Lenders) -> dict[int, float]:
    counts = dict(posting)
    for row, count in posting.items():
        for other, weight in lenders.get(row, ()):
            counts[other] = counts.get(other, 0.0) + weight * count
    return counts


def _similarities_in_context(known: Scores, lenders: Lenders) -> Scores:
    """The weighted mean of each row's similarity and its neighbours', as far as they are known."""
    means = {}
    for row in known | dict.fromkeys(lenders, 0.0):
        near = [(1.0, row), *((weight, other) for other, weight in lenders.get(row, ()))]
        lent = [(weight, known[other]) for weight, other in near if other in known]
        if lent:
            means[row] = sum(weight * value for weight, value in lent) / sum(weight for weight, _ in lent)
    return means
