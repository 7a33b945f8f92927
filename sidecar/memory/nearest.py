"""The lines of a document that are most like a text that was not found, so that the next try can be right."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NEAREST = 3
# Enough to recognise a line; the answer stays small enough for the headers that carry it.
_SHOWN_CHARS = 200
_LOOKED_AT = 2_000
# The exact comparison takes a millisecond a line, the one by letters a tenth of that.
_COMPARED = 50
_ALIKE = 0.5


@dataclass(frozen=True, slots=True)
class NearLine:
    """A line of the document, by its number from 1; a long one is cut and says by how much."""

    number: int
    text: str


def nearest_lines(text: str, wanted: str) -> list[NearLine]:
    """Up to three lines, the most alike first; among equals the earlier one.

    Likeness is difflib's ratio, without regard to case, of the lines that have the most letters in common. At most the
    first 2,000 lines with text are looked at.
    """
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(_comparable(next((line for line in wanted.split("\n") if line.strip()), wanted)))
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    rough = []
    for number, line in lines[:_LOOKED_AT]:
        matcher.set_seq1(_comparable(line))
        rough.append((-matcher.quick_ratio(), number, line))
    scored = []
    for bound, number, line in sorted(rough)[:_COMPARED]:
        matcher.set_seq1(_comparable(line))
        if -bound >= _ALIKE and (ratio := matcher.ratio()) >= _ALIKE:
            scored.append((-ratio, number, line))
    return [NearLine(number, _shown(line)) for _, number, line in sorted(scored)[:MAX_NEAREST]]


def _comparable(line: str) -> str:
    return line.strip().casefold()[:_SHOWN_CHARS]


def _shown(line: str) -> str:
    over = len(line) - _SHOWN_CHARS
    return line if over <= 0 else f"{line[:_SHOWN_CHARS]}…[+{over} chars]"
