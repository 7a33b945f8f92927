"""Something that an import did not take, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skipped:
    """``path`` is the file within what was imported; ``reason`` is in plain words and holds no memory text."""

    path: str
    kind: str
    reason: str
    count: int = 1
