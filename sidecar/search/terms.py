"""Texts to terms: the one tokenizer of the search room, for records and for queries.

    "The stolen wolf-pelts, 重跑gen-itgc后 🐺"
        -> [steal steal…] [wolf] [pelt] [重] [跑] [重跑] [gen] [itgc] [后] [🐺]

It must find a word in the form in which a player types it: other case, other width, another accent form, another
ending. It must never guess a language from a text, read a file, or treat two texts differently: the same text and
language always yield the same terms.

A *word* is the tuple of its terms: first itself, then what may stand in for it at a lower worth. A *term* is what the
index holds.

* Text is folded first: NFKC, case, invisible signs.
* Words are runs of letters, digits, ``_`` and combining marks, stemmed by their script: each script has a language,
  and the save's language takes the place of its own script's one. ``iron_sword`` also yields its parts as words.
* Latin words keep their accents (they tell words apart) and can be found without them as well.
* The first five letters of a longer word, marked with ``…``, stand in for it: endings, compounds and languages without
  a stemmer then still meet. So does an Arabic or Hebrew word without the particle that is written onto it.
* Han, kana and Hangul yield each code point and each pair; Thai, Lao, Khmer and Burmese yield pairs and triples of
  letters, since nothing marks where their words end.
* An emoji is a word, whatever its skin tone and variant.

A term holds only lower-case ASCII letters, ASCII digits, ``_`` and characters beyond ASCII, none of them a space.
So ``" ".join(terms)`` passes unchanged through FTS5 with ``tokenize = "ascii tokenchars '_'"``: that tokenizer takes
every character beyond ASCII as part of a word and changes none of them (``unicode61`` would split at signs and at
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
from sidecar.search.scripts import (
    ACCENTS,
    ANUSVARA,
    CHANDRABINDU,
    IDEOGRAPHIC,
    INVISIBLE,
    NUKTA,
    UNSPACED,
    characters,
    script_of,
)

#: Changes whenever the same text yields other terms; the index is then built again.
TERMS_VERSION = "2"

MAX_CHARS = 100_000
MAX_WORDS = 4_096
# One sign may stand for a whole word of kana, which is cut into letters and pairs.
_MOST_WORDS_OF_A_SIGN = 16
LONGEST_WORD = 128
CACHED_WORDS = 65_536
BEGINNING_LETTERS = 5
#: Ends a term that is only the beginning of a word; folding never leaves this sign in a text.
BEGINNING_MARK = "…"

Word = tuple[str, ...]

_ASCII_WORD = re.compile("[a-z0-9_]+")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_ACCENTS = re.compile(f"[{ACCENTS}]")
_LETTERS = str.maketrans({"ı": "i", "ł": "l", "đ": "d", "ð": "d", "ø": "o", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"})


@dataclass(frozen=True)
class Analysis:
    """The words of a text, in order and with repetitions; ``cut`` tells that a limit left some of the text out."""

    words: tuple[Word, ...]
    cut: bool

    @property
    def terms(self) -> list[str]:
        """All terms, for the index."""
        return [term for word in self.words for term in word]

    @property
    def length(self) -> int:
        """The length of the text in words, as BM25 counts it."""
        return len(self.words)


class Analyzer:
    """Turns texts into words for some languages (names such as ``german`` or codes such as ``de``), as a rule one.

    Safe to share between threads. Words are remembered (65,536 at most), because stemming is slow and words repeat.
    Of a word longer than 128 code points only those are looked at.
    Raises ``InvalidInput`` for a language that it does not know.
    """

    def __init__(self, *languages: str) -> None:
        self._languages = Languages.of(*languages)
        self._turkic = self._languages.by_script["latin"] in {"turkish", "azerbaijani"}
        self._lock = threading.Lock()
        self._remembered = lru_cache(maxsize=CACHED_WORDS)(self._split)

    @property
    def version(self) -> str:
        """Names everything that the terms depend on; terms of two versions are never mixed."""
        return f"{TERMS_VERSION}/{self._languages.version}"

    def analyse(self, text: str) -> Analysis:
        """The words of the first 100,000 code points, at most 4,096 of them."""
        words = tuple(islice(self._words(self._fold(text[:MAX_CHARS])), MAX_WORDS + 1))
        cut = len(text) > MAX_CHARS or len(words) > MAX_WORDS
        return Analysis(words[:MAX_WORDS], cut)

    def terms(self, text: str) -> list[str]:
        """The terms of a record, in order and with repetitions."""
        return self.analyse(text).terms

    def query(self, text: str) -> Analysis:
        """The words of a query, each once. None when nothing in the text can be found: then nothing is found."""
        analysis = self.analyse(text)
        return Analysis(tuple(dict.fromkeys(analysis.words)), analysis.cut)

    def _fold(self, text: str) -> str:
        if text.isascii() and not self._turkic:
            return text.lower()
        return fold(text.replace("I", "ı") if self._turkic else text)

    def _words(self, folded: str) -> Iterator[Word]:
        if folded.isascii():
            for word in _ASCII_WORD.findall(folded):
                yield from self._remembered(word[:LONGEST_WORD])
            return
        for ideographs, unspaced, word, sign in _pattern().findall(folded):
            if word:
                yield from self._remembered(word[:LONGEST_WORD])
            elif ideographs:
                yield from ((term,) for term in ideograph_terms(ideographs))
            elif unspaced:
                yield from ((term,) for term in unspaced_terms(unspaced))
            else:
                yield (sign,)

    def _split(self, run: str) -> tuple[Word, ...]:
        """The words of a run of letters: itself and, where ``_`` joins several, its parts."""
        parts = [part for part in run.split("_") if part]
        if len(parts) > 1:
            return ((plain(run),), *(word for part in parts for word in self._word(part)))
        return self._word(parts[0]) if parts else ()

    def _word(self, run: str) -> tuple[Word, ...]:
        """The one word that a run of letters is, or none where it is a stop word."""
        script = script_of(run)
        if self._languages.is_stop_word(script, run):
            return ()
        forms = self._latin_forms(run) if script == "latin" else [plain(self._stem(script, run))]
        start = beginning(forms[-1])
        if self._languages.has_particle(script, run):
            forms.append(plain(self._stem(script, run[1:])))
        return (tuple(dict.fromkeys((*forms, *start))),)

    def _latin_forms(self, run: str) -> list[str]:
        """The stem and, where accents are written, the stem of the word without them."""
        bare = plain(run)
        stem = self._stem("latin", run)
        return [stem] if bare == run else [stem, self._stem("latin", bare)]

    def _stem(self, script: str, run: str) -> str:
        with self._lock:
            return self._languages.stem(script, run)


def beginning(stem: str) -> Word:
    """The term of the stem's first five letters; none for shorter stems and for numbers."""
    if len(stem) < BEGINNING_LETTERS or any(map(str.isdecimal, stem)):
        return ()
    return (stem[:BEGINNING_LETTERS] + BEGINNING_MARK,)


def surely_whole(chars: int, *, plain: bool) -> bool:
    """Whether a text of so many code points, ``plain`` where all are ASCII, is short enough never to be cut."""
    return chars * (1 if plain else _MOST_WORDS_OF_A_SIGN) <= MAX_WORDS


def says_something(text: str) -> bool:
    """Whether a text holds a letter, a digit or a sign such as an emoji. Without one there is nothing to look for, by
    words or by meaning."""
    return any(letter.isalnum() or unicodedata.category(letter) == "So" for letter in text[:MAX_CHARS])


def fold(text: str) -> str:
    """The form in which texts are compared: NFKC, without case and without invisible signs."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = _INVISIBLE.sub("", folded).replace("i\u0307", "i")
    return folded.replace(NUKTA, "").replace(CHANDRABINDU, ANUSVARA)


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
