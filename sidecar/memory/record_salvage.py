"""What can still be read of a damaged ``records.jsonl``: every whole line that says something of what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sidecar.memory.owner_records import OwnerRecords
from sidecar.storage.check import Finding, check_lines
from sidecar.storage.disk import Disk


def check_records(disk: Disk, path: Path) -> Iterator[Finding]:
    """A finding where a line of ``records.jsonl`` cannot be read; mending keeps the others."""
    return check_lines(disk, path, _taken)


def _taken(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    records = OwnerRecords("")
    for row in rows:
        try:
            records.apply(row)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # what a lost line added cannot be shared by a later one
        yield row
