"""What requests of compaction must keep to; whatever does not is named with its limit."""

from __future__ import annotations

from collections.abc import Sequence

from sidecar.bounds import Bound, require_count, require_some
from sidecar.compaction.summaries import Summary
from sidecar.errors import InvalidInput, Reason, Stale
from sidecar.settings import CompactionSettings


def require_countable(texts: Sequence[str], limits: CompactionSettings) -> None:
    """Raises InvalidInput for no texts, or for more than one call may count."""
    require_some(len(texts), "texts")
    require_count(len(texts), "texts", Bound("compaction.max_count_texts", limits.max_count_texts))
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
