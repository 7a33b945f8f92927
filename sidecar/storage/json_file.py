"""One JSON object in one file, replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidecar.errors import Corrupt, Reason
from sidecar.storage.disk import Disk, shown_path

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def read_json(disk: Disk, path: Path) -> dict[str, Any] | None:
    """The object in ``path``, or None where there is no file. Raises Corrupt where it cannot be read."""
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return None
    try:
        value = as_written(data)
    except (ValueError, RecursionError) as error:
        raise unreadable(disk, path) from error
    if not isinstance(value, dict):
        raise unreadable(disk, path)
    return value


def stored_number(disk: Disk, path: Path, stored: Mapping[str, Any], name: str) -> int:
    """The whole number under ``name`` in what was read from ``path``. Raises Corrupt where there is none."""
    value = stored.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise unreadable(disk, path)
    return value


def objects_in(stored: Mapping[str, Any] | None, name: str) -> list[dict[str, Any]]:
    """The list of objects under ``name``; empty where nothing is stored. Raises ValueError where there is none."""
    if stored is None:
        return []
    found = stored.get(name)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError(f"{name} is no list of objects")
    return found


def write_json(disk: Disk, path: Path, value: Mapping[str, Any]) -> None:
    """Replace ``path`` by ``value``; returns once it is safe."""
    disk.replace(path, dump(value))


def dump(value: Any) -> bytes:
    """Compact UTF-8 JSON, the form of every file and journal line."""
    return _compact(value).encode("utf-8")


def as_written(data: bytes) -> Any:
    """The JSON value in ``data``. Raises ValueError or RecursionError for what :func:`dump` never writes: a name twice
    in one object, a number that is none, half a character."""
    value = _DECODER.decode(data.decode("utf-8"))
    if b"\\ud" in data or b"\\uD" in data:
        dump(value)
    return value


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An ``object_pairs_hook`` that refuses a name that stands twice in one object (ValueError)."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=unique_names, parse_constant=_no_number)


def unreadable(
    disk: Disk,
    path: Path,
    remedy: str = "stop the daemon and run 'lorekeeper repair'",
    *,
    reason: Reason = Reason.STORAGE_CORRUPT,
) -> Corrupt:
    """What to raise where ``path`` does not hold what it should; ``remedy`` says what to do."""
    shown = shown_path(disk, path)
    return Corrupt(f"'{shown}' cannot be read and was left as it is; {remedy}", reason=reason, file=shown)
