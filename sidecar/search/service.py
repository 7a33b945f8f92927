"""SearchService: find records, tell how the derived index stands, build it again."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from sidecar.bounds import Bound, require_not_below_zero
from sidecar.embedding.wire import identity_to
from sidecar.errors import NotReady, Reason, Unavailable
from sidecar.gen.lorekeeper.v1 import save_pb2, search_pb2
from sidecar.memory.record_checks import checked_text
from sidecar.memory.record_filter import checked_filter, without_archive
from sidecar.memory.record_wire import RecordMessages, actor_in, filter_from, owners_in, patterns_in
from sidecar.search.access import allowed_owners
from sidecar.search.answers import response_to
from sidecar.search.at_hand import AtHand, NotAtHand, is_quick
from sidecar.search.finder import Account, Asker, Finder
from sidecar.search.index_status import Counts, IndexStatus, Phase, Rebuild
from sidecar.search.near_duplicates import NearDuplicates
from sidecar.search.option_wire import options_from
from sidecar.search.outcome import Degraded, Recalled
from sidecar.search.recall import Query
from sidecar.search.recent_answers import RecentAnswers
from sidecar.search.vector_index import VectorCounts, VectorIndex
from sidecar.settings import RecordSettings, SearchSettings
from sidecar.storage.keys import DEFAULT_SAVE, ActorId, checked_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.workers import SaveKey, Workers
from sidecar.wire import actor_from, enum_to, state_to

_KEPT_BYTES = 65_536


class _Known(NamedTuple):
    """An answer that is given again while nothing changes, and what watchers are told then."""

    response: search_pb2.SearchResponse
    account: Account


class SearchService:
    """A rebuild runs batch by batch, between which others get their turn."""

    def __init__(
        self,
        *,
        finder: Finder,
        at_hand: AtHand,
        status: IndexStatus,
        vectors: VectorIndex,
        near: NearDuplicates,
        settings_of: Callable[[str], save_pb2.SaveSettings],
        archived_for: Callable[[str], bool],
        sources_of: Callable[[ActorId], Sequence[ActorId]],
        saves: SaveStates,
        workers: Workers,
        limits: SearchSettings,
        record_limits: RecordSettings,
    ) -> None:
        """``settings_of`` tells what a save has put as its defaults, ``archived_for`` whether a role's archived turns
        are searched, ``sources_of`` whom the role of an actor lets it search."""
        self._archived_for = archived_for
        self._finder = finder
        self._at_hand = at_hand
        self._answers = RecentAnswers(limits.max_recent_answers)
        self._status = status
        self._vectors = vectors
        self._near = near
        self._settings_of = settings_of
        self._sources_of = sources_of
        self._saves = saves
        self._workers = workers
        self._limits = limits
        self._record_limits = record_limits
        self._messages = RecordMessages(record_limits.max_cached_records)

    async def Search(self, request: search_pb2.SearchRequest, context: Any) -> search_pb2.SearchResponse:
        return await self.search(request, Asker.CALL)

    async def search(self, request: search_pb2.SearchRequest, asker: Asker) -> search_pb2.SearchResponse:
        """The answer, whoever asks."""
        query = self._query(request)
        question, version = self._question(request, query, asker)
        known: _Known | None = self._answers.known(question, version) if version else None
        if known is not None:
            self._finder.answered(known.account)
            for stage in known.response.stages:
                stage.reused = True
            return known.response
        found = await self._finder.find(query, asker, semantic=request.require_semantic)
        response = response_to(found, query, request.limit, self._messages)
        if found.identity is not None:
            for message, hit in zip(response.hits, found.hits, strict=True):
                message.record.near_duplicate_of = self._near.of(hit.stored)
        if version and not _passing(found) and response.ByteSize() <= _KEPT_BYTES:
            self._answers.keep(question, version, _Known(response, Account(found, asker, again=True)))
        return response

    def _question(self, request: search_pb2.SearchRequest, query: Query, asker: Asker) -> tuple[bytes, Hashable]:
        """What is asked, and what every answer to it depends on; None where that cannot be told at once."""
        if not is_quick(query):
            return b"", None
        with suppress(NotAtHand):
            save = self._at_hand.version(query.who.save)
            version = save, self._vectors.version, self._near.flagged, query.wanted, asker
            return request.SerializeToString(deterministic=True), version
        return b"", None

    async def GetIndexStatus(
        self, request: search_pb2.GetIndexStatusRequest, context: Any
    ) -> search_pb2.GetIndexStatusResponse:
        save, owner = _scope(request)

        def status() -> search_pb2.GetIndexStatusResponse:
            return self._status_to(self._status.counts(save, owner), self._vector_counts(save, owner))

        response = await self._workers.run(SaveKey("index", save), status)
        response.save.CopyFrom(state_to(self._saves.state(save)))
        return response

    async def RebuildIndex(
        self, request: search_pb2.RebuildIndexRequest, context: Any
    ) -> AsyncIterator[search_pb2.RebuildIndexResponse]:
        save, owner = _scope(request)
        if request.vectors and not request.terms and self._vectors.identity is None:
            raise NotReady("no embedding model is ready", reason=Reason.NO_MODEL, field="vectors")
        with self._status.running(save):
            async for step in self._rebuilt(save, owner, request):
                yield step

    async def _rebuilt(
        self, save: str, owner: ActorId | None, request: search_pb2.RebuildIndexRequest
    ) -> AsyncIterator[search_pb2.RebuildIndexResponse]:
        both = request.terms == request.vectors
        begun, step = time.perf_counter(), Rebuild(Phase.TERMS, 0)
        async for step in self._rebuilt_terms(save, owner, force=request.force and (both or request.terms)):
            if both or request.terms:
                yield self._progress(save, step, begun)
        if (both or request.vectors) and self._vectors.identity is not None:
            async for step in self._vectors.rebuild(save, owner, force=request.force):
                yield self._progress(save, step, begun)
        yield self._progress(save, replace(step, phase=Phase.DONE), begun)

    async def _rebuilt_terms(self, save: str, owner: ActorId | None, *, force: bool) -> AsyncIterator[Rebuild]:
        steps = await self._run(save, lambda: self._status.rebuild(save, owner, force=force))
        while (step := await self._run(save, lambda: next(steps, None))) is not None:
            if step.phase is not Phase.DONE:
                yield step

    async def _run(self, save: str, work: Callable[[], Any]) -> Any:
        return await self._workers.run(SaveKey("rebuild", save), work)

    def _progress(self, save: str, step: Rebuild, begun: float) -> search_pb2.RebuildIndexResponse:
        return search_pb2.RebuildIndexResponse(
            save=state_to(self._saves.state(save)),
            phase=enum_to(step.phase),
            done=step.done,
            total=step.total,
            skipped=step.skipped,
            failed=step.failed,
            removed=step.removed,
            elapsed_ms=(time.perf_counter() - begun) * 1_000,
        )

    def _query(self, request: search_pb2.SearchRequest) -> Query:
        who = actor_from(request.actor)
        most = Bound("records.max_owners", self._record_limits.max_owners)
        named = owners_in(request.owners, who.save, "owners", most)
        sources = patterns_in(request.sources, who.save, "sources", most)
        asked = request.limit if request.HasField("limit") else self._limits.default_hits
        require_not_below_zero(asked, "limit")
        wanted = checked_filter(filter_from(request.filter), "filter", self._record_limits)
        archive = request.include_archive if request.HasField("include_archive") else self._archived_for(who.role)
        return Query(
            who=who,
            owners=allowed_owners(who, named, (*sources, *self._sources_of(who)) if named else ()),
            text=checked_text(request.text, "text", Bound("search.max_query_chars", self._limits.max_query_chars)),
            wanted=wanted if archive else without_archive(wanted),
            limit=min(asked, self._limits.max_hits),
            groups=request.include_groups if request.HasField("include_groups") else not named,
            shared=request.include_shared if request.HasField("include_shared") else not named,
            explain=request.explain,
            options=options_from(request, self._settings_of(who.save)),
        )

    def _vector_counts(self, save: str, owner: ActorId | None) -> VectorCounts | None:
        """How the vectors stand; None where that cannot be told now."""
        try:
            return self._vectors.counts(save, owner)
        except Unavailable:
            return None

    def _status_to(self, terms: Counts, vectors: VectorCounts | None) -> search_pb2.GetIndexStatusResponse:
        known = vectors or VectorCounts()
        ready = min(known.ready, terms.total)
        stale = min(known.stale, terms.total - ready)
        pending = terms.total - ready - stale
        damaged = terms.damaged + known.damaged
        message = search_pb2.GetIndexStatusResponse(
            state=_state(terms, pending=pending, stale=stale, damaged=damaged),
            total=terms.total,
            ready=ready,
            pending=pending,
            stale=stale,
            orphan=terms.orphan,
            requires_rebuild=pending + stale + terms.orphan + damaged > 0 or terms.terms_ready < terms.total,
            damaged=damaged,
            terms_ready=terms.terms_ready,
            tokenizer_version=terms.version,
            rebuilding=terms.rebuilding,
            bytes=terms.bytes,
            degraded_reason=enum_to(Degraded.INDEX_UNAVAILABLE if vectors is None else self._vectors.prevented()),
        )
        if self._vectors.identity is not None:
            message.identity.CopyFrom(identity_to(self._vectors.identity))
        return message


def _scope(request: Any) -> tuple[str, ActorId | None]:
    save = checked_id(request.save_id, "save_id") or DEFAULT_SAVE
    return save, actor_in(request.owner, save, "owner") if request.HasField("owner") else None


def _state(terms: Counts, *, pending: int, stale: int, damaged: int) -> search_pb2.IndexState.ValueType:
    if not terms.total and not terms.orphan:
        return search_pb2.INDEX_STATE_EMPTY
    if stale:
        return search_pb2.INDEX_STATE_REBUILD_REQUIRED
    return search_pb2.INDEX_STATE_DEGRADED if pending or terms.orphan or damaged else search_pb2.INDEX_STATE_READY


def _passing(found: Recalled) -> bool:
    """Whether the next answer may be better though nothing of the save has changed."""
    lasting = {Degraded.NO_MODEL, Degraded.VECTORS_PENDING, Degraded.VECTORS_STALE, Degraded.SCAN_LIMIT}
    return not lasting.issuperset(found.degraded)
