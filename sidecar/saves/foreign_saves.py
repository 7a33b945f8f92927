"""A save made of another system's files: prepared with the stores that make ours, in a workplace of its own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from sidecar.diagnostics import Report
from sidecar.memory.document_form import document_to_json
from sidecar.memory.record_catalog import OwnerFacts
from sidecar.memory.record_store import RecordStore
from sidecar.saves.coreai import Memory, read_memories
from sidecar.saves.foreign_files import ForeignFiles, foreign_files, shown
from sidecar.saves.importer import Prepared, Source
from sidecar.saves.opengameagent import read_records
from sidecar.saves.skipped import Skipped
from sidecar.settings import MemorySettings, RecordSettings, SavesSettings
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal
from sidecar.storage.json_file import write_json
from sidecar.storage.keys import DEFAULT_SAVE, ActorId, save_folder
from sidecar.storage.save_state import SaveAbout, SaveStates

_AT_ONCE = 1_000


class _Nothing:
    """No index knows anything of a save that is being made."""

    def facts(self, save: str) -> Mapping[str, tuple[ActorId, OwnerFacts]]:
        return {}


class ForeignSaves:
    """``known`` lists the actors of a save that exists, so that hashed keys find their owners."""

    def __init__(
        self,
        disk: Disk,
        limits: SavesSettings,
        memory: MemorySettings,
        records: RecordSettings,
        *,
        known: Callable[[str], list[ActorId]],
        report: Report,
    ) -> None:
        self._disk = disk
        self._limits = limits
        self._memory = memory
        self._records = records
        self._known = known
        self._report = report

    def coreai(self, source: Source) -> Prepared:
        """Documents, versions, histories and summaries. Raises InvalidInput, LimitReached."""
        disk = self._disk.below(source.place).unsynced()
        save = source.save or DEFAULT_SAVE
        with foreign_files(self._disk, source.archive, source.folder, self._limits) as files:
            memories, skipped = read_memories(files, save, self._known(save), self._memory)
            skipped += _links(files)
        SaveStates(disk).ensure(save)
        taken: Counter[str] = Counter()
        for who, memory in memories.items():
            taken.update(_keep(disk, who, memory))
        return self._prepared(disk, save, taken, skipped)

    def opengameagent(self, source: Source) -> Prepared:
        """Records. Raises InvalidInput, LimitReached."""
        disk = self._disk.below(source.place).unsynced()
        with foreign_files(self._disk, source.archive, source.folder, self._limits) as files:
            save, records, skipped = read_records(files, source.save, source.timeline, self._records)
            skipped += _links(files)
        save = save or DEFAULT_SAVE
        states = SaveStates(disk)
        states.ensure(save)
        store = RecordStore(
            disk,
            Actors(disk),
            states,
            self._records,
            known=_Nothing(),
            retention=lambda _: None,
            report=self._report,
        )
        for start in range(0, len(records), _AT_ONCE):
            store.add(save, records[start : start + _AT_ONCE])
        store.settle(save)
        owners = len({who for who, _ in records})
        return self._prepared(disk, save, Counter(actors=owners, records=len(records)), skipped)

    def _prepared(self, disk: Disk, save: str, taken: Counter[str], skipped: list[Skipped]) -> Prepared:
        return Prepared(save, save_folder(disk.root, save), SaveAbout(created=time.time()), taken, skipped)


def _links(files: ForeignFiles) -> list[Skipped]:
    return [Skipped(shown(name), "link", "is a link or a device, which is never followed") for name in files.links]


def _keep(disk: Disk, who: ActorId, memory: Memory) -> Mapping[str, int]:
    """Write what one actor remembers; how much of what that is."""
    document = memory.document if memory.document and memory.document.exists else None
    if not (document or memory.rows or memory.summary):
        return {}
    folder = Actors(disk).ensure(who)
    if document:
        write_json(disk, folder / "document.json", document_to_json(document))
    if memory.rows:
        Journal(disk, folder / "history.jsonl").append(memory.rows)
    if memory.summary:
        write_json(disk, folder / "summary.json", {"format": 1, "Summary": memory.summary, "version": 1})
    return {
        "actors": 1,
        "documents": int(document is not None),
        "versions": len(document.versions) if document else 0,
        "messages": sum("m" in row for row in memory.rows),
        "summaries": int(bool(memory.summary)),
    }
