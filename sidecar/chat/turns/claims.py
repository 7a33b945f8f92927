"""The claims of turns to write for their actors: void once the save was exchanged, the actor erased or its history
cleared. No I/O.

Whatever a turn is about to write asks its claim first, in the actor's own thread: what began before belongs to a memory
that is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakSet

from sidecar.storage.keys import ActorId


class Claim:
    """That of one turn."""

    def __init__(self, who: ActorId) -> None:
        self.who = who
        self.holds = True
        """Whether the turn may still write."""


class Claims:
    """Those of all turns that are under way. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: WeakSet[Claim] = WeakSet()

    def begin(self, who: ActorId) -> Claim:
        """A claim that lasts as long as its turn keeps it."""
        claim = Claim(who)
        with self._lock:
            self._held.add(claim)
        return claim

    def erased(self, who: ActorId) -> None:
        """The actor is gone, or its history: what its turns had begun is not for what comes after."""
        self._end(lambda claim: claim.who == who)

    def exchanged(self, save: str) -> None:
        """The files of the save were exchanged, or are gone: one that is made anew begins with the same epoch."""
        self._end(lambda claim: claim.who.save == save)

    def _end(self, over: Callable[[Claim], bool]) -> None:
        with self._lock:
            for claim in filter(over, self._held):
                claim.holds = False
