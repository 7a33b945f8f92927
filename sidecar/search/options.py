"""How one query is to be searched: channels, fusion, floor, order. Pure; what is not given takes the default."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

from sidecar.search.channels import EQUAL_WEIGHTS, Weights, default_weights
from sidecar.search.fusion import RRF_K
from sidecar.search.rerank import RerankOptions


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
    given: GivenWeights = field(default_factory=GivenWeights)
    floor: float | None = None
    order: RerankOptions | None = field(default_factory=RerankOptions)

    def by_words_only(self) -> Options:
        """The same where no vector can be had."""
        return replace(self, mode=Mode.LEXICAL)

    def weights(self, *, talks: bool) -> Weights:
        """The weight of each channel, by whether some rows are neighbours in a conversation; a mode takes the other
        channels out."""
        usual = EQUAL_WEIGHTS if self.fusion is Fusion.RECIPROCAL_RANK else default_weights(talks=talks)
        names = ("words", "meaning", "context_words", "context_meaning")
        given = {name: getattr(self.given, name) for name in names}
        weights = replace(usual, **{name: value for name, value in given.items() if value is not None})
        if self.mode is Mode.LEXICAL:
            weights = replace(weights, meaning=0.0, context_meaning=0.0)
        elif self.mode is Mode.VECTOR:
            weights = replace(weights, words=0.0, context_words=0.0)
        return weights
