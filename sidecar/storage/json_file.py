"""One JSON object in one file, replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidecar.errors import Corrupt, Reason
from sidecar.storage.disk import Disk

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def read_json(disk: Disk, path: Path) -> dict[str, Any] | None:
    """The object in ``path``, or None where there is no file. Raises Corrupt where it cannot be read."""
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return None
    try:
        value = json.loads(data, object_pairs_hook=unique_names)
    except (ValueError, RecursionError) as error:
        raise _unreadable(disk, path) from error
    if not isinstance(value, dict):
        raise _unreadable(disk, path)
    return value


def stored_number(disk: Disk, path: Path, stored: Mapping[str, Any], name: str) -> int:
    """The whole number under ``name`` in what was read from ``path``. Raises Corrupt where there is none."""
    value = stored.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unreadable(disk, path)
    return value


def write_json(disk: Disk, path: Path, value: Mapping[str, Any]) -> None:
    """Replace ``path`` by ``value``; returns once it is safe."""
    disk.replace(path, dump(value))


def dump(value: Mapping[str, Any]) -> bytes:
    """Compact UTF-8 JSON, the form of every file and journal line."""
    return _compact(value).encode("utf-8")


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An ``object_pairs_hook`` that refuses a name that stands twice in one object (ValueError)."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result


def _unreadable(disk: Disk, path: Path) -> Corrupt:
    shown = path.relative_to(disk.root).as_posix()
    return Corrupt(
        f"'{shown}' cannot be read and was left as it is; stop the daemon and run 'lorekeeper repair'",
        reason=Reason.STORAGE_CORRUPT,
        file=shown,
    )
