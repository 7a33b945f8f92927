"""The channels in plain Python: for few rows, where NumPy takes longer to begin than this takes to end, and for a
daemon that has no NumPy.

The formulas are those of ``bm25``, ``context``, ``channels`` and ``fusion``, row by row instead of column by column;
a property test says that both give the same. Only rows that were found are looked at: scores are dictionaries by row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
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


@dataclass(frozen=True)
class Around:
    """Who stands beside whom in a conversation: for each row that has neighbours, who they are and at which weight they
    lend to it. Of several rows at one place the first is named; ``shared`` has the others by that first one."""

    beside: Mapping[int, Sequence[tuple[int, float]]]
    shared: Mapping[int, Sequence[int]]

    @property
    def exist(self) -> bool:
        """Whether any row has a neighbour."""
        return bool(self.beside)


# How far off, and at which weight, neighbours lend.
_LENT = [(gap, DECAY ** abs(gap)) for side in (-1, 1) for gap in range(side, side * (RADIUS + 1), side)]
#: Where there are no conversations.
NOBODY = Around({}, {})


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
    words: Sequence[Word], lexicon: PlainLexicon, around: Around, weights: Weights
) -> dict[str, PlainChannel]:
    """Own words and words in context, by the names of ``Weights``; those of weight 0 are left out."""
    whole = whole_score(words, lexicon.postings, len(lexicon.lengths))
    channels = {}
    if weights.words:
        channels["words"] = _words_channel(bm25(words, lexicon), whole, weights.words)
    if weights.context_words:
        scores = bm25(words, in_context(lexicon, around), b=B_CONTEXT)
        channels["context_words"] = _words_channel(scores, whole, weights.context_words)
    return channels


def meaning_channels(
    similarities: Sequence[float], around: Around, weights: Weights, *, floor: float | None = None
) -> dict[str, PlainChannel]:
    """Own meaning and meaning in context, by the names of ``Weights``; those of weight 0 are left out. Similarities are
    NaN for rows without a vector."""
    known = {row: value for row, value in enumerate(similarities) if not isnan(value)}
    channels = {}
    if weights.meaning:
        channels["meaning"] = _meaning_channel(known, weights.meaning, floor)
    if weights.context_meaning:
        near = _similarities_in_context(known, around)
        channels["context_meaning"] = _meaning_channel(near, weights.context_meaning, floor)
    return channels


def neighbours(conversations: Sequence[Hashable], ordinals: Sequence[int]) -> Around:
    """Who stands beside whom, by the conversation of each row (ALONE for none) and its place in it."""
    standing = defaultdict[tuple[Hashable, int], list[int]](list)
    for row, (talk, ordinal) in enumerate(zip(conversations, ordinals, strict=True)):
        if talk != ALONE:
            standing[talk, ordinal].append(row)
    beside: dict[int, list[tuple[int, float]]] = {}
    for (talk, ordinal), rows in standing.items():
        near = ((standing.get((talk, ordinal + gap)), weight) for gap, weight in _LENT)
        if lent := [(others[0], weight) for others, weight in near if others]:
            beside.update(dict.fromkeys(rows, lent))
    return Around(beside, {rows[0]: rows[1:] for rows in standing.values() if len(rows) > 1})


def in_context(lexicon: PlainLexicon, around: Around) -> PlainLexicon:
    """The lexicon when each row also holds, at their weight, the words of its neighbours."""
    lent = _lent(dict(enumerate(lexicon.lengths)), around)
    lengths = [length + lent.get(row, 0.0) for row, length in enumerate(lexicon.lengths)]
    postings = {term: _posting_in_context(posting, around) for term, posting in lexicon.postings.items()}
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


def _posting_in_context(posting: Mapping[int, float], around: Around) -> dict[int, float]:
    counts = dict(posting)
    for row, lent in _lent(posting, around).items():
        counts[row] = counts.get(row, 0.0) + lent
    return counts


def _similarities_in_context(known: Scores, around: Around) -> Scores:
    """The weighted mean of each row's similarity and its neighbours', as far as they are known."""
    totals, weights = _lent(known, around), _lent(dict.fromkeys(known, 1.0), around)
    return {
        row: (known.get(row, 0.0) + totals.get(row, 0.0)) / ((row in known) + weights.get(row, 0.0))
        for row in known | weights
    }


def _lent(values: Mapping[int, float], around: Around) -> Scores:
    """What the neighbours of each row lend to it of their values; rows that are lent nothing are left out."""
    given = defaultdict[int, float](float)
    beside = around.beside
    for row, value in values.items():
        for other, weight in beside.get(row, ()):
            given[other] += weight * value
    for place, others in around.shared.items():
        if place in given:
            given.update(dict.fromkeys(others, given[place]))
    return given
