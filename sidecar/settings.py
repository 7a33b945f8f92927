"""Every limit of the daemon in one place: name, default, minimum, maximum, unit, meaning.

A section is a frozen data class; ``daemon/config.py`` fills them from a file, the environment and flags, and
``lorekeeper serve --print-config`` lists them. Rooms receive their section and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def limit(default: float, low: float, high: float, unit: str, meaning: str) -> Any:
    """A number between ``low`` and ``high`` (both allowed)."""
    return field(
        default=default,
        metadata={"low": low, "high": high, "unit": unit, "meaning": meaning},
    )


def option(default: Any, meaning: str, *choices: str) -> Any:
    """A text or a switch; with ``choices``, one of them."""
    return field(default=default, metadata={"choices": choices, "meaning": meaning})


@dataclass(frozen=True)
class MemorySettings:
    """The explicit memory document and its tool."""

    max_document_chars: int = limit(200_000, 1_000, 2_000_000, "code points", "the longest document")
    max_versions: int = limit(30, 1, 1_000, "versions", "versions kept of a document")
    max_edits: int = limit(256, 1, 4_096, "edits", "edits in one EditDocument call")
    max_cached_chars: int = limit(
        4_000_000, 0, 1_000_000_000, "code points", "documents and versions kept in memory for reading"
    )
    kept_answers: int = limit(64, 1, 4_096, "answers", "answers kept per actor for idempotency keys")


@dataclass(frozen=True)
class StorageSettings:
    """How bytes reach the disk."""

    durability: str = option(
        "full",
        "full: success is told after fsync; relaxed: after the write (a power cut may lose the last second)",
        "full",
        "relaxed",
    )
    mode: str = option(
        "persistent",
        "persistent: the data folder; session: nothing touches the disk, all is gone at exit",
        "persistent",
        "session",
    )
