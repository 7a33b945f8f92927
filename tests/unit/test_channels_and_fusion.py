"""Channels say what they found and how far it stands out; fusion makes one order of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.search.bm25 import Posting
from sidecar.search.channels import (
    ALONE_WEIGHTS,
    BEST_WORDS,
    TALK_WEIGHTS,
    Channel,
    Lexicon,
    Weights,
    default_weights,
    meaning_channel,
    meaning_channels,
    words_channel,
    words_channels,
)
from sidecar.search.context import ALONE, neighbours
from sidecar.search.fusion import (
    Standing,
    by_rank,
    clear_difference_of_ranks,
    clear_difference_of_sums,
    ranked,
    weighted_sum,
)

SCORES = st.lists(st.floats(-1, 1, allow_nan=False) | st.just(math.nan), min_size=1, max_size=12)


def channel(scores, weight=1.0):
    values = np.array(scores, float)
    return Channel(values, ~np.isnan(values), np.nan_to_num(values), weight)


def no_ties(count):
    return np.arange(count)


def test_reciprocal_rank_follows_the_worked_example():
    lexical = channel([3, 2, 1, math.nan])
    vector = channel([0.8, math.nan, 0.9, 0.7])
    fused = weighted_sum(by_rank(one, no_ties(4)) for one in (lexical, vector))
    assert fused == pytest.approx([0.0325224749, 0.0161290323, 0.0322664585, 0.0158730159], abs=1e-9)
    assert ranked(fused, no_ties(4)).tolist() == [0, 2, 1, 3]


@given(SCORES, st.data())
def test_reciprocal_rank_equals_a_brute_force_reference(first, data):
    second = [data.draw(st.floats(-1, 1) | st.just(math.nan)) for _ in first]
    expected = [0.0] * len(first)
    for weight, scores in ((1.0, first), (0.5, second)):
        held = [row for row, score in enumerate(scores) if score == score]
        for rank, row in enumerate(sorted(held, key=lambda row: (-scores[row], row)), start=1):
            expected[row] += weight / (60 + rank)
    fused = weighted_sum(by_rank(one, no_ties(len(first))) for one in (channel(first), channel(second, 0.5)))
    assert [0.0 if score == -math.inf else score for score in fused] == pytest.approx(expected, abs=1e-8)


@given(SCORES, st.integers(0, 14))
def test_the_best_rows_come_first_and_those_not_found_never(scores, limit):
    values = np.array([-math.inf if score != score else score for score in scores])
    ties = np.arange(len(scores))[::-1]
    expected = sorted(np.flatnonzero(values > -math.inf), key=lambda row: (-values[row], ties[row]))
    assert ranked(values, ties, limit=limit).tolist() == expected[:limit]
    assert ranked(values, ties).tolist() == expected


def test_ties_are_broken_by_importance_then_tick_then_owner_then_id():
    standing = Standing(
        importance=np.array([0.5, 0.5, 0.5, 0.5, 0.9]),
        ticks=np.array([-(2**63), 7, 7, 7, -(2**63)]),
        owners=np.array([0, 1, 0, 0, 0]),
        ids=np.array([0, 0, 2, 1, 3]),
    )
    assert ranked(np.zeros(5), standing.places()).tolist() == [4, 3, 2, 1, 0]


def test_a_weighted_sum_adds_normalised_scores_and_leaves_out_what_no_channel_found():
    words = words_channel(np.array([4.0, 0.0, 2.0]), 4.0, 1.0)
    meaning = meaning_channel(np.array([math.nan, math.nan, 0.9]), 0.5)
    fused = weighted_sum([words, meaning])
    assert fused.tolist() == pytest.approx([BEST_WORDS, -math.inf, BEST_WORDS * 0.5**1.25])


def test_a_channel_of_weight_zero_finds_nothing():
    assert weighted_sum([channel([1.0], weight=0.0)]).tolist() == [-math.inf]


def test_words_that_answer_little_of_the_query_do_not_stand_out():
    few = words_channel(np.array([1.0, 0.0]), 10.0, 1.0).normalised[0]
    most = words_channel(np.array([9.0, 0.0]), 10.0, 1.0).normalised[0]
    assert few < most / 2


def test_similarities_that_hardly_differ_stay_near_each_other():
    near, far = meaning_channel(np.array([0.710, 0.709]), 1.0).normalised
    assert abs(near - far) < 0.01


def test_rounding_of_a_processor_does_not_break_a_tie():
    scores = meaning_channel(np.array([0.7000001, 0.6999999, 0.2]), 1.0).scores
    assert scores[0] == scores[1]


def test_a_floor_leaves_out_what_is_less_similar():
    found = meaning_channel(np.array([0.5, 0.3, math.nan]), 1.0, floor=0.4).found
    assert found.tolist() == [True, False, False]


def test_a_channel_that_knows_no_row_is_silent():
    assert meaning_channel(np.array([math.nan, math.nan]), 1.0).normalised.tolist() == [0.0, 0.0]


def talk(*conversations):
    return neighbours(np.array(conversations, np.int64), np.arange(len(conversations), dtype=np.int64))


def test_the_default_weights_look_at_context_only_where_there_is_a_conversation():
    assert default_weights(talks=talk(ALONE, ALONE).exist) == ALONE_WEIGHTS
    assert default_weights(talks=talk(0, 0).exist) == TALK_WEIGHTS


def test_an_answer_is_found_by_the_question_before_it():
    """Row 1 says "since the war"; only row 0 asks about the painting. Row 3 stands alone."""
    lexicon = Lexicon({"paint": Posting(np.array([0]), np.array([1.0]))}, np.array([4.0, 3.0, 3.0, 3.0]))
    found = words_channels([("paint",)], lexicon, talk(0, 0, 5, 6), Weights(1, 1, 1, 1))
    assert found["words"].found.tolist() == [True, False, False, False]
    assert found["context_words"].found.tolist() == [True, True, False, False]


def test_a_meaning_in_context_is_drawn_from_its_neighbours():
    found = meaning_channels(np.array([0.9, 0.1, 0.1, 0.1]), talk(0, 0, 5, 6), Weights(1, 1, 1, 1))
    context = found["context_meaning"].scores
    assert context[1] > context[2] == 0.1


def test_a_channel_without_weight_is_not_computed():
    assert set(words_channels([], Lexicon({}, np.array([1.0])), talk(ALONE), ALONE_WEIGHTS)) == {"words"}
    assert set(meaning_channels(np.array([0.1]), talk(ALONE), ALONE_WEIGHTS)) == {"meaning"}


def test_a_clear_difference_grows_with_the_weights_and_not_with_the_number_of_hits():
    light, heavy = [channel([1.0])], [channel([1.0], weight=4.0), channel([1.0])]
    assert clear_difference_of_sums(heavy) == 4 * clear_difference_of_sums(light) == 2 * BEST_WORDS
    assert clear_difference_of_ranks(heavy) == 4 * clear_difference_of_ranks(light)
    assert clear_difference_of_ranks(light, k=0) == 0.2
