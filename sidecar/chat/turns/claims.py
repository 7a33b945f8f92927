"""The claims of turns to write for their actors: void once the save was restored, or the actor erased. No I/O.

Whatever a turn is about to write asks its claim first, in the actor's own thread: what began before belongs to a memory
that is gone.
"""

from __future__ import annotations

import threading
from weakref import WeakSet

from sidecar.storage.keys import ActorId
from sidecar.storage.save_state import SaveStates


class Claim:
    """That of one turn."""

    def __init__(self, who: ActorId, saves: SaveStates) -> None:
        self.who = who
        self._saves = saves
        self._epoch = saves.state(who.save).epoch
        self._void = False

    @property
    def holds(self) -> bool:
        """Whether the turn may still write."""
        return not self._void and self._saves.state(self.who.save).epoch == self._epoch

    def end(self) -> None:
        """The turn may write nothing more."""
        self._void = True


class Claims:
    """Those of all turns that are under way. Thread-safe."""

    def __init__(self, saves: SaveStates) -> None:
        self._saves = saves
        self._lock = threading.Lock()
        self._held: WeakSet[Claim] = WeakSet()

    def begin(self, who: ActorId) -> Claim:
        """A claim that lasts as long as its turn keeps it."""
        claim = Claim(who, self._saves)
        with self._lock:
            self._held.add(claim)
        return claim

    def erased(self, who: ActorId) -> None:
        """The actor is gone: what its turns had begun is not for the one that comes after."""
        with self._lock:
            held = [claim for claim in self._held if claim.who == who]
        for claim in held:
            claim.end()

    def exchanged(self, save: str) -> None:
        """Nothing to do: the save's epoch tells."""
