"""Reading all that a prepared save holds before it becomes one: whether every file says what its name promises, and
how much of everything there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sidecar.errors import LorekeeperError
from sidecar.memory.document_store import document_from_json
from sidecar.memory.owner_records import OwnerRecords
from sidecar.saves.archive import invalid
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal
from sidecar.storage.json_file import read_json
from sidecar.storage.keys import folder_name

_Counts = Mapping[str, int]
_Look = Callable[[Disk, Path], _Counts]


def checked_contents(disk: Disk, folder: Path) -> Counter[str]:
    """How many ``actors``, ``documents``, ``versions``, ``messages``, ``summaries`` and ``records`` a save holds.

    Raises InvalidInput for a file that cannot be read, and for an actor in the folder of another.
    """
    counted: Counter[str] = Counter()
    for path in _files(disk, folder):
        try:
            counted.update(counts_of(disk, path))
        except (LorekeeperError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise invalid(f"'{path.relative_to(folder).as_posix()}' in it cannot be read") from error
    return counted


def counts_of(disk: Disk, path: Path) -> Mapping[str, int]:
    """How much of what one file holds. Raises LorekeeperError, KeyError, TypeError or ValueError where it cannot be
    read."""
    look = _LOOKS.get(path.name, _look_at_rows if path.suffix == ".jsonl" else _look_at_object)
    return look(disk, path)


def _files(disk: Disk, folder: Path) -> Iterator[Path]:
    for name in disk.names(folder):
        path = folder / name
        if not disk.is_folder(path):
            yield path
            continue
        if not disk.exists(path / "actor.json"):
            raise invalid(f"'{name}' in it does not say whose it is")
        yield from (path / inner for inner in disk.names(path))


def _look_at_actor(disk: Disk, path: Path) -> _Counts:
    who = Actors(disk).in_folder(path.parent, "")
    if who is None or folder_name(who) != path.parent.name:
        raise ValueError("the folder belongs to another actor")
    return {"actors": 1}


def _look_at_document(disk: Disk, path: Path) -> _Counts:
    document = document_from_json(_object(disk, path))
    return {"documents": int(document.exists), "versions": len(document.versions)}


def _look_at_records(disk: Disk, path: Path) -> _Counts:
    records = OwnerRecords("")
    for line in _rows(disk, path):
        records.apply(line)
    return {"records": len(records.entries) - records.archived}


def _look_at_messages(disk: Disk, path: Path) -> _Counts:
    return {"messages": len(_rows(disk, path))}


def _look_at_summary(disk: Disk, path: Path) -> _Counts:
    _object(disk, path)
    return {"summaries": 1}


def _look_at_rows(disk: Disk, path: Path) -> _Counts:
    _rows(disk, path)
    return {}


def _look_at_object(disk: Disk, path: Path) -> _Counts:
    _object(disk, path)
    return {}


def _object(disk: Disk, path: Path) -> dict[str, Any]:
    return read_json(disk, path) or {}


def _rows(disk: Disk, path: Path) -> list[dict[str, Any]]:
    """The rows of a journal; a torn end is as bad here as a bad line: nothing was being written."""
    loaded = Journal(disk, path).load()
    if loaded.torn is not None:
        raise ValueError("the journal is cut short")
    return [line.row for line in loaded.lines]


_LOOKS: Mapping[str, _Look] = {
    "actor.json": _look_at_actor,
    "document.json": _look_at_document,
    "records.jsonl": _look_at_records,
    "history.jsonl": _look_at_messages,
    "summary.json": _look_at_summary,
}
