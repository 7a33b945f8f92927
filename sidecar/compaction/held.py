"""Compacting a conversation that the game holds itself, tool calls included. No I/O.

    messages: u a(calls) t t a u a u a ──> summary  u a u a
                                           └ one message in the place of all before the cut

The cut never parts a tool call from its answer and always stands before a message of the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sidecar.compaction.clipping import newest_suffix
from sidecar.compaction.cuts import Cut, CutKind
from sidecar.compaction.folding import Folded, ModelUse, fold_as_bullets, suffix_cut, visible_text
from sidecar.compaction.marker import StoredSummary
from sidecar.compaction.messages import USER, Message, is_role
from sidecar.compaction.partition import cost
from sidecar.compaction.summariser import Summariser, fold_with_model
from sidecar.compaction.tokens import TokenCounter
from sidecar.errors import InvalidInput, Reason

DEFAULT_ATTEMPTS = 3


@dataclass(frozen=True)
class HeldMessage:
    """A message with the tool calls that it makes and the one that it answers.

    ``stands_for`` is set for a summary of an earlier compaction: how many messages are in it.
    """

    message: Message
    calls: tuple[str, ...] = ()
    answers: str = ""
    stands_for: int | None = None


@dataclass(frozen=True)
class Target:
    """What the result must keep to, the summary included; ``None``: no bound."""

    messages: int | None = None
    tokens: int | None = None
    attempts: int = DEFAULT_ATTEMPTS
    usage: int | None = None


@dataclass(frozen=True)
class HeldResult:
    """The new conversation is the summary and then everything from ``cut`` on. ``cut`` 0: nothing was done."""

    cut: int
    summary: str
    stands_for: int = 0
    """How many messages are in the summary, those of earlier summaries included."""
    too_many: bool = False
    too_long: bool = False
    failure: str = ""
    """``target_exceeded`` or ``usage_limit_exceeded``, or a model's failure."""
    use: ModelUse = field(default_factory=ModelUse)
    cuts: tuple[Cut, ...] = ()


def compact_held(
    messages: Sequence[HeldMessage],
    prior: str,
    target: Target,
    counter: TokenCounter,
    *,
    summariser: Summariser | None,
    force: bool = False,
    trace_id: str = "",
) -> HeldResult:
    """The conversation within its target. Raises InvalidInput where tool calls and answers do not pair."""
    require_pairs(messages)
    tokens = sum(cost(held.message, counter) for held in messages) + counter.count(prior)
    too_many = target.messages is not None and len(messages) + bool(prior.strip()) > target.messages
    too_long = target.tokens is not None and tokens > target.tokens
    if not messages or not (too_many or too_long or force):
        return HeldResult(0, prior)
    cut = cut_index(messages, target, counter)
    result = _summarised(messages, cut, prior, target, counter, summariser, trace_id)
    return replace(result, too_many=too_many, too_long=too_long)


def require_pairs(messages: Sequence[HeldMessage]) -> None:
    """Raises InvalidInput for a call that is made twice or never answered, and for an answer to no call."""
    open_calls: set[str] = set()
    made: set[str] = set()
    for index, held in enumerate(messages):
        for call in held.calls:
            if not call or call in made:
                raise _unpaired(f"messages[{index}].tool_call_ids", "a call has no id of its own")
            made.add(call)
            open_calls.add(call)
        if held.answers:
            if held.answers not in open_calls:
                raise _unpaired(f"messages[{index}].answers_call_id", "it answers no call that is open")
            open_calls.remove(held.answers)
    if open_calls:
        raise _unpaired("messages", f"{len(open_calls)} tool calls are never answered")


def cut_index(messages: Sequence[HeldMessage], target: Target, counter: TokenCounter) -> int:
    """The first place from which the rest may stay: a turn begins there, and it leaves room for the summary."""
    count = len(messages)
    wanted = target.messages if target.messages is not None else count
    room = None if target.tokens is None else target.tokens // 2
    rest = sum(cost(held.message, counter) for held in messages)
    opened = 0
    for index, held in enumerate(messages):
        fits = 1 + count - index <= wanted and (room is None or rest <= room)
        if index >= max(1, count - max(1, wanted - 1)) and fits and not opened and is_role(held.message, USER):
            return index
        opened += len(held.calls) - bool(held.answers)
        rest -= cost(held.message, counter)
    return count


def _summarised(
    messages: Sequence[HeldMessage],
    cut: int,
    prior: str,
    target: Target,
    counter: TokenCounter,
    summariser: Summariser | None,
    trace_id: str,
) -> HeldResult:
    folded = [held.message for held in messages[:cut] if held.stands_for is None]
    earlier = [held.message.content for held in messages[:cut] if held.stands_for is not None]
    kept = sum(cost(held.message, counter) for held in messages[cut:])
    cap = 0 if target.tokens is None else max(1, target.tokens - kept)
    exceeded = target.messages is not None and 1 + len(messages) - cut > target.messages
    stored = StoredSummary("\n".join(text for text in (prior, *earlier) if text.strip()))
    if summariser:
        outcome, failure = _written(stored, folded, cap, target, counter, summariser, trace_id)
    else:
        outcome, failure = fold_as_bullets(stored, folded, cap=cap, counter=counter), ""
    whole = visible_text(outcome.summary)
    text = newest_suffix(whole, cap, counter)
    if exceeded or (target.tokens is not None and kept + counter.count(text) > target.tokens):
        failure = failure or "target_exceeded"
    cuts = (*outcome.cuts, *suffix_cut(CutKind.SUMMARY, whole, text, counter))
    stands_for = sum(1 if held.stands_for is None else held.stands_for for held in messages[:cut])
    return HeldResult(cut, text, stands_for, failure=failure, use=outcome.use, cuts=cuts)


def _written(
    stored: StoredSummary,
    folded: Sequence[Message],
    cap: int,
    target: Target,
    counter: TokenCounter,
    summariser: Summariser,
    trace_id: str,
) -> tuple[Folded, str]:
    """What a model wrote, asked again while it keeps missing the target, and why it was given up."""
    use = ModelUse()
    outcome = Folded(stored)
    for _ in range(target.attempts):
        if target.usage is not None and use.prompt_tokens + use.completion_tokens >= target.usage:
            return outcome, "usage_limit_exceeded"
        outcome = fold_with_model(stored, folded, summariser=summariser, cap=0, counter=counter, trace_id=trace_id)
        use = _sum(use, outcome.use)
        outcome = replace(outcome, use=use)
        if use.failure is None and (not cap or counter.count(visible_text(outcome.summary)) <= cap):
            return outcome, ""
    return outcome, use.failure.value if use.failure else ""


def _sum(one: ModelUse, other: ModelUse) -> ModelUse:
    return ModelUse(
        one.calls + other.calls,
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        other.failure,
    )


def _unpaired(field: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{field}: {why}; give every tool call of the conversation exactly one answer after it",
        reason=Reason.FIELD_INVALID,
        field=field,
    )
