"""Which language stems which script, and which words say nothing: a save's language made into rules.

A save names one language or several; its texts may hold words of others. Each script has a usual language, and the
first that a save names in a script takes its place: a save in English stems Cyrillic as Russian, one in Spanish stems
Latin as Spanish, one in Ukrainian and German each as its own. Languages without a stemmer keep their words as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sidecar.errors import InvalidInput, Reason
from sidecar.search.irregular_words import IRREGULAR
from sidecar.search.stop_words import STOP_WORDS

_USUAL = {
    "latin": "english",
    "cyrillic": "russian",
    "greek": "greek",
    "hebrew": "hebrew",
    "arabic": "arabic",
    "armenian": "armenian",
    "devanagari": "hindi",
    "tamil": "tamil",
}
#: The script of each language that is not written in Latin; ``other`` for scripts without stemmed words.
_SCRIPT = {
    "arabic": "arabic",
    "armenian": "armenian",
    "bulgarian": "cyrillic",
    "burmese": "other",
    "chinese": "other",
    "greek": "greek",
    "hebrew": "hebrew",
    "hindi": "devanagari",
    "japanese": "other",
    "khmer": "other",
    "korean": "other",
    "lao": "other",
    "nepali": "devanagari",
    "persian": "arabic",
    "russian": "cyrillic",
    "tamil": "tamil",
    "thai": "other",
    "ukrainian": "cyrillic",
    "urdu": "arabic",
    "yiddish": "hebrew",
}
_CODES = {
    "ar": "arabic", "az": "azerbaijani", "bg": "bulgarian", "ca": "catalan", "cs": "czech", "da": "danish",
    "de": "german", "el": "greek", "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian",
    "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "he": "hebrew", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "ja": "japanese", "km": "khmer",
    "ko": "korean", "lo": "lao", "lt": "lithuanian", "my": "burmese", "nb": "norwegian", "ne": "nepali",
    "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sk": "slovak", "sr": "serbian", "st": "sesotho", "sv": "swedish", "ta": "tamil", "th": "thai",
    "tr": "turkish", "uk": "ukrainian", "ur": "urdu", "vi": "vietnamese", "yi": "yiddish", "zh": "chinese",
}  # fmt: skip

#: One-letter particles (and, in, for, the) that are written onto the next word, by language.
_PARTICLES = {"arabic": "وفبلك", "hebrew": "הובלכמש"}
_LETTERS_AFTER_PARTICLE = 3

Stem = Callable[[str], str]


@dataclass(frozen=True)
class Languages:
    """The stemmer and the stop words of each script. Stemming is not safe in two threads at once: callers lock."""

    by_script: Mapping[str, str]
    version: str
    stems: Mapping[str, Stem]
    stop_words: Mapping[str, frozenset[str]]
    particles: Mapping[str, str]

    @classmethod
    def of(cls, *languages: str) -> Languages:
        """The rules for a save in the given languages; ``InvalidInput`` when one is unknown."""
        names = [canonical_name(language) for language in languages]
        by_script = languages_by_script(*names)
        unusual = [own for script, own in by_script.items() if _USUAL.get(script) != own]
        return cls(
            by_script=MappingProxyType(by_script),
            version=f"{'+'.join(unusual) or 'english'}/snowball-{_library_version()}",
            stems=MappingProxyType({script: _stemmer(own) for script, own in by_script.items()}),
            particles=MappingProxyType({script: _PARTICLES.get(own, "") for script, own in by_script.items()}),
            stop_words=MappingProxyType(
                {script: STOP_WORDS.get(own, frozenset()) for script, own in by_script.items()}
            ),
        )

    def stem(self, script: str, word: str) -> str:
        """The word's stem, or the word where its script has no stemmer."""
        stem = self.stems.get(script)
        return (stem(word) or word) if stem else word

    def is_stop_word(self, script: str, word: str) -> bool:
        """Whether the word only holds sentences of its language together."""
        return word in self.stop_words.get(script, ())

    def has_particle(self, script: str, word: str) -> bool:
        """Whether the word may begin with a particle, and enough is left without it."""
        return len(word) > _LETTERS_AFTER_PARTICLE and word[0] in self.particles.get(script, "")


def canonical_name(language: str) -> str:
    """``de``, ``de-AT``, ``German`` -> ``german``."""
    lowered = language.strip().lower()
    name = _CODES.get(lowered.replace("_", "-").split("-")[0], lowered)
    if name not in known_languages():
        raise InvalidInput(
            f"the language is not known; use one of: {', '.join(sorted(known_languages()))}",
            reason=Reason.FIELD_INVALID,
            field="language",
        )
    return name


def is_known(code: str) -> bool:
    """Whether a save may name a language by this two-letter code."""
    return code in _CODES


def code_of(language: str) -> str:
    """The shortest code of a language: ``German`` -> ``de``. Raises InvalidInput for one that is unknown."""
    name = canonical_name(language)
    return next(code for code, named in _CODES.items() if named == name)


def known_languages() -> frozenset[str]:
    """The names of all languages that a save may have."""
    return frozenset(_CODES.values())


def languages_by_script(*names: str) -> dict[str, str]:
    """The language of each script in a save of the given languages; the first of a script holds."""
    return _USUAL | {_SCRIPT.get(name, "latin"): name for name in reversed(names)}


def _stemmer(language: str) -> Stem:
    """The stemmer of a language; one that changes nothing where there is none."""
    import snowballstemmer

    if language not in snowballstemmer.algorithms():
        return str
    stem: Stem = snowballstemmer.stemmer(language).stemWord
    if language != "english":
        return stem
    return lambda word: stem(IRREGULAR.get(word, word))


def _library_version() -> str:
    from importlib.metadata import version

    return version("snowballstemmer")
