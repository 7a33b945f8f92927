"""What a tool answered: whether it worked, what the model is told of it, and what the history keeps. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.chat.roles import ToolResults
from sidecar.compaction.clipping import clipped, one_line
from sidecar.compaction.cuts import Cut, CutKind, Unit

EMPTY = '{"ok": true, "empty": true}'
_FAILED_WORDS = ("failed", "failure", "error:", "exception")
_VERDICTS = ("ok", "success", "succeeded")
_MESSAGES = ("message", "Message", "error", "Error")
_ERRORS = ("error", "Error", "message", "Message")
_MAX_COMPACT = 240
_MAX_FULL = 2_000
_HEADING = "## Tool Results"


@dataclass(frozen=True)
class ToolOutcome:
    """What became of one call. ``result`` is whole; ``reason`` is empty unless it failed."""

    call_id: str
    name: str
    result: str
    succeeded: bool
    reason: str = ""
    duration_ms: float = 0.0
    duplicate: bool = False
    ran: bool = True


def succeeded(result: str) -> bool:
    """The verdict of a result's own words. A text that is written as a JSON string counts as that text."""
    value = _read(result)
    if isinstance(value, str):
        return not value.strip().casefold().startswith(_FAILED_WORDS)
    return _said_well(value) if isinstance(value, dict) else True


def _said_well(value: dict[str, Any]) -> bool:
    told = {name.casefold(): each for name, each in value.items()}
    if told.get("error") or told.get("iserror") is True:
        return False
    return not any(told.get(name) is False for name in _VERDICTS)


def shown_result(result: str, most: int) -> tuple[str, int]:
    """What the model sees of a result, and how many code points were left out; ``most`` 0: all."""
    if not result.strip():
        return EMPTY, 0
    if not most or len(result) <= most:
        return result, 0
    return f"{result[:most]}\n...[truncated: {len(result)} chars total -> {most} shown]", len(result) - most


def history_block(outcomes: Iterable[ToolOutcome], policy: ToolResults) -> tuple[str, tuple[Cut, ...]]:
    """The ``tool`` message of the history for a turn's calls; empty where it keeps none. Duplicates stand once.

    Beside it stands what was cut in it.
    """
    entries = dict(_entry(one, policy) for one in outcomes if not one.duplicate and _kept(one, policy))
    if not entries:
        return "", ()
    block, dropped = "\n".join([_HEADING, *entries]), sum(entries.values())
    cut = Cut(CutKind.TOOL_RESULT, Unit.CODE_POINTS, len(block), dropped, "tool results in the history")
    return block, (cut,) if dropped else ()


def _kept(outcome: ToolOutcome, policy: ToolResults) -> bool:
    return policy in (ToolResults.COMPACT, ToolResults.FULL) or (
        policy is ToolResults.ERRORS_ONLY and not outcome.succeeded
    )


def _entry(outcome: ToolOutcome, policy: ToolResults) -> tuple[str, int]:
    """One call's lines, and how many code points were cut in them."""
    head = f"- {outcome.name}: {'ok' if outcome.succeeded else 'FAILED'}"
    if policy is ToolResults.FULL:
        detail, dropped = _head_and_tail(outcome.result.strip())
        return "\n".join([head, "  Detail:", *(f"  {line}" for line in (detail or "(empty)").split("\n"))]), dropped
    detail, dropped = clipped(one_line(_told(outcome.result, _MESSAGES)), _MAX_COMPACT)
    return f"{head} {detail}".rstrip(), dropped


def told_error(result: str) -> str:
    """What a failed result says went wrong, on one line."""
    return one_line(_told(result, _ERRORS))


def _told(result: str, names: Sequence[str]) -> str:
    """The first of these fields that says anything, also where it is an object itself; else the whole result."""
    value = _read(result)
    told = _first_of(value, names) if isinstance(value, dict) else value if isinstance(value, str) else None
    inner = _first_of(told, names) if isinstance(told, dict) else None
    told = told if inner is None else inner
    text = result if told is None else told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8")  # escapes of JSON may hold halves of characters


def _first_of(value: dict[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if value.get(name) and value[name] is not True), None)


def _read(result: str) -> Any:
    """The value of a result that is JSON, else its text; a JSON string holds a result once more."""
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return result
    return _read(value) if isinstance(value, str) else value


def _head_and_tail(text: str) -> tuple[str, int]:
    if len(text) <= _MAX_FULL:
        return text, 0
    half, dropped = _MAX_FULL // 2, len(text) - _MAX_FULL
    return f"{text[:half]}\n...[truncated {dropped} chars]...\n{text[-half:]}", dropped
