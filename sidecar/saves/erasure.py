"""Forgetting an actor or a player where the other rooms do not look: in checkpoints, in what repair kept and in
backups, and in what other actors keep about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sidecar.errors import LorekeeperError
from sidecar.memory.actor_files import ActorFiles, Vectors
from sidecar.saves.layout import FILES
from sidecar.saves.parts import SaveParts
from sidecar.saves.save_files import SaveFiles
from sidecar.storage.actors import Actors
from sidecar.storage.cloning import PASSING
from sidecar.storage.disk import Disk
from sidecar.storage.forgetting import Who
from sidecar.storage.keys import ActorId, actor_folder


@dataclass(frozen=True, slots=True)
class Doomed:
    """A whole save, or whoever is meant in it."""

    save: str
    who: Who | None = None


class ActorCopies:
    """What lies of an actor outside of its own folder; ``memory/actor_files.py`` asks it like every other room."""

    def __init__(self, disk: Disk, actors: Actors, files: SaveFiles, parts: SaveParts) -> None:
        self._disk = disk
        self._actors = actors
        self._files = files
        self._parts = parts

    def settle(self, save: str) -> None:
        """Nothing waits here for a folder."""

    def counted(self, who: ActorId) -> dict[str, int]:
        """How many checkpoints hold the actor."""
        name = actor_folder(self._disk.root, who).name
        held = (self._disk.exists(folder / name) for folder in self._checkpoints(who.save).values())
        return {"checkpoints_rewritten": sum(held)}

    def erased(self, who: ActorId) -> None:
        """Forget the actor in all that is kept of the save."""
        self.forget(who.save, Who(actor=who))

    def forget(self, save: str, who: Who, *, dry_run: bool = False) -> int:
        """Forget whoever is meant, but for their own folders in the save; how many checkpoints were, or would be,
        rewritten for it."""
        names = self._meant(save, who)
        rewritten = 0
        store = self._files.checkpoints
        for checkpoint_id, folder in self._checkpoints(save).items():
            if self._holds(folder, names, who) or store.half_rewritten(save, checkpoint_id):
                rewritten += 1
                if not dry_run:
                    with store.rewriting(save, checkpoint_id):
                        self._clean(folder, names, who)
        if not dry_run:
            self._forget_elsewhere(save, names, who)
        return rewritten

    def _forget_elsewhere(self, save: str, names: Iterable[str], who: Who) -> None:
        layout = self._files.layout
        self._remove_unfinished(layout.live(save))
        self._parts.forget_mentions(layout.live(save), who, dry_run=False)
        for folder in self._other_copies(save):
            self._clean(folder, names, who)
        for export in layout.exports(self._disk, save):
            layout.set_aside(self._disk, export)
        layout.sweep(self._disk)

    def _remove_unfinished(self, folder: Path) -> None:
        """Remove what a kill left of writes and erasures below a folder."""
        for name in self._disk.names(folder):
            if name.endswith(PASSING):
                self._disk.remove(folder / name)
            elif self._disk.is_folder(folder / name):
                self._remove_unfinished(folder / name)

    def _meant(self, save: str, who: Who) -> set[str]:
        """The names of the folders of whoever is meant, in the save or any of its checkpoints."""
        if who.actor is not None:
            return {actor_folder(self._disk.root, who.actor).name}
        places = [self._files.layout.live(save), *self._checkpoints(save).values()]
        return {name for place in places for name in self._disk.names(place) if self._is_meant(place / name, who)}

    def _is_meant(self, folder: Path, who: Who) -> bool:
        if not folder.name.startswith("a-"):
            return False
        try:
            found = self._actors.in_folder(folder, "")
        except LorekeeperError:
            return False
        return found is not None and who.meets(found)

    def _holds(self, folder: Path, names: set[str], who: Who) -> bool:
        own = any(self._disk.exists(folder / name) for name in names)
        return own or self._parts.forget_mentions(folder, who, dry_run=True)

    def _clean(self, folder: Path, names: Iterable[str], who: Who) -> None:
        for name in names:
            self._files.layout.set_aside(self._disk, folder / name)
        self._parts.forget_mentions(folder, who, dry_run=False)

    def _checkpoints(self, save: str) -> dict[str, Path]:
        store = self._files.checkpoints
        return {checkpoint_id: store.files(save, checkpoint_id) for checkpoint_id in store.ids(save)}

    def _other_copies(self, save: str) -> Iterator[Path]:
        """Folders in the form of a save's in what repair kept and in backups."""
        for folder in self._files.copies(save):
            yield folder
            yield from (folder / name / FILES for name in self._disk.names(folder) if name.startswith("c-"))


class Erasure:
    """Forgetting a save, an actor or a player in all that is kept. Every step may be done again.

    Vectors go first: as long as the records are there, it is known which texts are theirs alone.
    """

    def __init__(
        self,
        actors: Actors,
        actor_files: ActorFiles,
        copies: ActorCopies,
        files: SaveFiles,
        vectors: Vectors,
        *,
        unstored: Callable[[], Iterable[ActorId]],
    ) -> None:
        """``unstored`` tells the actors of whom something lives in this process only, whether they have a folder or
        not."""
        self._unstored = unstored
        self._actors = actors
        self._actor_files = actor_files
        self._copies = copies
        self._files = files
        self._vectors = vectors

    def saves(self) -> list[str]:
        """All saves of which anything is kept, sorted."""
        return sorted({*self._files.saves(), *(who.save for who in self._unstored())})

    def erase(self, doomed: Doomed, *, dry_run: bool = False) -> Mapping[str, int] | None:
        """What was, or would be, removed; None where there is nothing of whoever is meant."""
        if doomed.who is None:
            return self._erase_save(doomed.save, dry_run)
        if doomed.who.actor is not None:
            return self._actor_files.erase(doomed.who.actor, dry_run=dry_run)
        return self._forget(doomed.save, doomed.who, dry_run)

    def _erase_save(self, save: str, dry_run: bool) -> Mapping[str, int] | None:
        held, texts = self._measure(save), self._vectors.doomed(save)
        vectors = len(texts) if dry_run else self._vectors.remove(save, texts)
        removed = self._files.erase(save, dry_run=dry_run) or {}
        for who in () if dry_run else self._unstored_of(save):
            self._actor_files.erase(who)
        return {**held, **removed, "checkpoints_rewritten": 0, "vectors": vectors} if removed or held else None

    def _measure(self, save: str) -> Counter[str]:
        """How much all actors of a save hold together, as far as they can be read."""
        held: Counter[str] = Counter()
        with suppress(LorekeeperError):
            for who in self._of_save(save):
                held.update(self._actor_files.measure(who) or {})
        return held

    def _of_save(self, save: str) -> Iterator[ActorId]:
        """The actors of a save. Raises Corrupt at one who cannot say who it is."""
        unstored = self._unstored_of(save)
        yield from unstored
        yield from (who for who in self._actors.of_save(save) if who not in unstored)

    def _unstored_of(self, save: str) -> list[ActorId]:
        return [who for who in self._unstored() if who.save == save]

    def _forget(self, save: str, who: Who, dry_run: bool) -> Mapping[str, int] | None:
        """Forget a player in a save."""
        removed: Counter[str] = Counter(checkpoints_rewritten=self._copies.forget(save, who, dry_run=dry_run))
        for actor in [actor for actor in self._of_save(save) if who.meets(actor)]:
            counted = self._actor_files.erase(actor, dry_run=dry_run)
            removed.update({name: count for name, count in (counted or {}).items() if name != "checkpoints_rewritten"})
        return removed if any(removed.values()) else None
