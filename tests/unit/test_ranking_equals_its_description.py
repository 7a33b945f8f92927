"""The whole ranking, from words and similarities to fused scores, equals its description in plain Python."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_reference import Row, fused

from sidecar.search import plain_channels
from sidecar.search.bm25 import Posting
from sidecar.search.channels import Lexicon, Weights, meaning_channels, words_channels
from sidecar.search.context import ALONE, neighbours
from sidecar.search.fusion import by_rank, weighted_sum

WORDS = [("wolf",), ("gate", "gat…"), ("häuser", "hauser", "hause…"), ("bread",)]
WEIGHT = st.sampled_from([0.0, 0.2, 1.0, 3.0])
ROWS = st.lists(
    st.builds(
        Row,
        words=st.lists(st.sampled_from([*WORDS, ("hauser", "hause…"), ("gates", "gat…"), ("else",)]), max_size=6),
        similarity=st.none() | st.integers(-100, 100).map(lambda hundredths: hundredths / 100),
        conversation=st.none() | st.integers(0, 1),
        ordinal=st.integers(0, 9),
    ),
    min_size=1,
    max_size=9,
)


def lexicon_of(rows):
    held = defaultdict(list)
    for index, row in enumerate(rows):
        for term, count in Counter(term for word in row.words for term in word).items():
            held[term].append((index, float(count)))
    postings = {
        term: Posting(np.array([row for row, _ in at]), np.array([count for _, count in at]))
        for term, at in held.items()
    }
    return Lexicon(postings, np.array([float(len(row.words)) for row in rows]))


QUERY = st.lists(st.sampled_from(WORDS), unique=True)
WEIGHTS = st.builds(Weights, WEIGHT, WEIGHT, WEIGHT, WEIGHT)
FLOOR = st.none() | st.integers(-100, 100).map(lambda hundredths: hundredths / 100)


@settings(max_examples=150)
@given(ROWS, QUERY, WEIGHTS, FLOOR)
def test_fused_scores_equal_the_description(rows, words, weights, floor):
    around = neighbours(
        np.array([ALONE if row.conversation is None else row.conversation for row in rows], np.int64),
        np.array([row.ordinal for row in rows], np.int64),
    )
    similar = np.array([math.nan if row.similarity is None else row.similarity for row in rows])
    channels = words_channels(words, lexicon_of(rows), around, weights)
    channels |= meaning_channels(similar, around, weights, floor=floor)
    expected = fused(words, rows, weights, floor)
    found = list(weighted_sum(channels.values())) or [-math.inf] * len(rows)
    assert found == pytest.approx([-math.inf if score is None else score for score in expected], abs=1e-5)


@settings(max_examples=150)
@given(ROWS, QUERY, WEIGHTS, FLOOR)
def test_plain_channels_say_the_same_as_columns(rows, words, weights, floor):
    conversations = [ALONE if row.conversation is None else row.conversation for row in rows]
    ordinals = [row.ordinal for row in rows]
    similar = [math.nan if row.similarity is None else row.similarity for row in rows]
    lexicon = lexicon_of(rows)
    beside = plain_channels.neighbours(conversations, ordinals)
    around = neighbours(np.array(conversations, np.int64), np.array(ordinals, np.int64))
    postings = {
        term: dict(zip(posting.rows.tolist(), posting.counts.tolist(), strict=True))
        for term, posting in lexicon.postings.items()
    }
    plain = plain_channels.words_channels(
        words, plain_channels.PlainLexicon(postings, lexicon.lengths.tolist()), beside, weights
    ) | plain_channels.meaning_channels(similar, beside, weights, floor=floor)
    columns = words_channels(words, lexicon, around, weights)
    columns |= meaning_channels(np.array(similar), around, weights, floor=floor)
    assert beside.exist == around.exist
    for row in range(len(rows)):
        said = {name: channel.of(row) for name, channel in plain.items()}
        assert said == {name: nearly(channel.of(row)) for name, channel in columns.items()}
    ties = [0] * len(rows)
    sums = (weighted_sum(columns.values()), plain_channels.weighted_sum(plain.values()))
    ranks = (
        weighted_sum(by_rank(one, np.array(ties)) for one in columns.values()),
        plain_channels.weighted_sum([plain_channels.by_rank(one, ties.__getitem__) for one in plain.values()]),
    )
    for dense, sparse in (sums, ranks):
        assert {row: score for row, score in enumerate(dense) if score > -math.inf} == pytest.approx(sparse)


def nearly(said):
    return said and pytest.approx(said, rel=1e-9)
