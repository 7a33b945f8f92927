"""Which saves and actors there are: one folder each, with the raw ids inside its own JSON.

    saves/s-<key>/save.json              {"format": 1, "save_id": "slot 1", "revision": 2000, "epoch": 0}
    saves/s-<key>/a-<key>/actor.json     {"format": 1, "actor_id": "mira", "role_id": "Merchant", …}

Nothing is made by reading: a folder appears with the first write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sidecar.errors import Corrupt, Reason
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.json_file import read_json, unreadable, write_json
from sidecar.storage.keys import ActorId, actor_folder, is_actor_folder, is_save_folder, ordinal, save_folder

_FORMAT = 1
# An erased folder is first renamed, so that a kill in the middle never leaves half an actor behind.
_ERASED = ".erased"


class Actors:
    """Makes, lists and erases actor folders. Calls for one actor are made one at a time by the caller."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._known: dict[ActorId, Path] = {}

    def folder(self, who: ActorId) -> Path:
        """The actor's folder, which may not exist yet."""
        return actor_folder(self._disk.root, who)

    def exists(self, who: ActorId) -> bool:
        """Whether anything was ever stored for this actor."""
        return who in self._known or self._disk.exists(self.folder(who) / "actor.json")

    def ensure(self, who: ActorId) -> Path:
        """The actor's folder, made with its ``actor.json`` where it is missing."""
        known = self._known.get(who)
        if known is not None:
            return known
        folder = self.folder(who)
        self._disk.make_folder(folder)
        stored = read_json(self._disk, folder / "actor.json")
        if stored is None:
            write_json(self._disk, folder / "actor.json", _written(who))
        elif _read(stored, who.save) != who:
            raise _disagrees(self._disk, folder / "actor.json")
        self._known[who] = folder
        return folder

    def put(self, who: ActorId) -> tuple[Path, Path]:
        """The actor's folder and its ``actor.json``, written anew: for an actor that another safe file vouches for."""
        folder = self.folder(who)
        self._disk.make_folder(folder)
        write_json(self._disk, folder / "actor.json", _written(who))
        return folder, folder / "actor.json"

    def of_save(
        self, save: str, *, after: str = "", damaged: Callable[[Corrupt], None] | None = None
    ) -> Iterator[ActorId]:
        """The actors of a save whose folders come after ``after``, in that order.

        An unreadable one is told to ``damaged`` and left out; it raises Corrupt where nobody wants to be told.
        """
        folder = save_folder(self._disk.root, save)
        for name in self._disk.names(folder):
            if is_actor_folder(name) and name > after:
                try:
                    who = self.in_folder(folder / name, save)
                except Corrupt as error:
                    if damaged is None:
                        raise
                    damaged(error)
                    continue
                if who is not None:
                    yield who

    def in_folder(self, folder: Path, save: str) -> ActorId | None:
        """The actor whose folder this is; None where it names none. An unreadable ``actor.json`` raises Corrupt."""
        stored = read_json(self._disk, folder / "actor.json")
        return None if stored is None else _read(stored, save)

    def saves(self) -> list[str]:
        """The ids of all saves that hold anything, sorted. Raises Corrupt where a ``save.json`` cannot be read."""
        root = self._disk.root / "saves"
        folders = (root / name for name in self._disk.names(root) if is_save_folder(name))
        ids = (self._save_in(folder / "save.json") for folder in folders)
        return sorted((save for save in ids if save is not None), key=ordinal)

    def _save_in(self, path: Path) -> str | None:
        stored = read_json(self._disk, path)
        if stored is None:
            return None
        if not isinstance(stored.get("save_id"), str):
            raise unreadable(self._disk, path)
        return str(stored["save_id"])

    def erase(self, who: ActorId) -> bool:
        """Remove all that is stored in the actor's folder; False where there was nothing."""
        folder = self.folder(who)
        doomed = folder.with_name(folder.name + _ERASED)
        existed = self._disk.exists(folder)
        self._known.pop(who, None)
        self._disk.remove(doomed)
        if existed:
            self._disk.rename(folder, doomed)
            self._disk.remove(doomed)
        return existed

    def forget_known(self) -> None:
        """Look at the disk again: folders were exchanged under us (a restore)."""
        self._known.clear()


def folders_of_actors(disk: Disk, folder: Path) -> set[str]:
    """The names of the actors' folders in ``folder``, which has the form of a save's; what a kill left of one that was
    being made or erased is none."""
    return {name for name in disk.names(folder) if is_actor_folder(name) and disk.exists(folder / name / "actor.json")}


def _written(who: ActorId) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "actor_id": who.actor,
        "role_id": who.role,
        "player_id": who.player,
        "topic_id": who.topic,
        "tenant_id": who.tenant,
    }


def _read(stored: dict[str, Any], save: str) -> ActorId:
    parts = (str(stored.get(f"{part}_id", "")) for part in ("actor", "role", "player", "topic", "tenant"))
    return ActorId(save, *parts)


def _disagrees(disk: Disk, path: Path) -> Corrupt:
    shown = shown_path(disk, path)
    return Corrupt(
        f"'{shown}' belongs to another actor; stop the daemon and run 'lorekeeper doctor'",
        reason=Reason.STORAGE_CORRUPT,
        file=shown,
    )
