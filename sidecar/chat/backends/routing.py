"""Which backend a role talks to: exact ids before prefixes, longer prefixes before shorter ones, ``*`` last. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sidecar.chat.backends.profile import Backend

Patterns = Callable[[Backend], tuple[str, ...]]


def turn_patterns(backend: Backend) -> tuple[str, ...]:
    """The roles whose turns it answers."""
    return backend.roles


def summary_patterns(backend: Backend) -> tuple[str, ...]:
    """The roles whose summaries it writes."""
    return backend.compaction_roles


def routed(role_id: str, backends: Iterable[Backend], patterns: Patterns = turn_patterns) -> Backend | None:
    """The backend with the most exact pattern for the role; of equal ones, the first by id. None where none fits."""
    best: tuple[int, str] | None = None
    chosen = None
    for backend in backends:
        fit = max((_exactness(pattern, role_id) for pattern in patterns(backend)), default=-1)
        if fit >= 0 and (best is None or (-fit, backend.backend_id) < best):
            best, chosen = (-fit, backend.backend_id), backend
    return chosen


def _exactness(pattern: str, role_id: str) -> int:
    """The larger, the more exact; -1 where the pattern does not fit."""
    if pattern == role_id:
        return len(pattern) + 1_000_000
    if pattern.endswith("*") and role_id.startswith(pattern[:-1]):
        return len(pattern) - 1
    return -1
