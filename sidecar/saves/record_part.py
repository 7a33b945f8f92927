"""Records, groups and their derived index, as a part of a save."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidecar.memory.groups import GroupStore, matches, read_groups
from sidecar.memory.kept_answers import KeptAnswers
from sidecar.memory.record_store import RecordStore
from sidecar.memory.records import actor_of
from sidecar.saves.record_count import records_in
from sidecar.search.indexer import Indexer
from sidecar.search.indexes import Indexes
from sidecar.search.save_languages import SaveLanguages
from sidecar.search.views import Views
from sidecar.storage.actors import Actors, folders_of_actors
from sidecar.storage.disk import Disk
from sidecar.storage.forgetting import Who
from sidecar.storage.journal import Journal
from sidecar.storage.json_file import read_json, write_json
from sidecar.storage.keys import actor_folder, save_folder

_JOURNAL = "records.jsonl"
# Where records wait for a journal; those of a damaged one stay.
_INBOXES = ("inbox.jsonl", "inbox.old.jsonl")
_GROUPS = "groups.json"
Row = Mapping[str, Any]


class RecordPart:
    """Journals are the authority; whatever was derived from others is forgotten."""

    def __init__(
        self,
        disk: Disk,
        records: RecordStore,
        groups: GroupStore,
        indexes: Indexes,
        indexer: Indexer,
        views: Views,
        answers: KeptAnswers,
        *,
        languages: SaveLanguages,
    ) -> None:
        self._languages = languages
        self._disk = disk
        self._records = records
        self._groups = groups
        self._indexes = indexes
        self._indexer = indexer
        self._views = views
        self._answers = answers

    def quiet(self, save: str) -> None:
        """Move every acknowledged record to its journal, and have the index wait."""
        self._indexer.rest(save)
        self._records.settle(save)

    def exchanged(self, save: str) -> None:
        """Read the journals again; keep the words of the index, which are tied to what they were made from."""
        self._forget_cached(save)
        self._indexes.exchanged(save)

    def save_erased(self, save: str) -> None:
        """Remove the index, too."""
        self._forget_cached(save)
        self._indexes.removed(save)

    def save_counted(self, save: str) -> dict[str, int]:
        """How many records the save holds: from memory where it is in use or where some wait for their journal, else
        counted in the journals. Actors are those who have a folder, or who wait for one with their first records."""
        waiting = {actor_folder(self._disk.root, who).name for who in self._records.waiting_owners(save)}
        folder, catalog = save_folder(self._disk.root, save), self._records.catalog_at_hand(save)
        records = records_in(self._disk, folder) if catalog is None else catalog.total
        return {"records": records, "actors": len(waiting | folders_of_actors(self._disk, folder))}

    def forget_mentions(self, folder: Path, who: Who, *, dry_run: bool) -> bool:
        """Take erased actors out of groups, and out of whom records were shared with or told by. Where that is in the
        save itself, nobody who knows its journals as they were may read in them afterwards."""
        save = None if dry_run else self._save_in(folder)
        if save is not None:
            self.quiet(save)
            self._forget_cached(save)
        changed = self._forget_in_groups(folder / _GROUPS, who, dry_run)
        for name in _INBOXES:
            changed |= self._forget_in_journal(folder / name, who, dry_run)
        for name in self._disk.names(folder):
            if name.startswith("a-"):
                changed |= self._forget_in_journal(folder / name / _JOURNAL, who, dry_run)
        if changed and save is not None:
            self.save_erased(save)
        return changed

    def _save_in(self, folder: Path) -> str | None:
        """The save whose own folder it is; None for what is kept elsewhere."""
        stored = read_json(self._disk, folder / "save.json") if folder.parent == self._disk.root / "saves" else None
        return str(stored["save_id"]) if stored else None

    def _forget_cached(self, save: str) -> None:
        self._indexer.rest(save)
        self._records.exchanged(save)
        self._languages.forget(save)
        self._groups.forget_cached(save)
        self._views.forget(save)
        self._answers.forget(save)

    def _forget_in_groups(self, path: Path, who: Who, dry_run: bool) -> bool:
        stored = read_json(self._disk, path)
        if stored is None:
            return False
        read_groups(self._disk, path, "")  # which raises where a part of it is damaged
        groups = [
            {**group, "members": [one for one in group["members"] if not self._is_gone(path.parent, one, who)]}
            for group in stored["groups"]
        ]
        owners = [owner for owner in stored["owners"] if not _meant(owner[0], who)]
        changed: bool = groups != stored["groups"] or owners != stored["owners"]
        if changed and not dry_run:
            write_json(self._disk, path, {**stored, "groups": groups, "owners": owners})
        return changed

    def _is_gone(self, folder: Path, member: list[str], who: Who) -> bool:
        """Whether a pattern of members names whoever is meant, and nobody else who is in the folder."""
        if _meant(member, who):
            return True
        pattern, actor = actor_of(member, ""), who.actor
        if actor is None or not pattern.actor or not matches(pattern, actor._replace(save="")):
            return False
        inside = (folder / name for name in self._disk.names(folder) if name.startswith("a-"))
        others = (Actors(self._disk).in_folder(path, "") for path in inside)
        return not any(matches(pattern, other) for other in others if other and not who.meets(other))

    def _forget_in_journal(self, path: Path, who: Who, dry_run: bool) -> bool:
        if not self._disk.size(path) or not _may_hold(self._disk.read(path), who):
            return False
        journal = Journal(self._disk, path)
        rows = [line.row for line in journal.load().lines]
        kept = [_without(row, who) for row in rows if "owner" not in row or not _meant(row["owner"], who)]
        if kept != rows and not dry_run:
            journal.rewrite(kept)
        return kept != rows


def _may_hold(data: bytes, who: Who) -> bool:
    """Whether a journal can name whoever is meant: their id stands in it as it is written in JSON."""
    name = who.player if who.actor is None else who.actor.actor or who.actor.role
    return json.dumps(name, ensure_ascii=False).encode() in data


def _without(row: Row, who: Who) -> Row:
    """A row of a journal, or of an inbox, without shares that go to, or come from, whoever is meant."""
    changed = dict(row)
    if isinstance(row.get("record"), dict):
        changed["record"] = _without(row["record"], who)
    if "rows" in row:
        changed["rows"] = [_without(one, who) for one in row["rows"]]
    if "shares" in row:
        changed["shares"] = [_untold(share, who) for share in row["shares"] if not _meant(share["to"], who)]
    return changed


def _untold(share: Row, who: Who) -> Row:
    if "told_by" in share and _meant(share["told_by"], who):
        return {name: value for name, value in share.items() if name != "told_by"}
    return share


def _meant(address: list[str], who: Who) -> bool:
    return who.meets(actor_of(address, ""))
