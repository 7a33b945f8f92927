"""Counters and histories that the tests of compaction share."""

from __future__ import annotations

from sidecar.compaction.messages import Message
from sidecar.compaction.partition import WindowLimits
from sidecar.compaction.rollup import Policy
from sidecar.compaction.tokens import CounterKind


class FlatCounter:
    """Ten tokens a text, whatever it says."""

    kind = CounterKind.HEURISTIC

    def count(self, text):
        return 10 if text else 0


class CharCounter:
    """One token a character."""

    kind = CounterKind.HEURISTIC

    def count(self, text):
        return len(text)


def dialogue(count, *, first=1, text="msg{}"):
    """Messages of a player and an NPC in turn; the first says ``msg0``."""
    return [
        Message("user" if number % 2 else "assistant", text.format(number - 1), number)
        for number in range(first, first + count)
    ]


def policy(tokens, *, messages=30, ratio=0.8, cap=2048, reserve=10_000, **options):
    """A policy with a window of ``tokens``."""
    return Policy(WindowLimits(tokens, messages, ratio), summary_cap=cap, summary_reserve=reserve, **options)
