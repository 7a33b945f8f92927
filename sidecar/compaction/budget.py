"""How a model's window is shared out between the fixed parts, the answer, the summary and the recent messages.

    window = fixed (prefix, tail, line, tools) + answer + slack + summary + recent messages

When it is tight the slack is given back first; the recent messages keep a floor even if that overflows the window:
:meth:`Budget.excess` tells by how much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

WINDOW_FLOOR = 256
COMPLETION_FLOOR = 64
SLACK = 64
HISTORY_FLOOR = 32
DEFAULT_TRIGGER_RATIO = 0.8


@dataclass(frozen=True)
class Budget:
    """The shares of one window, in tokens."""

    window: int
    fixed: int
    completion: int
    slack: int
    summary: int
    history: int

    def excess(self, tokens: int) -> int:
        """By how much a prompt of so many tokens passes the window, with room for its answer."""
        return max(0, tokens + self.completion - self.window)


def share_window(
    *,
    window: int,
    fixed: int,
    max_output: int = 0,
    summary_cap: int = 0,
    recent_cap: int = 0,
    summarize: bool = True,
    summary_overhead: int = 0,
) -> Budget:
    """The shares of ``window`` tokens when ``fixed`` of them are taken. Caps of 0 are no caps.

    ``summary_overhead`` are the tokens of the words around a summary. They come out of what is free: a summary that
    keeps to its cap is sent whole.
    """
    window = max(WINDOW_FLOOR, window)
    completion = completion_reserve(window, max_output)
    room = window - fixed - completion
    slack = min(SLACK, max(0, room - HISTORY_FLOOR))
    allowance = max(HISTORY_FLOOR, room - slack)
    summary = summary_reserve(allowance, summary_cap) if summarize else 0
    summary = max(0, min(summary, allowance - HISTORY_FLOOR - summary_overhead))
    history = allowance - summary - (summary_overhead if summary else 0)
    if recent_cap > 0:
        history = min(history, max(HISTORY_FLOOR, recent_cap))
    return Budget(window, fixed, completion, slack, summary, history)


def completion_reserve(window: int, max_output: int) -> int:
    """Tokens kept free for the answer: what is asked for, else a quarter of the window; never above a half."""
    wanted = max_output if max_output > 0 else window // 4
    return min(max(COMPLETION_FLOOR, wanted), window // 2)


def summary_reserve(allowance: int, cap: int) -> int:
    """Tokens of the prompt that the summary may take: a third of what is free, or the explicit cap if lower."""
    third = max(0, allowance) // 3
    return min(third, cap) if cap > 0 else third


def trigger_ratio(*candidates: float) -> float:
    """The first of the ratios that is one: above 0 and up to 1."""
    for ratio in candidates:
        if math.isfinite(ratio) and 0 < ratio <= 1:
            return ratio
    return DEFAULT_TRIGGER_RATIO
