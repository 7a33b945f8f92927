"""A turn in context: its neighbours of the same conversation lend it words and similarity."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.search.bm25 import Posting
from sidecar.search.context import (
    ALONE,
    DECAY,
    RADIUS,
    lengths_in_context,
    neighbours,
    posting_in_context,
    similarities_in_context,
)

PLACES = st.lists(st.tuples(st.sampled_from([ALONE, 0, 1]), st.integers(-4, 12)), max_size=14)
NUMBERS = st.floats(-1, 1, allow_nan=False) | st.just(math.nan)


def around_of(places):
    return neighbours(
        np.array([talk for talk, _ in places], np.int64), np.array([place for _, place in places], np.int64)
    )


def lent(places, one, other):
    """The weight that a row lends to another, by the rule in words."""
    (talk, place), (other_talk, other_place) = places[one], places[other]
    gap = abs(place - other_place)
    return DECAY**gap if talk == other_talk != ALONE and 1 <= gap <= RADIUS else 0.0


@given(PLACES)
def test_lengths_in_context_are_sums_over_the_neighbourhood(places):
    lengths = np.arange(1.0, len(places) + 1)
    expected = [
        lengths[one] + sum(lent(places, one, other) * lengths[other] for other in range(len(places)))
        for one in range(len(places))
    ]
    assert lengths_in_context(lengths, around_of(places)) == pytest.approx(expected)


@given(PLACES, st.data())
def test_words_in_context_are_sums_over_the_neighbourhood(places, data):
    counts = [data.draw(st.integers(0, 3)) for _ in places]
    rows = np.flatnonzero(counts)
    nearby = posting_in_context(Posting(rows, np.array(counts, float)[rows]), around_of(places))
    expected = [
        counts[one] + sum(lent(places, one, other) * counts[other] for other in range(len(places)))
        for one in range(len(places))
    ]
    assert dict(zip(nearby.rows.tolist(), nearby.counts, strict=True)) == pytest.approx(
        {row: count for row, count in enumerate(expected) if count}
    )


@given(PLACES, st.data())
def test_similarity_in_context_is_the_mean_over_the_neighbours_that_have_one(places, data):
    own = [data.draw(NUMBERS) for _ in places]
    found = similarities_in_context(np.array(own, float), around_of(places))
    for one in range(len(places)):
        weights = [1.0 if other == one else lent(places, one, other) for other in range(len(places))]
        known = [(weight, value) for weight, value in zip(weights, own, strict=True) if weight and value == value]
        total = sum(weight for weight, _ in known)
        expected = sum(weight * value for weight, value in known) / total if total else math.nan
        assert found[one] == pytest.approx(expected, nan_ok=True)


def test_records_that_stand_alone_have_no_neighbours():
    assert not around_of([(ALONE, 1), (ALONE, 2), (0, 1), (1, 2)]).exist


def test_the_ends_of_the_number_range_are_not_beside_each_other():
    assert not around_of([(0, -(2**63)), (0, 2**63 - 1)]).exist
