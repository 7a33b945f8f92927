"""Cuts: everything that was shortened, folded, left out or counted by a fallback, told as data.

A cut never carries the text that was cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sidecar.diagnostics import Diagnostic, Severity


class CutKind(StrEnum):
    """What was cut. The wire carries the value."""

    BULLET = "bullet"
    """A message that was shortened to fit a line of the summary."""
    HISTORY_WINDOW = "history_window"
    """Messages that are not sent verbatim; ``detail`` says whether the summary holds them."""
    PRUNED = "pruned_messages"
    """Repeats, old reasoning and old tool results left out of the prompt's copy."""
    HISTORY_CAP = "history_cap"
    """Messages that left the history because it is full; ``detail`` says where they are."""
    TRANSCRIPT_CAP = "transcript_cap"
    """Rows that left the transcript because it is full."""
    SUMMARY = "summary"
    """The stored summary, shortened to its cap, or a summariser's answer shortened to its own."""
    SUMMARY_REQUEST = "summary_request"
    """The summary's copy in the prompt, shortened to its reserve."""
    SUMMARY_LINE = "summary_line"
    """Dialogue lines shortened for the summariser."""
    SUMMARY_PAYLOAD = "summary_payload"
    """The earlier summary, shortened for a summariser with a small window."""
    DEFERRED_FOLD = "deferred_fold"
    """Messages folded as bullets because one compaction may only make so many calls."""
    SUMMARISER = "summariser"
    """Messages folded as bullets because the summariser failed or no backend can write summaries."""
    FOLD_MARKER = "fold_marker"
    """The summary's marker names none of the stored messages: they are folded once more."""
    TOOL_DESCRIPTION = "tool_description"
    """The description of a tool of the game, shortened for the model."""
    RECALLED = "recalled"
    """Recalled records left out to keep to their token budget."""
    WINDOW = "window"
    """The parts that cannot be cut are larger than the model's window."""
    TOOL_SCHEMA = "tool_schema"
    """The schema of a tool of the game, shortened in a refusal of its arguments."""
    TOOL_RESULT = "tool_result"
    """A tool's result, shortened for the model."""
    TOOL_HISTORY = "tool_history"
    """Older tool results of a turn that are not sent again."""
    RESPONSE = "response"
    """An answer that is longer than its role allows."""
    TOKENIZER = "tokenizer"
    """The exact tokenizer could not be used; an estimate counted instead."""


_LOSSES = {CutKind.SUMMARY, CutKind.SUMMARISER, CutKind.DEFERRED_FOLD, CutKind.FOLD_MARKER, CutKind.WINDOW}


class Unit(StrEnum):
    """What the numbers of a cut count."""

    CODE_POINTS = "code_points"
    TOKENS = "tokens"
    MESSAGES = "messages"
    ROWS = "rows"
    HITS = "hits"


@dataclass(frozen=True)
class Cut:
    """How much of something is left and how much is not, in ``unit``."""

    what: CutKind
    unit: Unit
    kept: int
    dropped: int
    detail: str = ""

    def to_json(self) -> list[Any]:
        """As an answer that is kept for a retry holds it."""
        return [self.what, self.unit, self.kept, self.dropped, self.detail]


def cut_from_json(value: list[Any]) -> Cut:
    """What :meth:`Cut.to_json` wrote."""
    what, unit, kept, dropped, detail = value
    return Cut(CutKind(what), Unit(unit), kept, dropped, detail)


def cut_told(cut: Cut) -> Diagnostic:
    """The cut of a fold as a diagnostic."""
    return Diagnostic(
        f"cut_{cut.what}",
        f"a compaction kept {cut.kept} and dropped {cut.dropped} {cut.unit}"
        + (f": {cut.detail}" if cut.detail else ""),
        Severity.WARNING if cut.what in _LOSSES else Severity.INFORMATION,
        {"kept": str(cut.kept), "dropped": str(cut.dropped), "unit": cut.unit},
    )
