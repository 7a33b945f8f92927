"""How the place of a hit came about, in plain words, for people who debug. Never the record's own text."""

from __future__ import annotations

from sidecar.search.outcome import ChannelScore, Hit
from sidecar.search.rerank import Reranked

_NAMES = {
    "words": "words",
    "meaning": "meaning",
    "context_words": "words in context",
    "context_meaning": "meaning in context",
}


def account(hit: Hit) -> str:
    """Each channel, the fused score, and what reranking added."""
    channels = "; ".join(_channel(said) for said in hit.channels) or "no channel was asked"
    text = f"{channels}. Fused {hit.fused_score:.3f}, place {hit.fused_rank}."
    if hit.explained:
        words = ", ".join(f"'{word.term}' x{word.frequency} ({word.score:.3f})" for word in hit.explained)
        text += f" Words of its own: {words}."
    return text + (_order(hit.reranked) if hit.reranked else " Not reranked.")


def _channel(said: ChannelScore) -> str:
    return f"{_NAMES[said.name]} {said.score:.3f}, place {said.rank}, counts {said.normalised:.3f} x {said.weight:g}"


def _order(order: Reranked) -> str:
    return (
        f" Reranked {order.total} = order {order.source_order} + importance {order.importance} "
        f"+ recency {order.recency} - likeness {order.diversity}."
    )
