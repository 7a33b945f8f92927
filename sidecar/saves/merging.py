"""Adding one save's files to another's: what is new is taken, what is the same is there already, and what differs is
passed over and told. Records are merged one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from sidecar.memory.owner_records import OwnerRecords, numbered
from sidecar.saves.contents import counts_of
from sidecar.saves.layout import SAVE_FILE
from sidecar.saves.skipped import Skipped
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal

_RECORDS = "records.jsonl"


def merge(disk: Disk, target: Path, source: Path) -> tuple[Counter[str], list[Skipped]]:
    """Add what lies in ``source`` to ``target``, both in the form of a save's folder; ``source`` is used up."""
    taken: Counter[str] = Counter()
    skipped: list[Skipped] = []
    for name in disk.names(source):
        if name == SAVE_FILE:
            continue
        if not disk.is_folder(source / name):
            _merge_file(disk, target / name, source / name, name, taken, skipped)
            continue
        disk.make_folder(target / name)
        for file in disk.names(source / name):
            _merge_file(disk, target / name / file, source / name / file, f"{name}/{file}", taken, skipped)
    return taken, skipped


def _merge_file(
    disk: Disk, target: Path, source: Path, shown: str, taken: Counter[str], skipped: list[Skipped]
) -> None:
    if not disk.exists(target):
        taken.update(counts_of(disk, source))
        disk.rename(source, target)
    elif disk.read(target) == disk.read(source):
        return
    elif source.name == _RECORDS:
        added, conflicts = _merge_records(disk, target, source)
        taken["records"] += added
        if conflicts:
            skipped.append(Skipped(shown, "record", "the id is used for other content here", conflicts))
    else:
        skipped.append(Skipped(shown, source.name.partition(".")[0], "there is another one here"))


def _merge_records(disk: Disk, target: Path, source: Path) -> tuple[int, int]:
    """Append the records that ``target`` lacks; how many were added, and how many have an id that is used there."""
    journal = Journal(disk, target)
    known = _records(journal)
    fresh, conflicts = [], 0
    incoming = OwnerRecords("")
    rows = [line.row for line in Journal(disk, source).load().lines]
    for row in rows:
        incoming.apply(row)
    for row in rows:
        record_id = row["record"]["id"] if row["op"] == "add" else None
        if record_id is None or record_id not in incoming.entries:
            continue
        entry = known.entries.get(record_id)
        if entry is None:
            fresh.append({name: value for name, value in row.items() if name != "n"})
        conflicts += entry is not None and entry.content_hash != row["hash"]
    if fresh:
        journal.append(numbered(fresh, known.last))
    return len(fresh), conflicts


def _records(journal: Journal) -> OwnerRecords:
    records = OwnerRecords("")
    for line in journal.load().lines:
        records.apply(line.row)
    return records
