"""CompactionService: fold a history, tell what a window would send, keep the summary, count tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from sidecar.bounds import Bound, require_length
from sidecar.compaction.answers import ProcessAnswers
from sidecar.compaction.counters import Counters
from sidecar.compaction.folding import rewritten
from sidecar.compaction.held import HeldResult, compact_held
from sidecar.compaction.messages import Message
from sidecar.compaction.pending import Pending
from sidecar.compaction.requests import require_countable, require_version
from sidecar.compaction.rollup import Snapshot
from sidecar.compaction.summaries import Summary, SummaryStore
from sidecar.compaction.summariser import Summariser
from sidecar.compaction.tokens import CounterKind, TokenCounter
from sidecar.compaction.windows import Asked
from sidecar.compaction.wire import (
    asked_from,
    compaction_to,
    count_to,
    counter_kind,
    cuts_to,
    held_from,
    held_to,
    summary_to,
    target_from,
    trigger_of,
    window_to,
)
from sidecar.errors import Reason, Stale
from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, compaction_pb2
from sidecar.settings import CompactionSettings
from sidecar.storage.keys import ActorId, checked_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.workers import OwnKey, Workers
from sidecar.wire import actor_from, api_key_from, key_from, state_to

_TRIES = 3
R = TypeVar("R")


class Compactions(Protocol):
    """Compactions of stored conversations, which belong to a room above this one."""

    async def look(self, who: ActorId, asked: Asked, *, backend_id: str = "", api_key: str = "") -> None: ...

    def begin(
        self, who: ActorId, asked: Asked, *, backend_id: str = "", api_key: str = "", trace_id: str = ""
    ) -> Pending: ...

    def commit(self, pending: Pending, snapshot: Snapshot) -> Summary | None: ...

    def summariser_for(
        self, role_id: str, use_model: bool | None, backend_id: str, api_key: str = ""
    ) -> Summariser | None: ...

    def counter(self, role_id: str) -> TokenCounter: ...

    def counting(self, role_id: str, backend_id: str) -> tuple[Counters, str]: ...

    def summary_cap(self, role_id: str) -> int: ...

    def shown(self, who: ActorId, messages: Sequence[Message]) -> list[chat_pb2.ChatMessage]: ...


class CompactionService:
    """Thin: it translates, calls one thing, and translates back."""

    def __init__(
        self,
        *,
        compactions: Compactions,
        summaries: SummaryStore,
        counters: Counters,
        saves: SaveStates,
        workers: Workers,
        models: Workers,
        limits: CompactionSettings,
        answers: ProcessAnswers,
    ) -> None:
        """``models`` runs what waits for a language model, so that the disk's threads never do."""
        self._compactions = compactions
        self._summaries = summaries
        self._counters = counters
        self._saves = saves
        self._workers = workers
        self._models = models
        self._limits = limits
        self._answers = answers

    async def Compact(self, request: compaction_pb2.CompactRequest, context: Any) -> compaction_pb2.CompactResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)
        answers, asked_for = self._answers.of(who), [request.SerializeToString(deterministic=True).hex()]
        told = answers.told(key, asked_for)
        if told is None:
            response = await self._compact(who, request)
            # A repeat that came meanwhile hears what the first of them did.
            told = answers.told(key, asked_for) or {"response": response}
            answers.remember(key, asked_for, told)
        answer: compaction_pb2.CompactResponse = told["response"]
        return answer

    async def PreviewWindow(
        self, request: compaction_pb2.PreviewWindowRequest, context: Any
    ) -> compaction_pb2.PreviewWindowResponse:
        who, asked = actor_from(request.actor), asked_from(request, use_model=False)
        await self._compactions.look(who, asked)

        def preview() -> compaction_pb2.PreviewWindowResponse:
            pending = self._compactions.begin(who, asked)
            snapshot = pending.run()
            response = compaction_pb2.PreviewWindowResponse(
                window=window_to(snapshot, stored=len(pending.messages), counter=pending.counter),
                trigger=trigger_of(snapshot.parts, forced=False),
                would_fold=len(snapshot.folded),
                summary=summary_to(pending.base, pending.counter),
                history_budget=pending.policy.limits.tokens,
                summary_budget=pending.policy.summary_reserve,
                cuts=cuts_to(snapshot.cuts),
            )
            if request.include_messages:
                response.messages.extend(self._compactions.shown(who, snapshot.recent))
            return response

        return await self._answer(who, preview)

    async def GetSummary(
        self, request: compaction_pb2.GetSummaryRequest, context: Any
    ) -> compaction_pb2.GetSummaryResponse:
        who = actor_from(request.actor)

        def read() -> compaction_pb2.GetSummaryResponse:
            summary = self._summaries.read(who)
            status = common_pb2.LOAD_STATUS_LOADED if summary.version else common_pb2.LOAD_STATUS_NOT_FOUND
            return compaction_pb2.GetSummaryResponse(summary=summary_to(summary, self._counters.best()), status=status)

        return await self._answer(who, read)

    async def PutSummary(
        self, request: compaction_pb2.PutSummaryRequest, context: Any
    ) -> compaction_pb2.PutSummaryResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)
        require_length(request.text, "text", Bound("compaction.max_summary_chars", self._limits.max_summary_chars))
        return await self._answer(who, partial(self._put, who, request, key))

    async def ClearSummary(
        self, request: compaction_pb2.ClearSummaryRequest, context: Any
    ) -> compaction_pb2.ClearSummaryResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)

        def clear() -> compaction_pb2.ClearSummaryResponse:
            asked = ["clear summary"]
            told = self._summaries.told(who, key, asked)
            existed = told["existed"] if told is not None else self._summaries.clear(who, key=key, request=asked)
            return compaction_pb2.ClearSummaryResponse(existed=existed)

        return await self._answer(who, clear)

    async def CountTokens(
        self, request: compaction_pb2.CountTokensRequest, context: Any
    ) -> compaction_pb2.CountTokensResponse:
        require_countable(request.texts, self._limits)
        role_id, backend_id = checked_id(request.role_id, "role_id"), checked_id(request.backend_id, "backend_id")
        counters, model = self._compactions.counting(role_id, backend_id)
        counter = _counter(counters, model, counter_kind(request.counter))
        tokens = await self._workers.run(OwnKey(""), lambda: [counter.count(text) for text in request.texts])
        scale = counters.scale(model) if counter.kind is CounterKind.CALIBRATED else 1.0
        return compaction_pb2.CountTokensResponse(tokens=tokens, total=count_to(sum(tokens), counter.kind), scale=scale)

    async def _compact(self, who: ActorId, request: compaction_pb2.CompactRequest) -> compaction_pb2.CompactResponse:
        asked, began = asked_from(request), time.perf_counter()
        backend_id, api_key = checked_id(request.backend_id, "backend_id"), api_key_from(request.api_key, "api_key")
        await self._compactions.look(who, asked, backend_id=backend_id, api_key=api_key)
        if request.messages:
            response = await self._compact_held(who, request)
        else:
            response = await self._compact_stored(who, asked, backend_id, api_key)
        response.save.CopyFrom(state_to(self._saves.state(who.save)))
        response.duration_ms = 1_000 * (time.perf_counter() - began)
        return response

    async def _compact_stored(
        self, who: ActorId, asked: Asked, backend_id: str, api_key: str
    ) -> compaction_pb2.CompactResponse:
        for _ in range(_TRIES):
            begin = partial(self._compactions.begin, who, asked, backend_id=backend_id, api_key=api_key)
            pending, snapshot, saved = await self._workers.run(who, partial(self._at_once, begin))
            if snapshot is None:
                snapshot = await self._models.run(who, pending.run, left=pending.hang_up)
                saved = await self._workers.run(who, partial(self._compactions.commit, pending, snapshot))
            if saved is not None:
                return compaction_to(pending, snapshot, saved, asked)
        raise Stale(
            "the conversation changed while it was compacted, each time again; nothing was stored: call again later",
            reason=Reason.VERSION_MISMATCH,
        )

    def _at_once(self, begin: Callable[[], Pending]) -> tuple[Pending, Snapshot | None, Summary | None]:
        """A compaction from beginning to end, unless it waits for a model: that one is only begun."""
        pending = begin()
        if pending.summariser is not None:
            return pending, None, None
        snapshot = pending.run()
        return pending, snapshot, self._compactions.commit(pending, snapshot)

    async def _compact_held(
        self, who: ActorId, request: compaction_pb2.CompactRequest
    ) -> compaction_pb2.CompactResponse:
        messages, target = held_from(request, most=self._limits.max_conversation), target_from(request)
        asked, counter = asked_from(request), self._compactions.counter(who.role)
        summariser = self._compactions.summariser_for(who.role, asked.use_model, request.backend_id, request.api_key)

        def run() -> HeldResult:
            return compact_held(
                messages, request.prior_summary, target, counter, summariser=summariser, force=asked.force
            )

        if summariser:
            result = await self._models.run(OwnKey(who.save), run, left=summariser.hang_up)
        else:
            result = await self._workers.run(OwnKey(who.save), run)
        return held_to(request, messages, result, counter, asked)

    def _put(
        self, who: ActorId, request: compaction_pb2.PutSummaryRequest, key: str
    ) -> compaction_pb2.PutSummaryResponse:
        present, counter = self._summaries.read(who), self._counters.best()
        expected = request.expected_version if request.HasField("expected_version") else None
        asked = ["put summary", request.text, expected, request.drop_fold_marker]
        put = rewritten(
            present.stored,
            request.text,
            cap=self._compactions.summary_cap(who.role),
            counter=counter,
            drop_marker=request.drop_fold_marker,
        )
        told = present.answers.told(key, asked)
        if told is not None:
            summary = Summary(put.summary, told["version"], told["updated"])
        else:
            require_version(present, expected)
            summary = self._summaries.save(who, put.summary, persist=present.persisted, key=key, request=asked)
        return compaction_pb2.PutSummaryResponse(summary=summary_to(summary, counter), cuts=cuts_to(put.cuts))

    async def _answer(self, who: ActorId, work: Callable[[], R]) -> R:
        """What ``work`` answers in a thread while nobody else works on the actor, stamped with the save's state."""
        response: Any = await self._workers.run(who, work)
        response.save.CopyFrom(state_to(self._saves.state(who.save)))
        answered: R = response
        return answered


def _counter(counters: Counters, model: str, kind: CounterKind | None) -> TokenCounter:
    if kind is CounterKind.TOKENIZER:
        return counters.exact()
    if kind is CounterKind.HEURISTIC:
        return counters.heuristic()
    return counters.calibrated(model) if kind else counters.best(model)
