"""What can still be read of a damaged history, summary, ``roles.json`` or ``backends.json``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sidecar.chat.backends.store import BackendStore
from sidecar.chat.history import Caps, History
from sidecar.chat.history_store import take_row
from sidecar.chat.open_histories import OpenHistory
from sidecar.chat.role_store import RoleStore
from sidecar.compaction.answers import Answers
from sidecar.compaction.summaries import summary_from_json
from sidecar.errors import LorekeeperError
from sidecar.storage.check import Finding, check_lines, set_aside
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.journal import Journal
from sidecar.storage.json_file import read_json


def check_conversation(disk: Disk, path: Path) -> Iterator[Finding]:
    """A finding where a line of ``history.jsonl`` cannot be read; mending keeps the others."""
    return check_lines(disk, path, lambda rows: [row for row in rows if _can_be_taken(disk, path, row)])


def check_summary(disk: Disk, path: Path) -> Iterator[Finding]:
    """A finding where the summary cannot be read; without it the history is folded again."""
    try:
        summary_from_json(read_json(disk, path) or {})
    except Exception as error:
        yield Finding(
            file=shown_path(disk, path),
            problem=f"the summary cannot be read ({type(error).__name__})",
            remedy="begin without one: the stored history is folded again; keep the damaged file",
            mend=lambda: set_aside(disk, path),
        )


def check_roles(disk: Disk, path: Path) -> Iterator[Finding]:
    """A finding where the roles that calls have put cannot be read; mending begins without any."""
    return _check_put(disk, path, RoleStore(disk, max_roles=1).all, "roles")


def check_backends(disk: Disk, path: Path) -> Iterator[Finding]:
    """The same for backends."""
    return _check_put(disk, path, BackendStore(disk, max_backends=1).all, "backends")


def _check_put(disk: Disk, path: Path, read: Callable[[], object], what: str) -> Iterator[Finding]:
    try:
        read()
    except LorekeeperError:
        yield Finding(
            file=shown_path(disk, path),
            problem=f"the {what} in it cannot be read",
            remedy=f"begin without them, and put the {what} again; keep the damaged file",
            mend=lambda: set_aside(disk, path),
        )


def _can_be_taken(disk: Disk, path: Path, row: dict[str, Any]) -> bool:
    opened = OpenHistory(History(Caps(1, 1)), Journal(disk, path), Answers(1))
    try:
        take_row(opened, row)
    except (KeyError, TypeError, ValueError):
        return False
    return True
