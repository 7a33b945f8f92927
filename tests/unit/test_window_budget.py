"""How a model's window is shared out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.compaction.budget import completion_reserve, share_window, summary_reserve, trigger_ratio


@pytest.mark.parametrize(
    ("allowance", "cap", "reserve"), [(9000, 0, 3000), (9000, 2048, 2048), (9000, 100_000, 3000), (0, 0, 0), (0, 9, 0)]
)
def test_the_summary_may_take_a_third_or_its_cap(allowance, cap, reserve):
    assert summary_reserve(allowance, cap) == reserve


@pytest.mark.parametrize(
    ("window", "wanted", "reserve"),
    [(8192, 0, 2048), (256, 0, 64), (8192, 512, 512), (8192, 10, 64), (8192, 8000, 4096)],
)
def test_the_answer_gets_what_was_asked_for_within_its_bounds(window, wanted, reserve):
    assert completion_reserve(window, wanted) == reserve


@given(
    st.integers(0, 200_000),
    st.integers(0, 50_000),
    st.integers(0, 10_000),
    st.integers(0, 5_000),
    st.integers(0, 100),
    st.booleans(),
)
def test_the_shares_never_exceed_the_window_unless_told(window, fixed, max_output, cap, overhead, summarize):
    budget = share_window(
        window=window,
        fixed=fixed,
        max_output=max_output,
        summary_cap=cap,
        summarize=summarize,
        summary_overhead=overhead,
    )
    around = overhead if budget.summary else 0
    total = budget.fixed + budget.completion + budget.slack + budget.summary + around + budget.history
    assert total <= budget.window or (budget.history, budget.slack, budget.summary) == (32, 0, 0)
    assert budget.history >= 32
    assert min(budget.completion, budget.slack, budget.summary) >= 0


def test_slack_is_given_back_before_the_recent_messages_go_below_their_floor():
    budget = share_window(window=1000, fixed=700, max_output=250)
    assert (budget.history, budget.slack) == (32, 18)


def test_fixed_parts_larger_than_the_window_leave_the_recent_messages_their_floor():
    budget = share_window(window=1000, fixed=2000, max_output=100)
    assert (budget.history, budget.excess(2_032), budget.excess(900)) == (32, 1_132, 0)


def test_a_tiny_window_counts_as_256_tokens():
    assert share_window(window=10, fixed=0).window == 256


def test_a_cap_on_recent_messages_has_a_floor_of_32():
    assert share_window(window=8192, fixed=0, recent_cap=5).history == 32
    assert share_window(window=8192, fixed=0, recent_cap=500).history == 500


def test_without_summaries_the_recent_messages_get_their_share():
    assert share_window(window=8192, fixed=0, summarize=False).summary == 0


@pytest.mark.parametrize("bad", [0.0, -1.0, 1.5, math.nan, math.inf])
def test_an_invalid_ratio_is_passed_over(bad):
    assert trigger_ratio(bad, 0.5) == 0.5
    assert trigger_ratio(bad, bad) == 0.8
