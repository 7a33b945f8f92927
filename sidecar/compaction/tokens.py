"""Counting tokens: two estimates and, where a model's ``tokenizer.json`` is at hand, the exact number.

A counter says what kind it is, so that every count can be told with its origin. It never keeps more than a bounded
number of texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sidecar.errors import NotReady, Reason

MIN_SCALE = 0.5
MAX_SCALE = 2.0
LEARNING_RATE = 0.1
# What remembering a text costs beside the text itself.
_ENTRY_CHARS = 100

_ASCII = bytes(range(128))
_DENSE = re.compile(
    "[\u0400-\u052f\u2de0-\u2dff\ua640-\ua69f"  # Cyrillic
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u2e80-\u2fdf\u3000-\u303f\u3100-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han and its signs
    "\U00020000-\U0003ffff]+"
)


class CounterKind(StrEnum):
    """Who counted."""

    HEURISTIC = "heuristic"
    CALIBRATED = "calibrated"
    TOKENIZER = "tokenizer"


class TokenCounter(Protocol):
    """Counts the tokens of a text; a message costs its content and nothing else."""

    @property
    def kind(self) -> CounterKind:
        """Who counts."""

    def count(self, text: str) -> int:
        """Tokens of ``text``; 0 only for an empty text."""


class HeuristicCounter:
    """Four characters a token, rounded up."""

    kind = CounterKind.HEURISTIC

    def count(self, text: str) -> int:
        """A quarter of the text's code points."""
        return -(-len(text) // 4)


class CalibratingCounter:
    """An estimate that knows dense scripts and is scaled by what a model's backend has reported."""

    kind = CounterKind.CALIBRATED

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = clamp_scale(scale)

    def count(self, text: str) -> int:
        """A quarter of a token for each code point, two fifths in Cyrillic and East Asian scripts, scaled."""
        if not text:
            return 0
        dense = 0 if text.isascii() else sum(map(len, _DENSE.findall(_beyond_ascii(text))))
        weight = (5 * len(text) + 3 * dense) / 20
        return max(1, math.ceil(weight * self._scale - 1e-9))


def _beyond_ascii(text: str) -> str:
    """What is left without ASCII, which is most of many texts: much faster than to look at each character."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


class TokenizerCounter:
    """The exact number, by a Hugging Face ``tokenizer.json``. Special tokens are not counted."""

    kind = CounterKind.TOKENIZER

    def __init__(self, file: Path) -> None:
        """Raises ``NotReady`` when the file or the ``tokenizers`` package is missing or unusable."""
        self._encode = _load_encoder(file)

    def count(self, text: str) -> int:
        """The number of ids that the tokenizer gives, at least 1 for a text that is not empty."""
        return max(1, self._encode(text)) if text else 0


class RememberingCounter:
    """A counter that remembers the newest texts, because a history is counted again at every turn.

    It keeps at most ``capacity`` code points of them.
    """

    def __init__(self, counter: TokenCounter, *, capacity: int = 2_000_000) -> None:
        self.kind = counter.kind
        self._counter = counter
        self._capacity = capacity
        self._known: dict[str, int] = {}
        self._chars = 0

    def count(self, text: str) -> int:
        """The remembered number, or a fresh count."""
        known = self._known.get(text)
        if known is None:
            known = self._counter.count(text)
            self._remember(text, known)
        return known

    def _remember(self, text: str, tokens: int) -> None:
        size = len(text) + _ENTRY_CHARS
        if self._chars + size > self._capacity:
            self._known.clear()
            self._chars = 0
        if size <= self._capacity // 8:
            self._known[text] = tokens
            self._chars += size


def clamp_scale(scale: float) -> float:
    """The scale within its bounds; anything that is no number counts as 1."""
    if not math.isfinite(scale):
        return 1.0
    return min(MAX_SCALE, max(MIN_SCALE, scale))


def next_scale(scale: float, *, estimated: int, reported: int) -> float:
    """The scale after a backend reported the true number for a prompt that was estimated with ``scale``."""
    if estimated <= 0 or reported <= 0:
        return scale
    target = scale * reported / estimated
    return clamp_scale(scale + LEARNING_RATE * (target - scale))


def _load_encoder(file: Path) -> Callable[[str], int]:
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_buffer(file.read_bytes())
    except ImportError as error:
        raise _unusable("the tokenizers package is not installed") from error
    except Exception as error:  # the package raises bare exceptions for bad files
        raise _unusable("the file cannot be read as a tokenizer") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _unusable(why: str) -> NotReady:
    return NotReady(
        f"Tokens cannot be counted exactly: {why}. Give the backend a tokenizer.json, or leave it out.",
        reason=Reason.TOKENIZER_UNUSABLE,
    )
