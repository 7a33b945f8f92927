"""Folding without a model: each message becomes one line of the summary.

The lines that are cut off are not lost: every folded message goes whole into the archive, which Search reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from sidecar.compaction.clipping import newest_suffix
from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.compaction.marker import (
    BULLET_CHARS,
    StoredSummary,
    bullet,
    marker_for,
    split_marker,
    stamp,
)
from sidecar.compaction.messages import Message
from sidecar.compaction.tokens import TokenCounter
from sidecar.compaction.tool_blocks import flat_text

TITLE = "Previous conversation summary:"


class Failure(StrEnum):
    """Why a model did not write a summary."""

    FAILED = "failed"
    BLANK = "blank"
    TIMEOUT = "timeout"


@dataclass(frozen=True)
class ModelUse:
    """How often a model was asked, what that used, and why it was given up; 0 calls: none was asked."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failure: Failure | None = None


@dataclass(frozen=True)
class Folded:
    """A summary after a fold, what the fold cut, and what it asked of a model."""

    summary: StoredSummary
    cuts: tuple[Cut, ...] = ()
    use: ModelUse = field(default_factory=ModelUse)


class Fold(Protocol):
    """A way to fold messages into a summary, oldest first."""

    def __call__(
        self, stored: StoredSummary, messages: Sequence[Message], *, cap: int, counter: TokenCounter
    ) -> Folded: ...


def fold_as_bullets(stored: StoredSummary, messages: Sequence[Message], *, cap: int, counter: TokenCounter) -> Folded:
    """Appends a bullet for each message that is not blank. ``cap`` bounds the stored text in tokens; 0: no cap."""
    if not messages:
        return Folded(stored)
    body, _ = split_marker(stored.text)
    spoken = [message for message in messages if message.content.strip()]
    lines = [bullet(message) for message in spoken]
    text = "\n".join([body or TITLE, *lines]) if lines else body
    summary, cuts = seal(stored, text, messages, cap=cap, counter=counter)
    return Folded(summary, (*_bullet_cut(spoken), *cuts))


def seal(
    stored: StoredSummary, text: str, folded: Sequence[Message], *, cap: int, counter: TokenCounter
) -> tuple[StoredSummary, tuple[Cut, ...]]:
    """The text capped, stamped with the marker and numbered, ready to be stored."""
    capped = newest_suffix(text, cap, counter)
    _, earlier = split_marker(stored.text)
    numbers = [stored.folded_through, *(message.number for message in folded)]
    summary = StoredSummary(stamp(capped, marker_for(folded, earlier)), max(numbers))
    return summary, suffix_cut(CutKind.SUMMARY, text, capped, counter)


def rewritten(
    present: StoredSummary, text: str, *, cap: int, counter: TokenCounter, drop_marker: bool = False
) -> Folded:
    """The summary with its words replaced by a game. What was folded stays folded, unless the marker is to go.

    A text that brings its own marker, as one from elsewhere may, is taken with it.
    """
    body, own = split_marker(text)
    capped = newest_suffix(body, cap, counter)
    cuts = suffix_cut(CutKind.SUMMARY, body, capped, counter)
    if drop_marker or not capped:
        return Folded(StoredSummary(capped), cuts)
    hashes = own or split_marker(present.text)[1]
    stamped = stamp(capped, f"[fold:v1:{','.join(hashes)}]") if hashes else capped
    return Folded(StoredSummary(stamped, 0 if own else present.folded_through), cuts)


def visible_text(stored: StoredSummary) -> str:
    """The summary as a model or a person sees it."""
    return split_marker(stored.text)[0]


def suffix_cut(what: CutKind, before: str, after: str, counter: TokenCounter) -> tuple[Cut, ...]:
    """The cut of a text that was shortened to its newest part, in tokens; nothing when it was not."""
    if after == before:
        return ()
    kept = counter.count(after)
    return (Cut(what, Unit.TOKENS, kept, max(1, counter.count(before) - kept), "the oldest part was left out"),)


def lost_marker_cut(messages: int) -> tuple[Cut, ...]:
    """The cut of a fold that began anew with so many messages, as the marker fitted none; nothing for 0."""
    return (Cut(CutKind.FOLD_MARKER, Unit.MESSAGES, 0, messages, "folded once more"),) if messages else ()


def _bullet_cut(messages: Sequence[Message]) -> tuple[Cut, ...]:
    lengths = [len(flat_text(message)) for message in messages]
    clipped = [length for length in lengths if length > BULLET_CHARS]
    if not clipped:
        return ()
    dropped = sum(clipped) - BULLET_CHARS * len(clipped)
    detail = f"{len(clipped)} of {len(messages)} messages were shortened"
    return (Cut(CutKind.BULLET, Unit.CODE_POINTS, sum(lengths) - dropped, dropped, detail),)
