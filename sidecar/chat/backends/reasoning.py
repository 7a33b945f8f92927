"""Keeps a model's reasoning out of what a game sees, while the text streams. No I/O.

    "<thi" "nk>He lies.</th" "ink>Welcome!"   ──>   "Welcome!"

A closing tag without an opening one means that everything before it was reasoning: what was shown must be taken back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPEN = "<think>"
_CLOSE = "</think>"
_TAG = re.compile(f"{_OPEN}|{_CLOSE}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a piece of text adds; with ``reset``, all that was shown before it was reasoning."""

    text: str = ""
    reset: bool = False


class ReasoningFilter:
    """Feed it pieces of text; it gives back what is not reasoning."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._spoke = False

    def feed(self, text: str) -> Shown:
        """What may be shown now. The start of what may become a tag is held back."""
        self._held += text
        shown, reset = "", False
        while found := _TAG.search(self._held):
            before, self._held = self._held[: found.start()], self._held[found.end() :]
            if found[0].lower() == _OPEN:
                shown += "" if self._inside else before
                self._inside = True
            elif self._inside:
                self._inside = False
            else:
                shown, reset = "", True
        keep = _tag_begins(self._held)
        if not self._inside:
            shown += self._held[: len(self._held) - keep]
        self._held = self._held[len(self._held) - keep :]
        return self._begun(shown, reset)

    def finish(self) -> Shown:
        """The end: what was held back is text, unless a reasoning was never closed."""
        held, self._held = self._held, ""
        return self._begun("" if self._inside else held, False)

    def _begun(self, shown: str, reset: bool) -> Shown:
        """White space before the first word is left out: it stood behind the reasoning."""
        taken_back = reset and self._spoke
        if reset:
            self._spoke = False
        if not self._spoke:
            shown = shown.lstrip()
        self._spoke = self._spoke or bool(shown)
        return Shown(shown, taken_back)


def _tag_begins(text: str) -> int:
    """How many characters at the end may be the start of a tag."""
    start = text.rfind("<", max(0, len(text) - len(_CLOSE) + 1))
    if start < 0:
        return 0
    tail = text[start:].lower()
    return len(tail) if _OPEN.startswith(tail) or _CLOSE.startswith(tail) else 0
