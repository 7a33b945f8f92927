"""Keeps a model's reasoning out of what a game sees, while the text streams. No I/O.

    "<thi" "nk>He lies.</th" "ink>Welcome!"   ──>   "Welcome!"

Each family of models has tags of its own, and a server that does not know them leaves them in the text. A closing tag
without an opening one means that everything before it was reasoning: what was shown must be taken back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "[think]": "[/think]",
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
_ALL = (*_TAGS, *_TAGS.values())
_TAG = re.compile("|".join(map(re.escape, _ALL)), re.IGNORECASE)
_BEGINNINGS = frozenset(tag[:count] for tag in _ALL for count in range(1, len(tag)))
_LONGEST = max(map(len, _BEGINNINGS))


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
            if found[0].lower() in _TAGS:
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


def without_reasoning(text: str) -> str:
    """What may be shown of a whole text."""
    told = ReasoningFilter()
    return told.feed(text).text + told.finish().text


def _tag_begins(text: str) -> int:
    """How many characters at the end may be the start of a tag."""
    tail = text[-_LONGEST:].lower()
    starts = (place for place, letter in enumerate(tail) if letter in "<[" and tail[place:] in _BEGINNINGS)
    return len(tail) - next(starts, len(tail))
