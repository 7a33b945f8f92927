"""Which script a word is written in, and which characters make up words: tables only, no text passes through here.

The tables are short on purpose: a script is listed when its words need a rule of their own (no spaces between
words, a stemmer, accents that do not tell words apart). Everything else is plain words by Unicode.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right

#: Han, kana, Hangul: written without spaces (or, for Hangul, with endings glued on), one code point a syllable or more.
IDEOGRAPHIC = (
    "\u1100-\u11ff"  # Hangul jamo that do not compose
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b"  # Han radicals, 々, 〇, numerals
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana, with the long-vowel mark
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uac00-\ud7a3"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"  # historic kana, astral ideographs
)
#: Thai, Lao, Myanmar, Khmer and their neighbours: letters with combining vowels, no spaces between words.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai; its digits stay words, here as below
    "\u0e81-\u0ecf\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d"  # Burmese
    "\u1780-\u17d3\u17dc\u17dd"  # Khmer
    "\u1950-\u19cf\u1a20-\u1a7c"  # Tai Le, New Tai Lue, Tai Tham
)
#: Signs that change how a text looks and never what it says: soft hyphen, joiners, direction marks, emoji variants.
INVISIBLE = (
    "\u00ad\u034f\u061c\u0640\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\u20e3\ufe00-\ufe0f\ufeff"
)
#: Accents, vowel points and the like that are optional in writing: Latin, Greek, Cyrillic; Hebrew; Arabic.
ACCENTS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"

#: Hindi is written with or without the dot of borrowed sounds, and with either sign of a nasal vowel.
NUKTA, CHANDRABINDU, ANUSVARA = "\u093c", "\u0901", "\u0902"

_SCRIPTS = (
    (0x0000, "latin"),
    (0x0370, "greek"),
    (0x0400, "cyrillic"),
    (0x0530, "armenian"),
    (0x0590, "hebrew"),
    (0x0600, "arabic"),
    (0x0700, "other"),
    (0x0750, "arabic"),
    (0x0780, "other"),
    (0x08A0, "arabic"),
    (0x0900, "devanagari"),
    (0x0980, "other"),
    (0x0B80, "tamil"),
    (0x0C00, "other"),
    (0x1C80, "cyrillic"),
    (0x1C90, "other"),
    (0x1E00, "latin"),
    (0x1F00, "greek"),
    (0x2000, "other"),
    (0x2C60, "latin"),
    (0x2C80, "other"),
    (0xA640, "cyrillic"),
    (0xA6A0, "other"),
    (0xA720, "latin"),
    (0xA800, "other"),
)
_STARTS = tuple(start for start, _ in _SCRIPTS)


def script_of(word: str) -> str:
    """The script of a word's first character, as named in the table; ``other`` needs no rule of its own."""
    return _SCRIPTS[bisect_right(_STARTS, ord(word[0])) - 1][1]


#: Marks and signs lie below; above there are only ideographs and invisible tags.
_END_OF_MARKS = 0x20000


def characters(*categories: str) -> str:
    """All marks or signs of the given Unicode categories, to stand inside a regular expression's brackets."""
    points = map(chr, range(0x300, _END_OF_MARKS))
    return "".join(point for point in points if unicodedata.category(point) in categories)
