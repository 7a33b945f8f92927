"""The last word on the order of hits: importance, recency and variety, each worth a few places at most.

Relevance stays in charge. No hit ever moves by more than ``MAX_SHIFT`` places from the fused order, however heavy the
weights, and at the default weights only near-equal hits change places. So whoever needs N hits hands over the first
N + ``MAX_SHIFT``. Game time only, never a clock; whole numbers only, so that the same hits always come out in the same
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

#: The most places by which a hit can rise or fall; no bound where the fused order is given no weight.
MAX_SHIFT = 5
#: What a step down the fused order is worth at least, in places, however near two scores are.
LEAST_STEP = 0.05


@dataclass(frozen=True)
class RerankOptions:
    """The weights, each 0 to 10,000,000. ``half_life_ticks`` says what a tick means; without it there is no recency."""

    source_order_weight: int = 1_000_000
    importance_weight: int = 100_000
    recency_weight: int = 500_000
    diversity_penalty: int = 10_000
    half_life_ticks: int | None = None
    max_greedy_selections: int = 512


#: Where nothing else is asked for.
USUAL_ORDER = RerankOptions()


class Candidate(NamedTuple):
    """One hit, as far as reranking looks at it. Candidates are handed over in fused order."""

    place: float
    importance: float
    timeline: str
    tick: int
    scope: str
    kind: str
    tags: frozenset[str]


@dataclass(frozen=True)
class Now:
    """The moment of the query."""

    timeline: str
    tick: int


class Reranked(NamedTuple):
    """The new place of a candidate: its number in the fused order, from 0, and what it was given for what."""

    number: int
    source_order: int
    importance: int
    recency: int
    diversity: int

    @property
    def total(self) -> int:
        """What decides."""
        return self.source_order + self.importance + self.recency - self.diversity


class Reranker(Protocol):
    """Puts candidates, which come in fused order, into their final order; each once at most."""

    def __call__(
        self, candidates: Sequence[Candidate], options: RerankOptions, *, now: Now | None = None
    ) -> Sequence[Reranked]: ...


def places(scores: Sequence[float], clear_difference: float) -> list[float]:
    """How far down each of the descending scores stands: a whole place for a clear difference, a part for a lesser one.

    Evenly and clearly spaced scores stand at 0, 1, 2, and so on; equal ones stand ``LEAST_STEP`` apart.
    """
    found = [0.0] if scores else []
    for better, worse in pairwise(scores):
        found.append(found[-1] + min(1.0, max(LEAST_STEP, (better - worse) / clear_difference)))
    return found


def rerank(candidates: Sequence[Candidate], options: RerankOptions, *, now: Now | None = None) -> list[Reranked]:
    """All candidates in their new order. Beyond ``max_greedy_selections`` they keep the fused order."""
    judged = [_judge(candidate, len(candidates), options, now) for candidate in candidates]
    shift = MAX_SHIFT if options.source_order_weight else len(judged)
    variety = _Variety(candidates, options.diversity_penalty)
    worth = [sum(parts) for parts in judged]
    waiting = list(range(len(judged)))
    chosen: list[Reranked] = []
    while waiting and len(chosen) < options.max_greedy_selections:
        # Of equal ones the first, which stands highest in the fused order.
        best = max(_within_reach(waiting, len(chosen), shift), key=worth.__getitem__)
        chosen.append(Reranked(best, *judged[best], variety.penalties[best]))
        waiting.remove(best)
        if variety.is_new(best):
            for index, more in variety.choose(best, waiting):
                worth[index] -= more
    return chosen + [Reranked(index, *judged[index], 0) for index in waiting]


class _Variety:
    """What each waiting hit has most in common with any chosen one, as a penalty."""

    def __init__(self, candidates: Sequence[Candidate], penalty: int) -> None:
        self._candidates = candidates
        self._penalty = penalty
        self._traits = [(one.scope, one.kind, one.tags) for one in candidates]
        self._seen: set[tuple[str, str, frozenset[str]]] = set()
        self.penalties = [0] * len(candidates)

    def is_new(self, best: int) -> bool:
        """Whether choosing a hit changes anything: not if it is like an earlier one in all respects."""
        return self._penalty > 0 and self._traits[best] not in self._seen

    def choose(self, best: int, waiting: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Count a hit as chosen: which waiting ones lose by it, and how much."""
        chosen = self._candidates[best]
        self._seen.add(self._traits[best])
        for index in waiting:
            more = likeness(self._candidates[index], chosen) * self._penalty - self.penalties[index]
            if more > 0:
                self.penalties[index] += more
                yield index, more


def likeness(one: Candidate, other: Candidate) -> int:
    """How many tags two hits share, and one each for the same scope and the same kind."""
    return len(one.tags & other.tags) + (one.scope == other.scope) + (one.kind == other.kind)


def recency(candidate: Candidate, options: RerankOptions, now: Now | None) -> int:
    """The whole weight for what happens now, half of it a half-life ago, and so on.

    0 without a half-life, and for another timeline or the future.
    """
    if now is None or options.half_life_ticks is None:
        return 0
    if candidate.timeline != now.timeline or candidate.tick > now.tick:
        return 0
    half_lives = (now.tick - candidate.tick) / options.half_life_ticks
    return int(options.recency_weight * 0.5**half_lives)


def _within_reach(waiting: Sequence[int], place: int, shift: int) -> Sequence[int]:
    """The waiting hits that may take the place: none from too far below, and first the one that has fallen too far.

    All that were chosen so far stood at most ``shift`` below, so those that may be chosen now are the first to wait.
    """
    return waiting[:1] if waiting[0] <= place - shift else waiting[: shift + 1]


def _judge(candidate: Candidate, count: int, options: RerankOptions, now: Now | None) -> tuple[int, int, int]:
    """What a hit is given for its place in the fused order, its importance and its recency."""
    return (
        round_half_away((count - candidate.place) * options.source_order_weight),
        round_half_away(candidate.importance * options.importance_weight),
        recency(candidate, options, now),
    )


def round_half_away(value: float) -> int:
    """The nearest whole number; a half goes up. ``value`` is not negative."""
    return int(value + 0.5)
