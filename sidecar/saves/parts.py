"""What the other rooms do when the files of a save are kept or exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sidecar.storage.forgetting import Who


class SavePart(Protocol):
    """A room that keeps something of a save. All calls come from a thread, while no disk work of the save runs."""

    def quiet(self, save: str) -> None:
        """Bring all that was acknowledged into files of the save's folder. Write nothing more of it until asked."""
        ...

    def exchanged(self, save: str) -> None:
        """The files of the save are others now, or are about to be: forget what is cached, and trust nothing that was
        derived from them. Called before an exchange and after it, so that a kill in between leaves nothing stale."""
        ...

    def save_erased(self, save: str) -> None:
        """The save is gone, or about to be: forget what is cached, and remove what was derived from it."""
        ...

    def save_counted(self, save: str) -> Mapping[str, int]:
        """How many things a save holds, by the names of the contract's Erasure (``documents``, ``records``, …)."""
        ...

    def forget_mentions(self, folder: Path, who: Who, *, dry_run: bool) -> bool:
        """Take erased actors out of what others keep in ``folder``, which has the form of a save's folder; whether
        anything had, or would have, to be rewritten."""
        ...


class SaveParts:
    """All of them as one."""

    def __init__(self, parts: Sequence[SavePart]) -> None:
        self._parts = parts

    def quiet(self, save: str) -> None:
        for part in self._parts:
            part.quiet(save)

    def exchanged(self, save: str) -> None:
        for part in self._parts:
            part.exchanged(save)

    def erased(self, save: str) -> None:
        for part in self._parts:
            part.save_erased(save)

    def counted(self, save: str) -> dict[str, int]:
        return {name: count for part in self._parts for name, count in part.save_counted(save).items()}

    def forget_mentions(self, folder: Path, who: Who, *, dry_run: bool) -> bool:
        """Every part does it, whatever the others had to do."""
        changed = [part.forget_mentions(folder, who, dry_run=dry_run) for part in self._parts]
        return any(changed)
