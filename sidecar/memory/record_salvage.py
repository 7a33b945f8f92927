"""What can still be read of a damaged ``records.jsonl``: every whole line that says something of what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sidecar.memory.owner_records import OwnerRecords
from sidecar.storage.check import Finding, keep_and_replace
from sidecar.storage.disk import Disk
from sidecar.storage.journal import encode, whole_rows


def check_records(disk: Disk, path: Path) -> Iterator[Finding]:
    """A finding where a line cannot be read; mending keeps the others. A torn end is none: the daemon cuts it off."""
    rows, bad = whole_rows(disk.read(path))
    taken = list(_taken(rows))
    bad += len(rows) - len(taken)
    if bad:
        yield Finding(
            file=path.relative_to(disk.root).as_posix(),
            problem=f"{bad} of its lines cannot be read",
            remedy=f"go on with the {len(taken)} lines that can; keep the damaged file",
            mend=lambda: _mend(disk, path, taken),
        )


def _taken(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    records = OwnerRecords("")
    for row in rows:
        try:
            records.apply(row)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # what a lost line added cannot be shared by a later one
        yield row


def _mend(disk: Disk, path: Path, rows: list[dict[str, Any]]) -> None:
    keep_and_replace(disk, path, b"".join(encode([row]) for row in rows))
