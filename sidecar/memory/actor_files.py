"""The actors of a save as a whole: who there is, how much is kept of each, and forgetting one completely."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import Corrupt
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.keys import ActorId
from sidecar.storage.save_state import SaveStates

# What ListActors tells of an actor; the other counts are told by an erasure.
_LISTED = ("records", "messages", "archived")
# What an erasure tells as one number.
_ERASED_AS = {"rows": "messages", "archived": "messages"}


class ActorPart(Protocol):
    """What one room keeps of an actor."""

    def counted(self, who: ActorId) -> Mapping[str, int]:
        """How many things are kept, by the names of the contract's Erasure (``documents``, ``records``, …).

        Beside its ``messages``, ``rows`` are further rows of a transcript and ``archived`` messages of an archive.
        """
        ...

    def erased(self, who: ActorId) -> None:
        """Forget what is cached, and what lies outside of the actor's folder: the folder is gone."""
        ...


class Vectors(Protocol):
    """The vectors of texts, which all records share that have the same text."""

    def doomed(self, save: str, owner: ActorId | None = None) -> list[bytes]:
        """The texts with a vector that only an owner, or a whole save, has."""
        ...

    def remove(self, save: str, texts: Sequence[bytes]) -> int:
        """Remove the vectors of texts, and what is in memory of a save; how many there were."""
        ...


class ActorFiles:
    """Every room that keeps something of an actor is one of ``parts``."""

    def __init__(
        self,
        disk: Disk,
        actors: Actors,
        saves: SaveStates,
        parts: Sequence[ActorPart],
        *,
        vectors: Vectors,
        settle: Callable[[str], None],
        report: Report,
    ) -> None:
        """``settle`` brings what is safe elsewhere into the folders of a save's actors."""
        self._disk = disk
        self._actors = actors
        self._saves = saves
        self._parts = parts
        self._vectors = vectors
        self._settle = settle
        self._report = report

    def actors(self, save: str, *, role: str, player: str, after: str) -> Iterator[ActorId]:
        """The actors of a save in a stable order, those of one role or one player where these are not empty.

        ``after`` is the :meth:`key` of the last one that is known already. One whose ``actor.json`` is damaged cannot
        say who it is: it is left out, and a diagnostic tells of it.
        """
        self._settle(save)
        for who in self._actors.of_save(save, after=after, damaged=self._damaged):
            if role in ("", who.role) and player in ("", who.player):
                yield who

    def key(self, who: ActorId) -> str:
        """What the order of :meth:`actors` goes by."""
        return self._actors.folder(who).name

    def counts(self, who: ActorId) -> dict[str, int]:
        """What ListActors tells of an actor besides its document."""
        counted = self._counted(who)
        listed = {name: counted[name] for name in _LISTED if name in counted}
        return listed | {"has_summary": counted.get("summaries", 0) > 0, "bytes": self._bytes(who)}

    def measure(self, who: ActorId) -> dict[str, int] | None:
        """What an erasure would remove; None where nothing is kept."""
        self._settle(who.save)
        counted = self._counted(who)
        exists = self._actors.exists(who)
        if not exists and not any(counted.values()):
            return None
        measured = {"actors": int(exists), "bytes": self._bytes(who)}
        for name, count in counted.items():
            name = _ERASED_AS.get(name, name)
            measured[name] = measured.get(name, 0) + count
        return measured

    def erase(self, who: ActorId, *, dry_run: bool = False) -> dict[str, int] | None:
        """Forget the actor; what was, or would be, removed, or None where nothing is kept. A kill in the middle leaves
        no half."""
        removed, texts = self.measure(who), self._vectors.doomed(who.save, who)
        if dry_run:
            return removed and removed | {"vectors": len(texts)}
        if removed is not None and self._saves.exists(who.save):
            self._saves.changed(who.save)
        vectors = self._vectors.remove(who.save, texts)
        try:
            self._actors.erase(who)
        finally:
            self._follow(who)
        return removed and removed | {"vectors": vectors}

    def _follow(self, who: ActorId) -> None:
        """Have every room forget an actor whose folder is gone, also where the disk kept some of its bytes: what is
        read from memory is what a restart would find."""
        if not self._disk.exists(self._actors.folder(who)):
            for part in self._parts:
                part.erased(who)

    def _damaged(self, error: Corrupt) -> None:
        self._report(Diagnostic("actor_damaged", error.message, Severity.ERROR, error.metadata))

    def _counted(self, who: ActorId) -> dict[str, int]:
        return {name: count for part in self._parts for name, count in part.counted(who).items()}

    def _bytes(self, who: ActorId) -> int:
        folder: Path = self._actors.folder(who)
        return sum(self._disk.size(folder / name) for name in self._disk.names(folder))
