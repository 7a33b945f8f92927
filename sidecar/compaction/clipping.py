"""Shortening texts so that the reader sees it: every clip leaves a sign of how much went.

Lengths are code points, so no clip can tear a surrogate pair apart when a client reads the text as UTF-16.
"""

from __future__ import annotations

from collections.abc import Callable

from sidecar.compaction.tokens import TokenCounter

ELLIPSIS = "…"
# In how many steps a steady suffix of a text grows.
_STEPS = 8
# How far around the place that proportion tells a suffix is sought first.
_NEAR = 16


def clip(text: str, limit: int) -> str:
    """The first ``limit`` characters and a sign of what is missing. 0 leaves the sign; below 0 is no limit."""
    return clipped(text, limit)[0]


def clipped(text: str, limit: int) -> tuple[str, int]:
    """What ``clip`` makes of the text, and how many characters are missing."""
    if limit < 0 or len(text) <= limit:
        return text, 0
    kept = text[:limit].rstrip()
    missing = len(text) - len(kept)
    return kept + _sign(missing), missing


def clip_within(text: str, limit: int) -> str:
    """Like ``clip``, with the sign counted in: the answer has at most ``limit`` characters.

    A limit too small even for the sign gives the sign's beginning.
    """
    if len(text) <= limit:
        return text
    return clip(text, max(0, limit - len(_sign(len(text)))))[: max(0, limit)]


def newest_suffix(text: str, cap: int, counter: TokenCounter) -> str:
    """The end of the text that keeps to ``cap`` tokens, after an ellipsis. A cap of 0 or less is no cap.

    The answer keeps to the cap itself, so that it is not cut again the next time.
    """
    tokens = counter.count(text)
    if cap <= 0 or tokens <= cap:
        return text

    def fits(start: int) -> bool:
        end = text[start:].lstrip()
        return counter.count(end) < cap and counter.count(ELLIPSIS + end) <= cap

    likely = len(text) - len(text) * cap // tokens
    return ELLIPSIS + text[_first_true_near(fits, likely, len(text)) :].lstrip()


def steady_suffix(text: str, cap: int, counter: TokenCounter) -> str:
    """A suffix like the newest that keeps to the cap, which stays when cap or counts change a little.

    What is left of a window changes with every line of the player, and estimates are corrected with every answer. A
    copy that was cut anew each time would empty the model server's prompt cache at every turn.
    """
    newest = newest_suffix(text, cap, counter)
    step = max(1, len(text) // _STEPS)
    kept = len(newest) - len(ELLIPSIS)
    if newest == text or kept < step:
        return newest
    return ELLIPSIS + text[len(text) - kept + kept % step :].lstrip()


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def _sign(removed: int) -> str:
    return f"{ELLIPSIS}[+{removed} chars]"


def _first_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from ``low`` to ``high`` for which ``holds``, given that it holds from there on."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _first_true_near(holds: Callable[[int], bool], likely: int, end: int) -> int:
    """The same from 0 to ``end``, with few tries where it is near ``likely``: each try counts a whole text."""
    low, high = max(0, likely - _NEAR), min(end, likely + _NEAR)
    if not holds(high):
        return _first_true(holds, high, end)
    return _first_true(holds, 0 if holds(low) else low, high)
