"""How one query is to be searched: channels, fusion, floor, order. Pure; what is not given takes the default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from sidecar.search.channels import EQUAL_WEIGHTS, Weights, default_weights
from sidecar.search.fusion import RRF_K
from sidecar.search.rerank import USUAL_ORDER, RerankOptions


class Mode(IntEnum):
    """Which channels are used. The numbers are those of the contract."""

    LEXICAL = 1
    VECTOR = 2
    HYBRID = 3


class Fusion(IntEnum):
    """How channels become one order. The numbers are those of the contract."""

    RECIPROCAL_RANK = 1
    WEIGHTED = 2


@dataclass(frozen=True, slots=True)
class GivenWeights:
    """Weights of channels, None where the default is to be taken."""

    words: float | None = None
    meaning: float | None = None
    context_words: float | None = None
    context_meaning: float | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """``floor`` is the lowest similarity of what meaning alone finds; ``order`` None leaves the fused order."""

    mode: Mode = Mode.HYBRID
    fusion: Fusion = Fusion.WEIGHTED
    rrf_k: float = RRF_K
    given: GivenWeights = GivenWeights()
    floor: float | None = None
    order: RerankOptions | None = USUAL_ORDER

    def by_words_only(self) -> Options:
        """The same where no vector can be had."""
        return self if self.mode is Mode.LEXICAL else replace(self, mode=Mode.LEXICAL)

    def weights(self, *, talks: bool) -> Weights:
        """The weight of each channel, by whether some rows are neighbours in a conversation; a mode takes the other
        channels out."""
        usual = EQUAL_WEIGHTS if self.fusion is Fusion.RECIPROCAL_RANK else default_weights(talks=talks)
        given, by_words, by_meaning = self.given, self.mode is not Mode.VECTOR, self.mode is not Mode.LEXICAL
        return Weights(
            words=_either(given.words, usual.words) * by_words,
            meaning=_either(given.meaning, usual.meaning) * by_meaning,
            context_words=_either(given.context_words, usual.context_words) * by_words,
            context_meaning=_either(given.context_meaning, usual.context_meaning) * by_meaning,
        )


def _either(given: float | None, usual: float) -> float:
    return usual if given is None else given
