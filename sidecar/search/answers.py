"""What was found, as the contract tells it."""

from __future__ import annotations

from collections.abc import Iterator

from sidecar.embedding.wire import identity_to
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, search_pb2
from sidecar.memory.record_wire import RecordMessages, share_to
from sidecar.search.explanation import account
from sidecar.search.option_wire import fusion_to, order_to
from sidecar.search.outcome import ChannelScore, Hit, Recalled, StageReport
from sidecar.search.recall import Query
from sidecar.search.rerank import Reranked
from sidecar.search.terms import MAX_CHARS, MAX_WORDS
from sidecar.wire import enum_to, state_to

_CHANNELS = {
    "words": search_pb2.SEARCH_CHANNEL_LEXICAL,
    "meaning": search_pb2.SEARCH_CHANNEL_VECTOR,
    "context_words": search_pb2.SEARCH_CHANNEL_CONTEXT_LEXICAL,
    "context_meaning": search_pb2.SEARCH_CHANNEL_CONTEXT_VECTOR,
}
_MOST_TICKS = 2**63 - 1


def response_to(
    recalled: Recalled, query: Query, asked_limit: int, messages: RecordMessages
) -> search_pb2.SearchResponse:
    """The whole answer; ``asked_limit`` is what the request named."""
    response = search_pb2.SearchResponse(
        save=state_to(recalled.state),
        degraded=bool(recalled.degraded),
        degraded_reason=enum_to(max(recalled.degraded, default=0)),
        degraded_reasons=[enum_to(reason) for reason in sorted(recalled.degraded, reverse=True)],
        stages=[_stage_to(stage) for stage in recalled.stages],
        cuts=list(_cuts(recalled, query, asked_limit)),
        mode=enum_to(recalled.options.mode),
        fusion=fusion_to(recalled.options, recalled.weights),
        rerank=order_to(recalled.options.order),
    )
    if recalled.identity is not None:
        response.identity.CopyFrom(identity_to(recalled.identity))
    for place, hit in enumerate(recalled.hits, 1):
        _add_hit(response, hit, place, query, messages.of(hit.stored))
    return response


def _add_hit(
    response: search_pb2.SearchResponse, hit: Hit, place: int, query: Query, record: memory_pb2.Record
) -> None:
    message = response.hits.add(
        record=record,
        owner=record.owner,
        score=hit.score,
        rank=place,
        channels=[_channel_to(said) for said in hit.channels],
        fused_score=hit.fused_score,
        fused_rank=hit.fused_rank,
        rerank=_rerank_to(hit.reranked) if hit.reranked else None,
        access=enum_to(hit.known.access),
        group_id=hit.known.group_id,
        share=share_to(hit.known.share) if hit.known.share else None,
        explanation=_explanation_to(hit, query) if query.explain else None,
    )
    message.record.embedding_state = enum_to(hit.vector or 0)


def _rerank_to(reranked: Reranked) -> search_pb2.RerankScore:
    return search_pb2.RerankScore(
        source_order=reranked.source_order,
        importance=reranked.importance,
        recency=reranked.recency,
        diversity=reranked.diversity,
        total=reranked.total,
    )


def _channel_to(said: ChannelScore) -> search_pb2.ChannelScore:
    return search_pb2.ChannelScore(
        channel=_CHANNELS[said.name],
        score=said.score,
        rank=said.rank,
        normalized=said.normalised,
        weight=said.weight,
    )


def _explanation_to(hit: Hit, query: Query) -> search_pb2.Explanation:
    message = search_pb2.Explanation(
        text=account(hit),
        terms=[
            search_pb2.TermScore(term=word.term, frequency=word.frequency, records=word.records, score=word.score)
            for word in hit.explained
        ],
    )
    now, moment = query.wanted.at_or_before, hit.stored.record.head.moment
    if now is not None and moment.dated:
        message.age_ticks = min(now.tick - moment.tick, _MOST_TICKS)
    return message


def _stage_to(stage: StageReport) -> search_pb2.SearchStage:
    return search_pb2.SearchStage(
        kind=enum_to(stage.stage),
        duration_ms=stage.milliseconds,
        scanned=stage.scanned,
        candidates=stage.candidates,
        reused=stage.reused,
    )


def _cuts(recalled: Recalled, query: Query, asked_limit: int) -> Iterator[common_pb2.Cut]:
    if asked_limit > query.limit:
        yield common_pb2.Cut(
            what="search_limit",
            unit="hits",
            kept=query.limit,
            dropped=asked_limit - query.limit,
            detail="limit was lowered to search.max_hits",
        )
    if recalled.words_cut:
        yield words_cut("query", query.text)
    for cut in recalled.query_cuts:
        limit = "embedding.max_tokens" if cut.unit == "tokens" else "embedding.max_text_chars"
        yield common_pb2.Cut(
            what="query_meaning",
            unit=cut.unit,
            kept=cut.kept,
            dropped=cut.dropped,
            detail=f"the end of the text was not read by the embedding model ({limit})",
        )


def words_cut(what: str, text: str) -> common_pb2.Cut:
    """Tells that a text, of a query or a record, is longer than what words are taken from."""
    return common_pb2.Cut(
        what=what,
        unit="code_points",
        kept=min(len(text), MAX_CHARS),
        dropped=max(0, len(text) - MAX_CHARS),
        detail=f"only the first {MAX_CHARS} characters and {MAX_WORDS} words of the text count in a search",
    )
