"""Counting tokens: the two estimates, their calibration, and the exact counter."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.compaction.counters import Counters
from sidecar.compaction.tokens import (
    CalibratingCounter,
    CounterKind,
    HeuristicCounter,
    RememberingCounter,
    TokenizerCounter,
    next_scale,
)
from sidecar.errors import NotReady, Reason


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("x" * 500, 125)])
def test_the_heuristic_counts_a_quarter_of_the_characters_rounded_up(text, tokens):
    assert HeuristicCounter().count(text) == tokens


@given(st.text())
def test_only_an_empty_text_costs_nothing(text):
    for counter in (HeuristicCounter(), CalibratingCounter(), CalibratingCounter(0.5)):
        assert (counter.count(text) == 0) == (text == "")


@given(st.text(alphabet=st.characters(max_codepoint=0x3FF)))
def test_without_dense_scripts_and_calibration_both_estimates_agree(text):
    assert CalibratingCounter().count(text) == HeuristicCounter().count(text)


@pytest.mark.parametrize("letter", ["ж", "Ԁ", "ⷠ", "Ꙁ", "設", "サ", "마", "𠀋"])
def test_dense_scripts_cost_two_fifths_of_a_token_a_character(letter):
    assert CalibratingCounter().count(letter * 100) == 40


def test_the_scale_multiplies_the_estimate():
    assert CalibratingCounter(2.0).count("abcd" * 10) == 20


@pytest.mark.parametrize(("scale", "used"), [(9.0, 2.0), (0.0, 0.5), (-1.0, 0.5), (math.nan, 1.0), (math.inf, 1.0)])
def test_a_scale_outside_of_its_bounds_is_brought_inside(scale, used):
    assert CalibratingCounter(scale).count("abcd" * 100) == 100 * used


def test_a_report_moves_the_scale_by_a_tenth_of_the_difference():
    assert next_scale(1.0, estimated=100, reported=150) == pytest.approx(1.05)


@given(st.floats(0.5, 2.0), st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_scale_never_leaves_its_bounds(scale, estimated, reported):
    assert 0.5 <= next_scale(scale, estimated=estimated, reported=reported) <= 2.0


@pytest.mark.parametrize(("estimated", "reported"), [(0, 10), (10, 0), (-1, 10)])
def test_a_report_that_says_nothing_leaves_the_scale(estimated, reported):
    assert next_scale(1.3, estimated=estimated, reported=reported) == 1.3


def test_repeated_reports_lead_to_the_true_number():
    scale = 1.0
    for _ in range(200):
        estimated = CalibratingCounter(scale).count("x" * 4_000)
        scale = next_scale(scale, estimated=estimated, reported=1_500)
    assert CalibratingCounter(scale).count("x" * 4_000) == pytest.approx(1_500, rel=0.01)


def reported(counters: Counters, *factors: float) -> list[int]:
    """The count of one text after each report that a prompt took ``factor`` times what a quarter of it says."""
    counts = []
    for factor in factors:
        estimated = counters.best("m").count("x" * 4_000)
        counters.report("m", estimated=estimated, reported=int(1_000 * factor))
        counts.append(counters.best("m").count("x" * 4_000))
    return counts


def test_the_counters_follow_the_reports_to_within_a_step():
    counts = reported(Counters(), *[1.5] * 100)
    assert counts == sorted(counts)
    assert counts[0] > 1_000
    assert counts[-1] == pytest.approx(1_500, rel=0.05)


def test_reports_that_swing_around_the_truth_leave_the_counts_alone():
    assert set(reported(Counters(), *[1.1, 0.9] * 50)) == {1_000}


def test_a_remembering_counter_counts_the_same_and_tells_the_same_kind():
    counter = RememberingCounter(CalibratingCounter(), capacity=1_000)
    texts = ["one", "one", "двести", "three hundred", "x" * 900, *map(str, range(20)), "one"]
    assert [counter.count(text) for text in texts] == [CalibratingCounter().count(text) for text in texts]
    assert counter.kind is CounterKind.CALIBRATED


def word_tokenizer(folder: Path) -> Path:
    """A tokenizer.json that counts words."""
    vocabulary = {"[UNK]": 0, "the": 1, "sword": 2}
    file = folder / "tokenizer.json"
    file.write_text(
        json.dumps(
            {
                "version": "1.0",
                "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
                "padding": None,
                "added_tokens": [],
                "normalizer": None,
                "pre_tokenizer": {"type": "Whitespace"},
                "post_processor": None,
                "decoder": None,
                "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
            }
        ),
        encoding="utf-8",
    )
    return file


def test_a_tokenizer_file_counts_exactly_and_without_its_own_truncation(tmp_path):
    counter = TokenizerCounter(word_tokenizer(tmp_path))
    assert (counter.count("the sword " * 50), counter.count(""), counter.count(" ")) == (100, 0, 1)
    assert counter.kind is CounterKind.TOKENIZER


@pytest.mark.parametrize("content", [b"", b"{}", b"not json", b"\xff\xfe"])
def test_a_broken_tokenizer_file_is_told_with_what_to_do(tmp_path, content):
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content)
    with pytest.raises(NotReady) as told:
        TokenizerCounter(file)
    assert told.value.reason is Reason.TOKENIZER_UNUSABLE


def test_a_missing_tokenizer_file_is_told(tmp_path):
    with pytest.raises(NotReady):
        TokenizerCounter(tmp_path / "nothing.json")


def test_counting_by_estimate_imports_no_tokenizer():
    code = "import sys; from sidecar.compaction import tokens; tokens.CalibratingCounter().count('x'); "
    finished = subprocess.run([sys.executable, "-c", code + "sys.exit('tokenizers' in sys.modules)"], check=False)
    assert finished.returncode == 0
