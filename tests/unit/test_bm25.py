"""BM25 counts over the records that a query may see, and takes a word by the best of its terms."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.search.bm25 import K1, STAND_IN_WORTH, B, Posting, bm25, whole_score

TERMS = ["wolf", "gate", "gates", "gates…"]
WORDS = [("wolf",), ("gate", "gates", "gates…")]


def postings_of(rows):
    counted = [Counter(row) for row in rows]
    held = {term: [(row, count[term]) for row, count in enumerate(counted) if count[term]] for term in TERMS}
    return {
        term: Posting(np.array([row for row, _ in at]), np.array([float(count) for _, count in at]))
        for term, at in held.items()
        if at
    }


def reference(rows, words, b):
    lengths = [max(1, len(row)) for row in rows]
    average = sum(lengths) / len(lengths)

    def worth(word, term, row):
        holding = sum(term in other for other in rows)
        frequency = rows[row].count(term)
        rarity = math.log(1 + (len(rows) - holding + 0.5) / (holding + 0.5))
        saturated = frequency * (K1 + 1) / (frequency + K1 * (1 - b + b * lengths[row] / average))
        return (1.0 if term == word[0] else STAND_IN_WORTH) * rarity * saturated

    return [
        sum(max((worth(word, term, row) for term in word if term in rows[row]), default=0.0) for word in words)
        for row in range(len(rows))
    ]


@given(st.lists(st.lists(st.sampled_from([*TERMS, "other"]), max_size=8), min_size=1, max_size=12), st.floats(0, 1))
def test_scores_equal_the_formula_written_out(rows, b):
    lengths = np.array([float(len(row)) for row in rows])
    scores = bm25(WORDS, postings_of(rows), lengths, b=b)
    assert scores == pytest.approx(reference(rows, WORDS, b))


def test_the_worked_example_of_a_scoped_query_holds():
    """Two records of 10 and 6 words; both hold "apple", the longer one also "orchard", twice."""
    postings = {
        "orchard": Posting(np.array([0]), np.array([2.0])),
        "apple": Posting(np.array([0, 1]), np.array([1.0, 1.0])),
    }
    scores = bm25([("orchard",), ("apple",)], postings, np.array([10.0, 6.0]))
    assert scores + 0.5 == pytest.approx([1.555871575, 0.703092367])


def test_nothing_is_found_without_rows_or_words():
    assert bm25(WORDS, {}, np.array([])).tolist() == []
    assert bm25([], {}, np.array([3.0, 4.0])).tolist() == [0.0, 0.0]


def test_the_whole_score_is_that_of_a_row_of_average_length_with_every_word_once():
    rows = [["wolf", "gate", "a"], ["a", "b", "c"], ["a", "b", "c"]]
    best = bm25(WORDS, postings_of(rows), np.array([3.0, 3.0, 3.0]))[0]
    assert whole_score(WORDS, postings_of(rows), 3) == pytest.approx(best)


def test_the_constants_are_the_usual_ones():
    assert (K1, B) == (1.2, 0.75)
