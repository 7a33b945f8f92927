"""Adding one save's files to another's: what is new is taken, what is the same is there already, and what differs is
passed over and told. Records are merged one by one.

A conversation, which is a history with the summary of what was folded of it, is taken where the actor has none:
messages are numbered in their own save, and two lives are not one conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidecar.memory.owner_records import Entry, OwnerRecords, kept_row, numbered, share_row_of
from sidecar.memory.sharing import merged_shares
from sidecar.saves.contents import counts_of
from sidecar.saves.layout import SAVE_FILE
from sidecar.saves.skipped import Skipped
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal

_RECORDS = "records.jsonl"
_CONVERSATION = ("history.jsonl", "summary.json")


def merge(
    disk: Disk, target: Path, source: Path, *, talking: Collection[str] = ()
) -> tuple[Counter[str], list[Skipped]]:
    """Add what lies in ``source`` to ``target``, both in the form of a save's folder; ``source`` is used up.

    ``talking`` are the names of the folders of actors whose conversation is in no file.
    """
    merged = _Merged(disk, Counter(), [], talking)
    for name in disk.names(source):
        if disk.is_folder(source / name):
            merged.add_actor(target / name, source / name)
        elif name != SAVE_FILE:
            merged.add(target / name, source / name, name)
    return merged.taken, merged.skipped


@dataclass(frozen=True)
class _Merged:
    """What was taken so far, and what was passed over."""

    disk: Disk
    taken: Counter[str]
    skipped: list[Skipped]
    talking: Collection[str]

    def add_actor(self, target: Path, source: Path) -> None:
        self.disk.make_folder(target)
        talked = source.name in self.talking or any(self.disk.exists(target / name) for name in _CONVERSATION)
        for name in self.disk.names(source):
            shown = f"{source.name}/{name}"
            if talked and name in _CONVERSATION and not self.disk.exists(target / name):
                self._pass_over(source / name, shown)
            else:
                self.add(target / name, source / name, shown)

    def add(self, target: Path, source: Path, shown: str) -> None:
        if not self.disk.exists(target):
            self.taken.update(counts_of(self.disk, source))
            self.disk.rename(source, target)
        elif self.disk.read(target) == self.disk.read(source):
            return
        elif source.name == _RECORDS:
            added, conflicts = _merge_records(self.disk, target, source)
            self.taken["records"] += added
            if conflicts:
                self.skipped.append(Skipped(shown, "record", "the id is used for other content here", conflicts))
        else:
            self._pass_over(source, shown)

    def _pass_over(self, source: Path, shown: str) -> None:
        self.skipped.append(Skipped(shown, source.name.partition(".")[0], "there is another one here"))


def _merge_records(disk: Disk, target: Path, source: Path) -> tuple[int, int]:
    """Append the records that ``target`` lacks, and who else knows those that it has; how many were added, and how many
    have an id that is used there."""
    journal = Journal(disk, target)
    known, incoming = _records(journal), OwnerRecords("")
    rows = [line.row for line in Journal(disk, source).load().lines]
    for row in rows:
        incoming.apply(row)
    fresh, shared, conflicts = [], [], 0
    for row in rows:
        came = incoming.entries.get(row["record"]["id"]) if row["op"] == "add" else None
        if came is None:
            continue
        entry = known.entries.get(came.head.record_id)
        if entry is None:
            fresh.append({name: value for name, value in kept_row(came, row).items() if name != "n"})
        elif entry.content_hash != came.content_hash:
            conflicts += 1
        else:
            shared += _further_shares(entry, came)
    if fresh or shared:
        journal.append(numbered([*fresh, *shared], known.last))
    return len(fresh), conflicts


def _further_shares(entry: Entry, came: Entry) -> list[dict[str, Any]]:
    """The row that tells who else knows a record, where there is anybody."""
    shares, changed = merged_shares(entry.shares, came.shares)
    return [share_row_of(entry.head.record_id, shares, came.revision)] if changed else []


def _records(journal: Journal) -> OwnerRecords:
    records = OwnerRecords("")
    for line in journal.load().lines:
        records.apply(line.row)
    return records
