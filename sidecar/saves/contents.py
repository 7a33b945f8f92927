"""Reading all that a prepared save holds before it becomes one: whether every file says what its name promises, and
how much of everything there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseError

from sidecar.chat.history import Caps, History
from sidecar.chat.history_store import take_row
from sidecar.chat.open_histories import OpenHistory
from sidecar.compaction.answers import Answers
from sidecar.compaction.summaries import summary_from_json
from sidecar.errors import LorekeeperError
from sidecar.memory.document_form import document_from_json
from sidecar.memory.groups import read_groups
from sidecar.memory.record_form import RecordForm
from sidecar.memory.record_wire import group_from, group_to, policy_from, policy_to
from sidecar.saves.archive import invalid
from sidecar.saves.settings_rules import check_settings, settings_to
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal
from sidecar.storage.json_file import as_written, read_json, stored_number
from sidecar.storage.keys import checked_id, folder_name
from sidecar.storage.save_state import about_from_json
from sidecar.wire import time_to

_Counts = Mapping[str, int]
UNREADABLE = (
    LorekeeperError,
    ParseError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)
_Look = Callable[[Disk, Path], _Counts]


def checked_contents(disk: Disk, folder: Path) -> Counter[str]:
    """How many ``actors``, ``documents``, ``versions``, ``messages``, ``summaries`` and ``records`` a save holds.

    Raises InvalidInput for a file that cannot be read, and for an actor in the folder of another.
    """
    counted: Counter[str] = Counter()
    for path in _files(disk, folder):
        try:
            counted.update(counts_of(disk, path))
        except UNREADABLE as error:
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


def _look_at_save(disk: Disk, path: Path) -> _Counts:
    stored = _object(disk, path)
    about = about_from_json(stored)
    time_to(about.created)
    for text in (stored["save_id"], about.forked_from, *about.timelines, *about.timelines.values()):
        checked_id(text, "id")
    for name in ("revision", "epoch"):
        stored_number(disk, path, stored, name)
    return {}


def _look_at_settings(disk: Disk, path: Path) -> _Counts:
    settings = {**_object(disk, path)["settings"]}
    check_settings(settings_to(settings))
    if None in settings.values():
        raise ValueError("what is absent is left out")
    return {}


def _look_at_groups(disk: Disk, path: Path) -> _Counts:
    groups = read_groups(disk, path, "")
    for group in groups.groups.values():
        group_from(group_to(group), "", "group", len(group.members))
    policies = [*groups.owners.values(), *([groups.retention] if groups.retention else [])]
    for policy in policies:
        policy_from(policy_to(policy), "policy")
    return {}


def _look_at_inbox(disk: Disk, path: Path) -> _Counts:
    raise ValueError("records that did not reach their owners: nothing that is whole holds any")


def _look_at_actor(disk: Disk, path: Path) -> _Counts:
    who = Actors(disk).in_folder(path.parent, "")
    if who is None or folder_name(who) != path.parent.name:
        raise ValueError("the folder belongs to another actor")
    return {"actors": 1}


def _look_at_document(disk: Disk, path: Path) -> _Counts:
    document = document_from_json(_object(disk, path))
    return {"documents": int(document.exists), "versions": len(document.versions)}


def _look_at_records(disk: Disk, path: Path) -> _Counts:
    form = RecordForm()
    for row in Journal(disk, path).raw_rows():
        form.take(row)
    return {"records": len(form.ids - form.archived)}


def _look_at_messages(disk: Disk, path: Path) -> _Counts:
    return {"messages": _conversation_rows(disk, path)}


def _look_at_summary(disk: Disk, path: Path) -> _Counts:
    return {"summaries": int(summary_from_json(_object(disk, path)).version > 0)}


def _look_at_rows(disk: Disk, path: Path) -> _Counts:
    for row in Journal(disk, path).raw_rows():
        as_written(row)
    return {}


def _look_at_object(disk: Disk, path: Path) -> _Counts:
    _object(disk, path)
    return {}


def _object(disk: Disk, path: Path) -> dict[str, Any]:
    return read_json(disk, path) or {}


def _conversation_rows(disk: Disk, path: Path) -> int:
    """How many of the rows are messages."""
    journal = Journal(disk, path)
    opened = OpenHistory(History(Caps(1, 1)), journal, Answers(1))
    rows = (row for data in journal.raw_rows() for row in take_row(opened, as_written(data)))
    return sum(row.number > 0 for row in rows)


_LOOKS: Mapping[str, _Look] = {
    "save.json": _look_at_save,
    "settings.json": _look_at_settings,
    "groups.json": _look_at_groups,
    "inbox.jsonl": _look_at_inbox,
    "inbox.old.jsonl": _look_at_inbox,
    "actor.json": _look_at_actor,
    "document.json": _look_at_document,
    "records.jsonl": _look_at_records,
    "history.jsonl": _look_at_messages,
    "summary.json": _look_at_summary,
}
