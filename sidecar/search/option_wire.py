"""Between the contract's options and ours: the request's win over the save's, those over the daemon's."""

from __future__ import annotations

from typing import Any

from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import save_pb2, search_pb2
from sidecar.search.channels import Weights
from sidecar.search.fusion import RRF_K
from sidecar.search.options import Fusion, GivenWeights, Mode, Options
from sidecar.search.rerank import RerankOptions
from sidecar.wire import enum_to

_MOST_WEIGHT = 10_000_000
_FUSION_RANGES: dict[str, tuple[float, float]] = {
    "rrf_k": (1, 1_000),
    "lexical_weight": (0, 100),
    "vector_weight": (0, 100),
    "context_lexical_weight": (0, 100),
    "context_vector_weight": (0, 100),
}
_RERANK_RANGES: dict[str, tuple[float, float]] = {
    "source_order_weight": (0, _MOST_WEIGHT),
    "importance_weight": (0, _MOST_WEIGHT),
    "recency_weight": (0, _MOST_WEIGHT),
    "diversity_penalty": (0, _MOST_WEIGHT),
    "half_life_ticks": (1, 2**63 - 1),
    "max_greedy_selections": (1, 4_096),
}


def options_from(request: search_pb2.SearchRequest, saved: save_pb2.SaveSettings) -> Options:
    """How to search. Raises InvalidInput for a value out of its range."""
    mode, floor = _enum(Mode, request.mode, Mode.HYBRID, "mode"), _floor(request, saved)
    given = [source for source in (saved, request) if source.HasField("fusion") or source.HasField("rerank")]
    if not given:
        return Options(mode=mode, floor=floor)
    _check(request.fusion, _FUSION_RANGES, "fusion")
    _check(request.rerank, _RERANK_RANGES, "rerank")
    fusion, order = search_pb2.FusionOptions(), search_pb2.RerankOptions()
    for source in given:
        fusion.MergeFrom(source.fusion)
        order.MergeFrom(source.rerank)
    return Options(
        mode=mode,
        fusion=_enum(Fusion, fusion.mode, Fusion.WEIGHTED, "fusion.mode"),
        rrf_k=fusion.rrf_k if fusion.HasField("rrf_k") else RRF_K,
        given=GivenWeights(
            words=_given(fusion, "lexical_weight"),
            meaning=_given(fusion, "vector_weight"),
            context_words=_given(fusion, "context_lexical_weight"),
            context_meaning=_given(fusion, "context_vector_weight"),
        ),
        floor=floor,
        order=_order(order),
    )


def fusion_to(options: Options, weights: Weights) -> search_pb2.FusionOptions:
    """The fusion that was used, with every value."""
    return search_pb2.FusionOptions(
        mode=enum_to(options.fusion),
        rrf_k=options.rrf_k,
        lexical_weight=weights.words,
        vector_weight=weights.meaning,
        context_lexical_weight=weights.context_words,
        context_vector_weight=weights.context_meaning,
    )


def order_to(order: RerankOptions | None) -> search_pb2.RerankOptions:
    """The reranking that was used, with every value."""
    if order is None:
        return search_pb2.RerankOptions(enabled=False)
    values = {name: getattr(order, name) for name in _RERANK_RANGES}
    return search_pb2.RerankOptions(enabled=True, **values)


def _order(message: search_pb2.RerankOptions) -> RerankOptions | None:
    if _given(message, "enabled") is False:
        return None
    given = {name: _given(message, name) for name in _RERANK_RANGES}
    return RerankOptions(**{name: value for name, value in given.items() if value is not None})


def _floor(request: search_pb2.SearchRequest, saved: save_pb2.SaveSettings) -> float | None:
    floor: float | None = _given(request if request.HasField("similarity_floor") else saved, "similarity_floor")
    if floor is not None and not -1 <= floor <= 1:
        raise InvalidInput(
            "similarity_floor must be from -1 to 1", reason=Reason.FIELD_INVALID, field="similarity_floor"
        )
    return floor


def _check(message: Any, ranges: dict[str, tuple[float, float]], field: str) -> None:
    for name, (low, high) in ranges.items():
        if message.HasField(name) and not low <= getattr(message, name) <= high:
            raise InvalidInput(
                f"{field}.{name} must be from {low} to {high}", reason=Reason.FIELD_INVALID, field=f"{field}.{name}"
            )


def _given(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _enum(kind: Any, number: int, usual: Any, field: str) -> Any:
    if not number:
        return usual
    try:
        return kind(number)
    except ValueError:
        raise InvalidInput(f"{field} is none that there is", reason=Reason.FIELD_INVALID, field=field) from None
