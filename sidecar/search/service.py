"""SearchService: find records, tell how the derived index stands, build it again."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

from sidecar.errors import InvalidInput, NotReady, Reason
from sidecar.gen.lorekeeper.v1 import common_pb2, search_pb2
from sidecar.memory.record_checks import checked_text
from sidecar.memory.record_filter import checked_filter
from sidecar.memory.record_wire import RecordMessages, actor_in, filter_from, owners_in, share_to
from sidecar.search.access import allowed_owners
from sidecar.search.at_hand import AtHand, NotAtHand, is_quick
from sidecar.search.index_status import IndexStatus, Rebuild
from sidecar.search.recall import Degraded, Hit, Query, Recall, Recalled, StageReport
from sidecar.search.recent_answers import RecentAnswers
from sidecar.search.terms import MAX_CHARS, MAX_WORDS
from sidecar.settings import RecordSettings, SearchSettings
from sidecar.storage.keys import DEFAULT_SAVE, ActorId, checked_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.workers import OwnKey, SaveKey, Workers
from sidecar.wire import actor_from, actor_to, state_to

_LEXICAL = search_pb2.SEARCH_MODE_LEXICAL
_EMPTY, _DEGRADED = search_pb2.INDEX_STATE_EMPTY, search_pb2.INDEX_STATE_DEGRADED
_KEPT_BYTES = 65_536
_NEEDS_MODEL = (search_pb2.SEARCH_MODE_VECTOR,)


class SearchService:
    """Queries of hot owners are answered at once, others in threads, side by side; a rebuild runs batch by batch."""

    def __init__(
        self,
        *,
        recall: Recall,
        at_hand: AtHand,
        recall_at_hand: Recall,
        status: IndexStatus,
        saves: SaveStates,
        workers: Workers,
        limits: SearchSettings,
        record_limits: RecordSettings,
    ) -> None:
        self._recall = recall
        self._at_hand = at_hand
        self._answers = RecentAnswers(limits.max_recent_answers)
        self._recall_at_hand = recall_at_hand
        self._status = status
        self._saves = saves
        self._workers = workers
        self._limits = limits
        self._record_limits = record_limits
        self._messages = RecordMessages(record_limits.max_cached_records)

    async def Search(self, request: search_pb2.SearchRequest, context: Any) -> search_pb2.SearchResponse:
        query = self._query(request)
        if request.require_semantic or request.mode in _NEEDS_MODEL:
            raise NotReady(
                "no embedding model is ready, so records cannot be found by meaning; search by words instead",
                reason=Reason.NO_MODEL,
                field="require_semantic" if request.require_semantic else "mode",
            )

        if is_quick(query):
            with suppress(NotAtHand):
                return self._at_once(query, request)
        recalled = await self._workers.run(OwnKey(query.who.save), lambda: self._recall.run(query))
        return _response(recalled, query, request, self._messages)

    def _at_once(self, query: Query, request: search_pb2.SearchRequest) -> search_pb2.SearchResponse:
        """The answer from memory: one that was given before, or a new one. Raises NotAtHand."""
        question, version = request.SerializeToString(deterministic=True), self._at_hand.version(query.who.save)
        known: search_pb2.SearchResponse | None = self._answers.known(question, version)
        if known is not None:
            for stage in known.stages:
                stage.reused = True
            return known
        response = _response(self._recall_at_hand.run(query), query, request, self._messages)
        if response.ByteSize() <= _KEPT_BYTES:
            self._answers.keep(question, version, response)
        return response

    async def GetIndexStatus(
        self, request: search_pb2.GetIndexStatusRequest, context: Any
    ) -> search_pb2.GetIndexStatusResponse:
        save, owner = _scope(request)

        def status() -> search_pb2.GetIndexStatusResponse:
            counts = self._status.counts(save, owner)
            return search_pb2.GetIndexStatusResponse(
                # Without a model no record has a vector, so there is nothing between EMPTY and DEGRADED.
                state=_EMPTY if not counts.total and not counts.orphan else _DEGRADED,
                total=counts.total,
                pending=counts.total,
                orphan=counts.orphan,
                requires_rebuild=counts.orphan > 0 or counts.terms_ready < counts.total,
                damaged=counts.unreadable,
                terms_ready=counts.terms_ready,
                tokenizer_version=counts.version,
                rebuilding=counts.rebuilding,
                bytes=counts.bytes,
                degraded_reason=common_pb2.DEGRADED_REASON_NO_MODEL,
            )

        response = await self._workers.run(SaveKey("index", save), status)
        response.save.CopyFrom(state_to(self._saves.state(save)))
        return response

    async def RebuildIndex(
        self, request: search_pb2.RebuildIndexRequest, context: Any
    ) -> AsyncIterator[search_pb2.RebuildIndexResponse]:
        save, owner = _scope(request)
        begun = time.perf_counter()
        if request.vectors and not request.terms:
            raise NotReady("no embedding model is ready", reason=Reason.NO_MODEL, field="vectors")
        steps = await self._run(save, lambda: self._status.rebuild(save, owner, force=request.force))
        while (step := await self._run(save, lambda: next(steps, None))) is not None:
            yield self._progress(save, step, begun)

    async def _run(self, save: str, work: Callable[[], Any]) -> Any:
        return await self._workers.run(SaveKey("rebuild", save), work)

    def _progress(self, save: str, step: Rebuild, begun: float) -> search_pb2.RebuildIndexResponse:
        return search_pb2.RebuildIndexResponse(
            save=state_to(self._saves.state(save)),
            phase=_number(step.phase),
            done=step.done,
            total=step.total,
            skipped=step.skipped,
            failed=step.failed,
            removed=step.removed,
            elapsed_ms=(time.perf_counter() - begun) * 1_000,
        )

    def _query(self, request: search_pb2.SearchRequest) -> Query:
        who = actor_from(request.actor)
        most = self._record_limits.max_owners
        named = owners_in(request.owners, who.save, "owners", most)
        sources = owners_in(request.sources, who.save, "sources", most)
        asked = request.limit if request.HasField("limit") else self._limits.default_hits
        if asked < 0:
            raise InvalidInput("limit is below 0", reason=Reason.FIELD_INVALID, field="limit")
        return Query(
            who=who,
            owners=allowed_owners(who, named, sources),
            text=checked_text(request.text, "text", self._limits.max_query_chars),
            wanted=checked_filter(filter_from(request.filter), "filter", self._record_limits),
            limit=min(asked, self._limits.max_hits),
            groups=request.include_groups if request.HasField("include_groups") else not named,
            shared=request.include_shared if request.HasField("include_shared") else not named,
            explain=request.explain,
        )


def _scope(request: Any) -> tuple[str, ActorId | None]:
    save = checked_id(request.save_id, "save_id") or DEFAULT_SAVE
    return save, actor_in(request.owner, save, "owner") if request.HasField("owner") else None


def _number(value: int) -> Any:
    """One of our enums, whose numbers are those of the contract."""
    return int(value)


def _response(
    recalled: Recalled, query: Query, request: search_pb2.SearchRequest, messages: RecordMessages
) -> search_pb2.SearchResponse:
    by_words = request.mode == _LEXICAL
    degraded = [reason for reason in recalled.degraded if not (by_words and reason is Degraded.NO_MODEL)]
    return search_pb2.SearchResponse(
        save=state_to(recalled.state),
        hits=[_hit_to(hit, place, query, messages) for place, hit in enumerate(recalled.hits, 1)],
        degraded=bool(degraded),
        degraded_reason=_number(max(degraded, default=0)),
        degraded_reasons=[_number(reason) for reason in sorted(degraded, reverse=True)],
        stages=[_stage_to(stage) for stage in recalled.stages],
        cuts=list(_cuts(recalled, query, request)),
        mode=_LEXICAL,
    )


def _hit_to(hit: Hit, place: int, query: Query, messages: RecordMessages) -> search_pb2.Hit:
    message = search_pb2.Hit(
        record=messages.of(hit.stored),
        owner=actor_to(hit.stored.owner),
        score=hit.score,
        rank=place,
        fused_score=hit.score,
        fused_rank=place,
        access=_number(hit.known.access),
        group_id=hit.known.group_id,
    )
    if query.text:
        channel = search_pb2.SEARCH_CHANNEL_LEXICAL
        message.channels.add(channel=channel, score=hit.words_score, rank=hit.words_rank, weight=1.0)
    if hit.known.share:
        message.share.CopyFrom(share_to(hit.known.share))
    if query.explain:
        message.explanation.CopyFrom(_explanation_to(hit, query))
    return message


def _explanation_to(hit: Hit, query: Query) -> search_pb2.Explanation:
    head = hit.stored.record.head
    words = ", ".join(f"'{word.term}' x{word.frequency} ({word.score:.3f})" for word in hit.explained)
    message = search_pb2.Explanation(
        text=f"score {hit.score:.3f} = words {hit.words_score:.3f} [{words or 'none'}] "
        f"+ importance {head.importance:.2f} x {hit.known.weight:.2f} and tags",
        terms=[
            search_pb2.TermScore(term=word.term, frequency=word.frequency, records=word.records, score=word.score)
            for word in hit.explained
        ],
    )
    now = query.wanted.at_or_before
    if now is not None:
        message.age_ticks = now.tick - head.moment.tick
    return message


def _stage_to(stage: StageReport) -> search_pb2.SearchStage:
    return search_pb2.SearchStage(
        kind=_number(stage.stage),
        duration_ms=stage.milliseconds,
        scanned=stage.scanned,
        candidates=stage.candidates,
        reused=stage.reused,
    )


def _cuts(recalled: Recalled, query: Query, request: search_pb2.SearchRequest) -> Iterator[common_pb2.Cut]:
    if request.HasField("limit") and request.limit > query.limit:
        yield common_pb2.Cut(
            what="search_limit",
            unit="hits",
            kept=query.limit,
            dropped=request.limit - query.limit,
            detail="limit was lowered to search.max_hits",
        )
    if recalled.words_cut:
        yield common_pb2.Cut(
            what="query",
            unit="code_points",
            kept=min(len(query.text), MAX_CHARS),
            dropped=max(0, len(query.text) - MAX_CHARS),
            detail=f"only the first {MAX_CHARS} characters and {MAX_WORDS} words of the text were searched for",
        )
