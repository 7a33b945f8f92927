"""Which language stems which script, and which words say nothing: a save's language made into rules.

A save names one language; its texts may hold words of others. Each script has a usual language, and the save's own
takes the place of the one of its script: a save in English stems Cyrillic as Russian, one in Spanish stems Latin as
Spanish. Languages without a stemmer keep their words as they are.
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
    "arabic": "arabic",
    "armenian": "armenian",
    "devanagari": "hindi",
    "tamil": "tamil",
}
_SCRIPT = {
    "arabic": "arabic",
    "armenian": "armenian",
    "greek": "greek",
    "hindi": "devanagari",
    "nepali": "devanagari",
    "persian": "arabic",
    "russian": "cyrillic",
    "tamil": "tamil",
    "yiddish": "hebrew",
}
#: Languages that we take and leave unstemmed, with the script whose usual stemmer does not fit them ("" for none).
_UNSTEMMED = {
    "azerbaijani": "latin",
    "bulgarian": "cyrillic",
    "burmese": "",
    "chinese": "",
    "hebrew": "",
    "japanese": "",
    "khmer": "",
    "korean": "",
    "lao": "",
    "slovak": "latin",
    "thai": "",
    "ukrainian": "cyrillic",
    "urdu": "arabic",
    "vietnamese": "latin",
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

Stem = Callable[[str], str]


@dataclass(frozen=True)
class Languages:
    """The stemmer and the stop words of each script. Stemming is not safe in two threads at once: callers lock."""

    name: str
    version: str
    stems: Mapping[str, Stem]
    stop_words: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, language: str) -> Languages:
        """The rules for a save in the given language; ``InvalidInput`` when it is unknown."""
        name = canonical_name(language)
        by_script = languages_by_script(name)
        return cls(
            name=name,
            version=f"{name}/snowball-{_library_version()}",
            stems=MappingProxyType({script: _stemmer(own) for script, own in by_script.items()}),
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


def known_languages() -> frozenset[str]:
    """The names of all languages that a save may have."""
    return frozenset(_CODES.values())


def languages_by_script(name: str) -> dict[str, str]:
    """The stemmed language of each script in a save of the given language."""
    chosen = dict(_USUAL)
    if name in _UNSTEMMED:
        chosen.pop(_UNSTEMMED[name], None)
    else:
        chosen[_SCRIPT.get(name, "latin")] = name
    return chosen


def _stemmer(language: str) -> Stem:
    import snowballstemmer

    stem: Stem = snowballstemmer.stemmer(language).stemWord
    if language != "english":
        return stem
    return lambda word: stem(IRREGULAR.get(word, word))


def _library_version() -> str:
    from importlib.metadata import version

    return version("snowballstemmer")
