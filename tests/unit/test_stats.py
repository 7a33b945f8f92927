"""Counts and latencies of each method."""

from __future__ import annotations

from sidecar.daemon.stats import CallStats, MethodCount


def test_each_method_has_its_own_count_and_errors():
    stats = CallStats()
    stats.ended("a", 0.001, failed=False)
    stats.ended("a", 0.001, failed=True)
    stats.ended("b", 0.001, failed=False)
    assert {name: (one.count, one.errors) for name, one in stats.methods().items()} == {"a": (2, 1), "b": (1, 0)}


def test_percentiles_are_milliseconds_of_the_calls():
    count = MethodCount()
    count.durations.extend(number / 1_000 for number in range(1, 101))
    assert [count.percentile(share) for share in (0.5, 0.99, 1.0)] == [51, 100, 100]


def test_a_method_without_calls_has_no_latency():
    assert MethodCount().percentile(0.5) == 0


def test_only_the_last_durations_are_kept_and_all_calls_counted():
    stats = CallStats()
    for _ in range(5_000):
        stats.ended("a", 1.0, failed=False)
    assert stats.methods()["a"].count == 5_000
    assert len(stats.methods()["a"].durations) == 1_024
