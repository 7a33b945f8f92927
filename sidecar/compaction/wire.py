"""Between the contract's messages on windows, counts and cuts and our own types. Only the services use it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sidecar.bounds import Bound, require_count
from sidecar.compaction.budget import HISTORY_FLOOR, Budget
from sidecar.compaction.cuts import Cut, CutKind
from sidecar.compaction.folding import Failure, ModelUse
from sidecar.compaction.held import DEFAULT_ATTEMPTS, HeldMessage, HeldResult, Target
from sidecar.compaction.messages import USER, Message
from sidecar.compaction.partition import Partition, cost
from sidecar.compaction.pending import Pending
from sidecar.compaction.rollup import Snapshot
from sidecar.compaction.summaries import Summary
from sidecar.compaction.tokens import CounterKind, TokenCounter
from sidecar.compaction.windows import Asked
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, compaction_pb2
from sidecar.wire import require_known, time_to

MAX_ATTEMPTS = 10
_KINDS = {
    CounterKind.HEURISTIC: common_pb2.TOKEN_COUNTER_HEURISTIC,
    CounterKind.CALIBRATED: common_pb2.TOKEN_COUNTER_CALIBRATED,
    CounterKind.TOKENIZER: common_pb2.TOKEN_COUNTER_EXACT,
}


def count_to(tokens: int, kind: CounterKind) -> common_pb2.TokenCount:
    """A number of tokens and who counted them."""
    return common_pb2.TokenCount(tokens=tokens, counter=_KINDS[kind])


def cuts_to(cuts: Iterable[Cut]) -> list[common_pb2.Cut]:
    """Cuts as the contract tells them."""
    return [
        common_pb2.Cut(what=cut.what, unit=cut.unit, kept=cut.kept, dropped=cut.dropped, detail=cut.detail)
        for cut in cuts
    ]


def budget_to(budget: Budget) -> chat_pb2.TokenBudget:
    """How a window is divided."""
    return chat_pb2.TokenBudget(
        window=budget.window,
        completion_reserve=budget.completion,
        slack=budget.slack,
        fixed=budget.fixed,
        history=budget.history,
        summary=budget.summary,
    )


def window_to(snapshot: Snapshot, *, stored: int, counter: TokenCounter) -> chat_pb2.HistoryWindow:
    """What of a history of ``stored`` messages is sent."""
    return chat_pb2.HistoryWindow(
        stored=stored,
        sent=len(snapshot.recent),
        pruned=snapshot.pruned,
        folded=snapshot.parts.split - snapshot.left_out,
        deferred=sum(cut.dropped for cut in snapshot.cuts if cut.what is CutKind.DEFERRED_FOLD),
        left_out=snapshot.left_out,
        summary=count_to(counter.count(snapshot.summary), counter.kind),
        history=count_to(sum(cost(message, counter) for message in snapshot.recent), counter.kind),
    )


def summary_to(summary: Summary, counter: TokenCounter) -> compaction_pb2.Summary:
    """A rolling summary, without its fold marker."""
    message = compaction_pb2.Summary(
        text=summary.text,
        version=summary.version,
        count=count_to(counter.count(summary.text), counter.kind),
        has_fold_marker=summary.stored.text != summary.text or summary.stored.folded_through > 0,
    )
    if summary.version:
        message.updated.CopyFrom(time_to(summary.updated))
    return message


def trigger_of(parts: Partition, *, forced: bool) -> compaction_pb2.CompactionTrigger.ValueType:
    """Why something is folded."""
    if not parts.folds:
        return compaction_pb2.COMPACTION_TRIGGER_UNSPECIFIED
    if forced:
        return compaction_pb2.COMPACTION_TRIGGER_FORCED
    if parts.too_many and parts.too_long:
        return compaction_pb2.COMPACTION_TRIGGER_MESSAGES_AND_TOKENS
    return compaction_pb2.COMPACTION_TRIGGER_MESSAGES if parts.too_many else compaction_pb2.COMPACTION_TRIGGER_TOKENS


def history_tokens(messages: Iterable[Message], summary: Summary, counter: TokenCounter) -> int:
    """What a history and its summary take when they are sent whole."""
    return sum(cost(message, counter) for message in messages) + counter.count(summary.text)


def asked_from(request: Any, *, use_model: bool | None = None) -> Asked:
    """What a call asks for beside its role. Raises InvalidInput for numbers that are not allowed."""
    history_tokens = request.history_tokens if request.HasField("history_tokens") else None
    max_messages = request.max_messages if request.HasField("max_messages") else None
    _require_least(history_tokens, HISTORY_FLOOR, "history_tokens")
    _require_least(max_messages, 1, "max_messages")
    if isinstance(request, compaction_pb2.CompactRequest):
        require_known(compaction_pb2.CompactionStrategy, request.strategy, "strategy")
        use_model = _STRATEGIES.get(request.strategy)
    return Asked(history_tokens, max_messages, use_model, getattr(request, "force", False))


def counter_kind(counter: common_pb2.TokenCounter.ValueType) -> CounterKind | None:
    """The counter that is asked for; ``None``: the best there is. Raises InvalidInput."""
    require_known(common_pb2.TokenCounter, counter, "counter")
    return next((kind for kind, number in _KINDS.items() if number == counter), None)


def compaction_to(pending: Pending, snapshot: Snapshot, saved: Summary, asked: Asked) -> compaction_pb2.CompactResponse:
    """What a compaction of a stored conversation did."""
    counter, folded = pending.counter, bool(snapshot.folded)
    before = history_tokens(pending.messages[snapshot.parts.fold_start :], pending.base, counter)
    after = history_tokens(pending.messages[snapshot.parts.split :], saved, counter)
    return compaction_pb2.CompactResponse(
        compacted=folded,
        trigger=trigger_of(snapshot.parts, forced=asked.force),
        strategy=_strategy(snapshot.use, folded=folded),
        failure=_failure(snapshot.use, asked, folded=folded),
        window=window_to(snapshot, stored=len(pending.messages), counter=counter),
        folded=len(snapshot.folded),
        summary=summary_to(saved, counter),
        before=count_to(before, counter.kind),
        after=count_to(after, counter.kind),
        attempts=snapshot.use.calls,
        usage=_usage(snapshot.use),
        cuts=cuts_to(snapshot.cuts),
    )


def held_from(request: compaction_pb2.CompactRequest, *, most: int) -> list[HeldMessage]:
    """The conversation that the game holds. Raises InvalidInput."""
    require_count(len(request.messages), "messages", Bound("compaction.max_conversation", most))
    return [_held_from(message, f"messages[{index}]") for index, message in enumerate(request.messages)]


def _held_from(message: compaction_pb2.CompactMessage, field: str) -> HeldMessage:
    _require_least(message.summarised_messages, 0, f"{field}.summarised_messages")
    return HeldMessage(
        Message(message.role, message.content),
        tuple(message.tool_call_ids),
        message.answers_call_id,
        message.summarised_messages if message.summary else None,
    )


def target_from(request: compaction_pb2.CompactRequest) -> Target:
    """What the result must keep to. Raises InvalidInput."""
    attempts = request.max_attempts if request.HasField("max_attempts") else DEFAULT_ATTEMPTS
    messages = request.target_messages if request.HasField("target_messages") else None
    tokens = request.target_tokens if request.HasField("target_tokens") else None
    usage = request.max_usage_tokens if request.HasField("max_usage_tokens") else None
    _require_least(messages, 1, "target_messages")
    _require_least(tokens, 1, "target_tokens")
    _require_least(usage, 1, "max_usage_tokens")
    _require_least(attempts, 1, "max_attempts")
    if attempts > MAX_ATTEMPTS:
        raise _out_of_range("max_attempts", "at most", MAX_ATTEMPTS)
    return Target(messages, tokens, attempts, usage)


def held_to(
    request: compaction_pb2.CompactRequest,
    messages: list[HeldMessage],
    result: HeldResult,
    counter: TokenCounter,
    asked: Asked,
) -> compaction_pb2.CompactResponse:
    """What became of the conversation."""
    done = result.cut > 0
    parts = Partition(0, result.cut, result.too_many, result.too_long)
    kept = [held.message for held in messages[result.cut :]]
    before = sum(cost(held.message, counter) for held in messages) + counter.count(request.prior_summary)
    after = sum(cost(message, counter) for message in kept) + counter.count(result.summary)
    return compaction_pb2.CompactResponse(
        compacted=done,
        trigger=trigger_of(parts, forced=asked.force and not parts.triggered),
        strategy=_strategy(result.use, folded=done),
        failure=_HELD_FAILURES.get(result.failure) or _failure(result.use, asked, folded=done),
        folded=result.cut,
        summary=compaction_pb2.Summary(
            text=result.summary, count=count_to(counter.count(result.summary), counter.kind)
        ),
        before=count_to(before, counter.kind),
        after=count_to(after, counter.kind),
        attempts=result.use.calls,
        usage=_usage(result.use),
        cuts=cuts_to(result.cuts),
        messages=_conversation(request, result),
        cut_index=result.cut,
    )


def _conversation(request: compaction_pb2.CompactRequest, result: HeldResult) -> list[compaction_pb2.CompactMessage]:
    """The new conversation: the summary first, then what stays."""
    kept = list(request.messages[result.cut :])
    if not (result.summary and result.cut):
        return kept
    summary = compaction_pb2.CompactMessage(
        role=USER, content=result.summary, summary=True, summarised_messages=result.stands_for
    )
    return [summary, *kept]


def _strategy(use: ModelUse, *, folded: bool) -> compaction_pb2.CompactionStrategy.ValueType:
    if not folded:
        return compaction_pb2.COMPACTION_STRATEGY_UNSPECIFIED
    by_model = use.calls > 0 and (use.failure is None or use.calls > 1)
    return compaction_pb2.COMPACTION_STRATEGY_MODEL if by_model else compaction_pb2.COMPACTION_STRATEGY_DETERMINISTIC


def _failure(use: ModelUse, asked: Asked, *, folded: bool) -> compaction_pb2.CompactionFailure.ValueType:
    if use.failure is not None:
        return _FAILURES[use.failure]
    if folded and asked.use_model and not use.calls:
        return compaction_pb2.COMPACTION_FAILURE_SUMMARY_FAILED
    return compaction_pb2.COMPACTION_FAILURE_UNSPECIFIED


def _usage(use: ModelUse) -> chat_pb2.Usage:
    reported = use.prompt_tokens + use.completion_tokens > 0
    return chat_pb2.Usage(prompt_tokens=use.prompt_tokens, completion_tokens=use.completion_tokens, reported=reported)


def _require_least(value: int | None, least: int, field: str) -> None:
    if value is not None and value < least:
        raise _out_of_range(field, "at least", least)


def _out_of_range(field: str, bound: str, value: int) -> InvalidInput:
    return InvalidInput(
        f"{field} must be {bound} {value}", reason=Reason.FIELD_INVALID, field=field, limit=field, value=value
    )


_STRATEGIES = {
    compaction_pb2.COMPACTION_STRATEGY_DETERMINISTIC: False,
    compaction_pb2.COMPACTION_STRATEGY_MODEL: True,
}
_FAILURES = {
    Failure.FAILED: compaction_pb2.COMPACTION_FAILURE_SUMMARY_FAILED,
    Failure.BLANK: compaction_pb2.COMPACTION_FAILURE_SUMMARY_BLANK,
    Failure.TIMEOUT: compaction_pb2.COMPACTION_FAILURE_SUMMARY_TIMEOUT,
}
_HELD_FAILURES = {
    "target_exceeded": compaction_pb2.COMPACTION_FAILURE_TARGET_EXCEEDED,
    "usage_limit_exceeded": compaction_pb2.COMPACTION_FAILURE_USAGE_LIMIT_EXCEEDED,
}
