"""The whole of one compaction, as a rule: a history and a summary go in, what to send and what to store come out.

It reads and writes nothing; who calls it decides whether the new summary is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sidecar.compaction.clipping import newest_suffix, steady_suffix
from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.compaction.folding import (
    Fold,
    Folded,
    ModelUse,
    fold_as_bullets,
    lost_marker_cut,
    suffix_cut,
    visible_text,
)
from sidecar.compaction.marker import StoredSummary
from sidecar.compaction.messages import Message
from sidecar.compaction.partition import Partition, WindowLimits, partition
from sidecar.compaction.pruning import prune
from sidecar.compaction.summariser import Summariser, fold_with_model
from sidecar.compaction.tokens import TokenCounter


@dataclass(frozen=True)
class Policy:
    """How one role's conversation is kept within its window."""

    limits: WindowLimits
    summary_cap: int
    """The longest stored summary in tokens; 0: no cap."""
    summary_reserve: int
    """The longest copy of the summary in a prompt, in tokens; 0: none is sent."""
    kept_tool_results: int = 3
    prune: bool = True
    summarize: bool = True
    wants_model: bool = False
    """Whether a model should write the summary."""


@dataclass(frozen=True)
class Snapshot:
    """What a prompt shows of a history, and the summary that belongs to it."""

    stored: StoredSummary
    """To be stored when ``folded`` is not empty."""
    summary: str
    """The copy for the prompt, without marker."""
    recent: tuple[Message, ...]
    """Sent verbatim, pruned."""
    folded: tuple[Message, ...]
    """Folded by this compaction."""
    parts: Partition
    """Where the history was split, and why."""
    pruned: int
    """Messages that the prompt's copy does without."""
    summarized: bool
    """Whether what is not sent verbatim is in the summary."""
    cuts: tuple[Cut, ...] = ()
    fold_cuts: tuple[Cut, ...] = ()
    """Those among them that folding made, which are gone once the summary is stored."""
    use: ModelUse = field(default_factory=ModelUse)

    @property
    def left_out(self) -> int:
        """The oldest messages that are neither sent verbatim nor in a summary: their role keeps none."""
        return 0 if self.summarized else self.parts.split

    @property
    def compacted(self) -> bool:
        """Whether the prompt leans on a summary."""
        return self.parts.triggered and bool(visible_text(self.stored))


def roll_up(
    messages: Sequence[Message],
    stored: StoredSummary,
    policy: Policy,
    counter: TokenCounter,
    *,
    summariser: Summariser | None = None,
    trace_id: str = "",
    fold: Fold = fold_as_bullets,
) -> Snapshot:
    """Folds what no longer fits and answers with what a prompt sends.

    Without a ``summariser`` the folding is that of ``fold``.
    """
    parts = partition(messages, stored if policy.summarize else StoredSummary(), policy.limits, counter)
    if not policy.summarize:
        return _without_summary(messages, stored, parts, policy)
    to_fold = tuple(messages[parts.fold_start : parts.split])
    folded = _fold(stored, to_fold, policy, counter, summariser, trace_id, fold)
    return _snapshot(messages, to_fold, folded, parts, policy, counter)


def _fold(
    stored: StoredSummary,
    messages: Sequence[Message],
    policy: Policy,
    counter: TokenCounter,
    summariser: Summariser | None,
    trace_id: str,
    fold: Fold,
) -> Folded:
    cap = policy.summary_cap
    if summariser and policy.wants_model and messages:
        return fold_with_model(stored, messages, summariser=summariser, cap=cap, counter=counter, trace_id=trace_id)
    folded = fold(stored, messages, cap=cap, counter=counter)
    if not messages or not policy.wants_model:
        return folded
    missing = Cut(CutKind.SUMMARISER, Unit.MESSAGES, 0, len(messages), "no summariser: folded as bullets")
    return Folded(folded.summary, (missing, *folded.cuts))


def _snapshot(
    messages: Sequence[Message],
    to_fold: tuple[Message, ...],
    folded: Folded,
    parts: Partition,
    policy: Policy,
    counter: TokenCounter,
) -> Snapshot:
    whole = visible_text(folded.summary)
    text = newest_suffix(whole, policy.summary_cap, counter)
    summary = steady_suffix(text, policy.summary_reserve, counter) if policy.summary_reserve > 0 else ""
    recent, pruned = _pruned(messages[parts.split :], policy)
    fold_cuts = (*lost_marker_cut(parts.folds if parts.marker_lost else 0), *folded.cuts)
    cuts = (
        *fold_cuts,
        *_window_cut(parts.split, len(messages), "held by the rolling summary"),
        *suffix_cut(CutKind.SUMMARY_REQUEST, whole, summary, counter),
        *pruned,
    )
    left_out = len(messages) - parts.split - len(recent)
    return Snapshot(
        folded.summary,
        summary,
        recent,
        to_fold,
        parts,
        left_out,
        summarized=True,
        cuts=cuts,
        fold_cuts=fold_cuts,
        use=folded.use,
    )


def _without_summary(messages: Sequence[Message], stored: StoredSummary, parts: Partition, policy: Policy) -> Snapshot:
    recent, pruned = _pruned(messages[parts.split :], policy)
    left_out = len(messages) - parts.split - len(recent)
    cuts = (*_window_cut(parts.split, len(messages), "left out: this role keeps no summary"), *pruned)
    unfolded = replace(parts, fold_start=parts.split)
    return Snapshot(stored, "", recent, (), unfolded, left_out, summarized=False, cuts=cuts)


def _pruned(messages: Sequence[Message], policy: Policy) -> tuple[tuple[Message, ...], tuple[Cut, ...]]:
    kept = prune(messages, kept_tool_results=policy.kept_tool_results) if policy.prune else messages
    if kept is messages:
        return tuple(messages), ()
    dropped = len(messages) - len(kept)
    cuts = (Cut(CutKind.PRUNED, Unit.MESSAGES, len(kept), dropped),) if dropped else ()
    return tuple(kept), (*cuts, *_reasoning_cut(messages, kept))


def _reasoning_cut(messages: Sequence[Message], kept: Sequence[Message]) -> tuple[Cut, ...]:
    """What the messages that stay have lost: old reasoning."""
    before = {message.number: len(message.content) for message in messages}
    left = sum(len(message.content) for message in kept)
    dropped = sum(before[message.number] for message in kept) - left
    return (Cut(CutKind.PRUNED, Unit.CODE_POINTS, left, dropped, "old reasoning"),) if dropped else ()


def _window_cut(split: int, total: int, detail: str) -> tuple[Cut, ...]:
    return (Cut(CutKind.HISTORY_WINDOW, Unit.MESSAGES, total - split, split, detail),) if split else ()
