"""Texts to terms: the one tokenizer of the search room, for documents and for queries.

    "The wolves of İstanbul'da 重跑gen-itgc后 🐺"  ->  wolv istanbul da 重 重跑 跑 gen itgc 后 🐺

It must find a word in the form in which a player types it: other case, other width, another accent form, another
ending. It must never guess a language from a text, read a file, or give two texts different treatment: the same
text and language always yield the same terms.

* Text is folded first: NFKC, case, invisible signs.
* Words are runs of letters, digits, ``_`` and combining marks. They are stemmed by their script: each script has a
  language, and the save's language takes the place of its own script's one. ``iron_sword`` also yields its parts.
* Latin words keep their accents (they tell words apart) and, when they have some, are there without them as well.
* Han, kana and Hangul yield each code point and each pair; Thai, Lao, Khmer and Burmese yield pairs and triples of
  letters, since nothing marks where their words end.
* An emoji is a term, whatever its skin tone and variant.

A term holds only lower-case ASCII letters, ASCII digits, ``_`` and characters beyond ASCII, none of them a space.
So ``" ".join(terms)`` passes unchanged through FTS5 with ``tokenize = "ascii tokenchars '_'"`` (that tokenizer takes
every character beyond ASCII as part of a word and changes none of them; ``unicode61`` would split at signs and at
letters younger than its tables).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice

from sidecar.search.languages import Languages
from sidecar.search.scripts import ACCENTS, IDEOGRAPHIC, INVISIBLE, UNSPACED, characters, script_of

#: Changes whenever the same text yields other terms; the index is then built again.
TERMS_VERSION = "1"

MAX_CHARS = 100_000
MAX_TERMS = 4_096
CACHED_WORDS = 65_536

_ASCII_WORD = re.compile("[a-z0-9_]+")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_ACCENTS = re.compile(f"[{ACCENTS}]")
_LETTERS = str.maketrans({"ı": "i", "ł": "l", "đ": "d", "ð": "d", "ø": "o", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"})


@dataclass(frozen=True)
class Analysis:
    """The terms of a text, in order and with repetitions; ``cut`` tells that a limit left some of the text out."""

    terms: tuple[str, ...]
    cut: bool


class Analyzer:
    """Turns texts into terms for one language (a name such as ``german`` or a code such as ``de``).

    Safe to share between threads. Words are remembered (65,536 at most), because stemming is slow and words repeat.
    Raises ``InvalidInput`` for a language that it does not know.
    """

    def __init__(self, language: str = "english") -> None:
        self._languages = Languages.of(language)
        self._turkic = self._languages.name in {"turkish", "azerbaijani"}
        self._lock = threading.Lock()
        self._word = lru_cache(maxsize=CACHED_WORDS)(self._analyse_word)

    @property
    def version(self) -> str:
        """Names everything that the terms depend on; terms of two versions are never mixed."""
        return f"{TERMS_VERSION}/{self._languages.version}"

    def terms(self, text: str) -> list[str]:
        """The terms of a document."""
        return list(self.analyse(text).terms)

    def query_terms(self, text: str) -> list[str]:
        """The terms of a query, each once, in the order of the text. Empty when nothing in the text can be found."""
        return list(dict.fromkeys(self.analyse(text).terms))

    def analyse(self, text: str) -> Analysis:
        """The terms of the first 100,000 code points, at most 4,096 of them."""
        terms = tuple(islice(self._stream(self._fold(text[:MAX_CHARS])), MAX_TERMS + 1))
        cut = len(text) > MAX_CHARS or len(terms) > MAX_TERMS
        return Analysis(terms[:MAX_TERMS], cut)

    def _fold(self, text: str) -> str:
        if text.isascii() and not self._turkic:
            return text.lower()
        return fold(text.replace("I", "ı") if self._turkic else text)

    def _stream(self, folded: str) -> Iterator[str]:
        if folded.isascii():
            for word in _ASCII_WORD.findall(folded):
                yield from self._word(word)
            return
        for ideographs, unspaced, word, sign in _pattern().findall(folded):
            if word:
                yield from self._word(word)
            elif ideographs:
                yield from ideograph_terms(ideographs)
            elif unspaced:
                yield from unspaced_terms(unspaced)
            else:
                yield sign

    def _analyse_word(self, word: str) -> tuple[str, ...]:
        if "_" not in word.strip("_"):
            return self._forms(word)
        parts = [form for part in word.split("_") if part for form in self._forms(part)]
        return (plain(word), *parts)

    def _forms(self, word: str) -> tuple[str, ...]:
        script = script_of(word)
        if self._languages.is_stop_word(script, word):
            return ()
        bare = plain(word)
        with self._lock:
            stem = self._languages.stem(script, word)
            if script != "latin" or bare == word:
                return (plain(stem),)
            return tuple(dict.fromkeys((stem, self._languages.stem(script, bare))))


def fold(text: str) -> str:
    """The form in which texts are compared: NFKC, without case and without invisible signs."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _INVISIBLE.sub("", folded).replace("i\u0307", "i")


def plain(word: str) -> str:
    """The word without optional accents, with ASCII digits; vowel signs that are letters in all but name stay."""
    if word.isascii():
        return word
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word)).translate(_LETTERS)
    digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in bare)
    return unicodedata.normalize("NFC", digits)


def ideograph_terms(run: str) -> Iterator[str]:
    """Each code point, and each pair after its second: 一只猫 -> 一 只 一只 猫 只猫."""
    previous = ""
    for character in run:
        yield character
        if previous:
            yield previous + character
        previous = character


def unspaced_terms(run: str) -> Iterator[str]:
    """Pairs and triples of code points of a run without spaces; a run of one yields itself."""
    yield from grams(run, 2) if len(run) > 1 else (run,)
    yield from grams(run, 3)


def grams(run: str, size: int) -> Iterable[str]:
    """All substrings of the given size, in order."""
    return (run[start : start + size] for start in range(len(run) - size + 1))


@cache
def _pattern() -> re.Pattern[str]:
    """Four kinds of runs: ideographs, letters without spaces, words, single signs. Built when first needed."""
    special = IDEOGRAPHIC + UNSPACED
    marks = re.escape(characters("Mn", "Mc", "Me"))
    word = rf"[^\W{special}](?:[^\W{special}]|[{marks}])*"
    return re.compile(f"([{IDEOGRAPHIC}]+)|([{UNSPACED}]+)|({word})|([{characters('So')}])")
