"""Making a save of something from outside: prepared and checked beside, then put in its place at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

from sidecar.errors import AlreadyExists, InvalidInput, Reason
from sidecar.saves.archive import invalid
from sidecar.saves.checkpoint import Checkpoint, Kind, Wish
from sidecar.saves.contents import checked_contents
from sidecar.saves.layout import ANSWERS_FILE, SAVE_FILE
from sidecar.saves.merging import merge
from sidecar.saves.save_files import SaveFiles
from sidecar.saves.skipped import Skipped
from sidecar.saves.unpacking import unpack_save
from sidecar.settings import SavesSettings
from sidecar.storage.disk import Disk
from sidecar.storage.format import open_format
from sidecar.storage.json_file import read_json, write_json
from sidecar.storage.keys import DEFAULT_SAVE, ActorId, actor_folder, checked_id, save_folder
from sidecar.storage.save_state import SaveAbout, SaveState, SaveStates, about_from_json

_BEFORE = Wish(name="before an import", kind=Kind.SAFETY)


class Conflict(Enum):
    """What to do where the save exists already."""

    FAIL = auto()
    REPLACE = auto()
    MERGE = auto()


@dataclass(frozen=True)
class Source:
    """What a foreign format is read from: a zip file or a folder, below a workplace of the import's own."""

    place: Path
    archive: Path | None
    folder: Path | None
    save: str
    timeline: str


@dataclass(frozen=True)
class Prepared:
    """A save that lies in ``folder`` and is whole. ``about`` comes from where it was made."""

    save: str
    folder: Path
    about: SaveAbout
    taken: Counter[str]
    skipped: list[Skipped] = field(default_factory=list)


@dataclass(frozen=True)
class Imported:
    """What became of an import."""

    taken: Counter[str]
    skipped: list[Skipped]
    safety: Checkpoint | None = None


class Importer:
    """Prepares below a workplace of its own; nothing else is touched until :meth:`put`."""

    def __init__(
        self,
        disk: Disk,
        files: SaveFiles,
        states: SaveStates,
        limits: SavesSettings,
        *,
        unstored: Callable[[], Iterable[ActorId]],
        staying: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        """``unstored`` tells the actors of whom something lives in this process only, which is ``staying`` while the
        files of a save are exchanged for those with more in them."""
        self._disk = disk
        self._files = files
        self._states = states
        self._limits = limits
        self._unstored = unstored
        self._staying = staying

    def workplace(self) -> Path:
        """A new folder to prepare in; give it back with :meth:`leave`."""
        place = self._files.layout.workplace()
        self._disk.make_folder(place)
        return place

    def leave(self, place: Path) -> None:
        """Remove what is left of a workplace."""
        self._disk.remove(place)

    def check(self, save: str, conflict: Conflict) -> None:
        """Raise AlreadyExists where the save may not be touched."""
        if conflict is Conflict.FAIL and self._files.exists(save):
            raise AlreadyExists(
                "the save exists; choose another save_id, or import with REPLACE or MERGE",
                reason=Reason.SAVE_EXISTS,
                field="header.save_id",
            )

    def prepare(self, place: Path, archive: Path, save: str) -> Prepared:
        """Unpack and check an exported save; an empty ``save`` means the one that it was. Raises InvalidInput,
        LimitReached, NotReady."""
        disk = self._disk.below(place).unsynced()
        staged = place / "saves" / "unpacked"
        manifest = unpack_save(disk, archive, staged, self._limits)
        if not disk.exists(staged / SAVE_FILE):
            raise invalid("it has no save.json")
        target = save or checked_id(manifest.save, "save_id") or DEFAULT_SAVE
        folder = save_folder(place, target)
        disk.rename(staged, folder)
        write_json(disk, place / "format.json", {"format": manifest.store_format})
        open_format(disk)
        disk.remove(folder / ANSWERS_FILE)  # to calls on the save that it was
        taken = checked_contents(disk, folder)
        return Prepared(target, folder, about_from_json(read_json(disk, folder / SAVE_FILE) or {}), taken)

    def put(self, prepared: Prepared, conflict: Conflict) -> Imported:
        """Make it the save. Raises AlreadyExists."""
        save = prepared.save
        self.check(save, conflict)
        self._disk.sync_all(list(_files(self._disk, prepared.folder)))
        if conflict is Conflict.MERGE and self._files.exists(save):
            return self._merge(prepared)
        now = self._files.last_state(save)
        exists = self._files.exists(save)
        state = SaveState(now.revision + 1, now.epoch + exists)
        safety = self._files.exchange(save, lambda staged: self._move(prepared, staged, state), _BEFORE)
        return Imported(prepared.taken, prepared.skipped, safety)

    def _require_mergeable(self, prepared: Prepared) -> None:
        """Raise InvalidInput where moments would mean others: files keep the names that their save read as others."""
        theirs = prepared.about.timelines
        if theirs and theirs != self._states.about(prepared.save).timelines:
            raise InvalidInput(
                "a fork that goes on on a timeline of its own cannot be merged into a save that does not; import it as "
                "a save of its own",
                reason=Reason.FIELD_INVALID,
                field="header.conflict",
            )

    def compare(self, prepared: Prepared, conflict: Conflict) -> Imported:
        """What :meth:`put` would take and pass over; nothing is changed."""
        self.check(prepared.save, conflict)
        if conflict is not Conflict.MERGE or not self._files.exists(prepared.save):
            return Imported(prepared.taken, prepared.skipped)
        self._require_mergeable(prepared)
        place = self.workplace()
        try:
            copy = place / "merged"
            self._disk.clone(self._files.layout.live(prepared.save), copy)
            taken, skipped = merge(self._disk, copy, prepared.folder, talking=self._talking(prepared.save))
        finally:
            self.leave(place)
        return Imported(taken, [*prepared.skipped, *skipped])

    def _merge(self, prepared: Prepared) -> Imported:
        self._require_mergeable(prepared)
        save, merged = prepared.save, []
        state, about = self._states.state(save), self._states.about(save)

        def add_to(staged: Path) -> None:
            self._disk.clone(self._files.layout.live(save), staged)
            merged.append(merge(self._disk, staged, prepared.folder, talking=self._talking(save)))
            self._files.stamp(staged, save, SaveState(state.revision + 1, state.epoch), about)

        with self._staying(save):
            self._files.exchange(save, add_to, None)
        ((taken, skipped),) = merged
        return Imported(taken, [*prepared.skipped, *skipped])

    def _talking(self, save: str) -> set[str]:
        return {actor_folder(self._disk.root, who).name for who in self._unstored() if who.save == save}

    def _move(self, prepared: Prepared, staged: Path, state: SaveState) -> None:
        self._disk.rename(prepared.folder, staged)
        self._files.stamp(staged, prepared.save, state, prepared.about)


def _files(disk: Disk, folder: Path) -> Iterator[Path]:
    for name in disk.names(folder):
        if disk.is_folder(folder / name):
            yield from _files(disk, folder / name)
        else:
            yield folder / name
