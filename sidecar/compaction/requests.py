"""What requests of compaction must keep to; whatever does not is named with its limit."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.compaction.summaries import Summary
from sidecar.errors import InvalidInput, Reason, Stale
from sidecar.settings import CompactionSettings


def require_countable(texts: Sequence[str], limits: CompactionSettings) -> None:
    """Raises InvalidInput for no texts, or for more than one call may count."""
    if not texts:
        raise InvalidInput("texts is empty; give at least one", reason=Reason.FIELD_REQUIRED, field="texts")
    if len(texts) > limits.max_count_texts:
        raise InvalidInput(
            f"texts has {len(texts)} entries; at most {limits.max_count_texts} are allowed in one call",
            reason=Reason.TOO_MANY_ITEMS,
            field="texts",
            limit="compaction.max_count_texts",
            value=limits.max_count_texts,
        )
    if sum(map(len, texts)) > limits.max_count_chars:
        raise InvalidInput(
            f"texts have over {limits.max_count_chars} code points together; count them in several calls",
            reason=Reason.FIELD_TOO_LONG,
            field="texts",
            limit="compaction.max_count_chars",
            value=limits.max_count_chars,
        )


def require_version(present: Summary, expected: int | None) -> None:
    """Raises Stale where the caller knows another version."""
    if expected is not None and expected != present.version:
        raise Stale(
            f"the summary is at version {present.version}, not {expected}; read it again and repeat the call",
            reason=Reason.VERSION_MISMATCH,
            field="expected_version",
            current_version=present.version,
        )


def require_summary_length(text: str, most: int) -> None:
    """Raises InvalidInput for a summary that is too long."""
    if len(text) > most:
        raise InvalidInput(
            f"text has {len(text)} code points; at most {most} are allowed",
            reason=Reason.FIELD_TOO_LONG,
            field="text",
            limit="compaction.max_summary_chars",
            value=most,
        )
