"""Reranking: relevance in charge; importance, recency and variety move a hit by a few places at most."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.search.channels import meaning_channel
from sidecar.search.fusion import clear_difference_of_sums, weighted_sum
from sidecar.search.rerank import MAX_SHIFT, Candidate, Now, RerankOptions, likeness, places, recency, rerank

PLAIN = Candidate(place=0, importance=0.5, timeline="main", tick=0, scope="personal", kind="fact", tags=frozenset())
NOW = Now("main", 100)


def hits(*changes):
    return [PLAIN._replace(**{"place": float(place), **change}) for place, change in enumerate(changes)]


def order(candidates, options=None, now=None):
    return [one.number for one in rerank(candidates, options or RerankOptions(), now=now)]


def test_without_a_moment_the_worked_totals_are_those_of_the_reference():
    judged = rerank(hits({}, {"importance": 0.9}, {}), RerankOptions())
    assert [(one.number, one.total) for one in judged] == [(0, 3_050_000), (1, 2_070_000), (2, 1_030_000)]


def test_variety_alone_follows_the_worked_example():
    options = RerankOptions(source_order_weight=0)
    twins = {"tags": frozenset("xy")}
    judged = rerank(
        hits({"importance": 1.0, **twins}, {**twins}, {"importance": 0.45, "scope": "world", "kind": "event"}), options
    )
    assert [(one.number, one.total) for one in judged] == [(0, 100_000), (2, 45_000), (1, 10_000)]


def test_near_equal_hits_change_places_by_importance():
    assert order(hits({"importance": 0.0}, {"importance": 1.0, "place": 0.05})) == [1, 0]


def test_importance_does_not_outweigh_a_clear_difference():
    assert order(hits({"importance": 0.0}, {"importance": 1.0})) == [0, 1]


def test_a_recent_hit_passes_near_equal_ones():
    options = RerankOptions(half_life_ticks=10)
    assert order(hits({"tick": 0}, {"tick": 100, "place": 0.3}), options, NOW) == [1, 0]


def test_a_hit_of_now_never_rises_by_fifty_places():
    old = [{"place": 0.05 * place} for place in range(60)]
    candidates = hits(*old, {"tick": 100, "place": 3.0})
    moved = order(candidates, RerankOptions(half_life_ticks=10, recency_weight=10_000_000), NOW)
    assert 60 - moved.index(60) == MAX_SHIFT


@pytest.mark.parametrize(
    ("changes", "now"),
    [
        ({"timeline": "other"}, NOW),
        ({"tick": 101}, NOW),
        ({}, None),
    ],
)
def test_a_moment_that_cannot_be_compared_has_no_recency(changes, now):
    assert recency(PLAIN._replace(**changes), RerankOptions(half_life_ticks=10), now) == 0


def test_recency_halves_every_half_life():
    options = RerankOptions(half_life_ticks=50)
    given_for = [recency(PLAIN._replace(tick=tick), options, NOW) for tick in (100, 50, 0)]
    assert given_for == [500_000, 250_000, 125_000]


def test_without_a_half_life_there_is_no_recency():
    assert recency(PLAIN._replace(tick=100), RerankOptions(), NOW) == 0


def test_clear_differences_are_whole_places_and_equal_scores_nearly_share_one():
    assert places([9.0, 6.0, 3.0, 3.0], 3.0) == [0.0, 1.0, 2.0, 2.05]
    assert places([], 3.0) == []


def test_the_more_important_of_two_nearly_equal_memories_comes_first():
    """From scores to order: a similarity that is better by a hundredth, against importance 1.0 instead of 0.0."""
    similar = meaning_channel(np.array([0.71, 0.70, 0.2, 0.1, 0.1]), 0.5)
    scores = sorted(weighted_sum([similar]), reverse=True)
    placed = places(scores, clear_difference_of_sums([similar]))
    candidates = [PLAIN._replace(place=place, importance=float(row == 1)) for row, place in enumerate(placed)]
    assert order(candidates)[:2] == [1, 0]


def test_past_the_greedy_limit_hits_keep_their_order():
    changed = hits({"importance": 0.0}, {"importance": 1.0, "place": 0.05}, {"importance": 0.0}, {"importance": 1.0})
    assert order(changed, RerankOptions(max_greedy_selections=1)) == [1, 0, 2, 3]


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        place=st.just(0.0),
        importance=st.floats(0, 1),
        timeline=st.sampled_from(["main", "other"]),
        tick=st.integers(-(10**12), 10**12),
        scope=st.sampled_from("ab"),
        kind=st.sampled_from("ef"),
        tags=st.frozensets(st.sampled_from("xyz")),
    ),
    max_size=30,
)


def with_places(candidates, steps):
    placed = places(list(range(len(candidates), 0, -1)), steps)
    return [one._replace(place=place) for one, place in zip(candidates, placed, strict=True)]


@given(CANDIDATES, st.floats(0.5, 40), st.integers(0, 10**7), st.integers(0, 10**7), st.integers(1, 10**6))
def test_every_hit_comes_out_once_and_none_moves_too_far(candidates, steps, recent, important, half_life):
    options = RerankOptions(recency_weight=recent, importance_weight=important, half_life_ticks=half_life)
    moved = order(with_places(candidates, steps), options, Now("main", 0))
    assert sorted(moved) == list(range(len(candidates)))
    assert all(abs(index - place) <= MAX_SHIFT for place, index in enumerate(moved))


@given(CANDIDATES, st.floats(0.5, 40), st.integers(1, 10**6), st.integers(1, 1_000))
def test_scaling_all_ticks_and_the_half_life_together_changes_nothing(candidates, steps, half_life, factor):
    placed = with_places(candidates, steps)
    scaled = [one._replace(tick=one.tick * factor) for one in placed]
    now = 10**11
    assert rerank(placed, RerankOptions(half_life_ticks=half_life), now=Now("main", now)) == rerank(
        scaled, RerankOptions(half_life_ticks=half_life * factor), now=Now("main", now * factor)
    )


@given(CANDIDATES, st.floats(0.5, 40), st.integers(0, 10**7), st.integers(0, 10**7))
def test_the_greedy_choice_equals_a_brute_force_reference(candidates, steps, important, penalty):
    placed = with_places(candidates, steps)
    options = RerankOptions(importance_weight=important, diversity_penalty=penalty)
    base = {one.number: one.total for one in rerank(placed, replace(options, diversity_penalty=0))}
    expected, left = [], list(range(len(placed)))
    while left:
        fallen = [index for index in left if len(expected) - index >= MAX_SHIFT]
        allowed = fallen[:1] or [index for index in left if index <= len(expected) + MAX_SHIFT]
        best = max(
            allowed,
            key=lambda i: (
                base[i] - penalty * max((likeness(placed[i], placed[c]) for c in expected), default=0),
                -i,
            ),
        )
        expected.append(best)
        left.remove(best)
    assert order(placed, options) == expected
