"""Whether the actor that a turn began with is still there: an erased one must not come back with the turn's answer.

Of this process only; it reads and writes nothing.
"""

from __future__ import annotations

import threading
import weakref

from sidecar.storage.keys import ActorId


class Stay:
    """From the beginning of a turn on. ``over`` once the actor was erased."""

    __slots__ = ("__weakref__", "over", "who")

    def __init__(self, who: ActorId) -> None:
        self.who = who
        self.over = False


class Presence:
    """Knows the stays that somebody still holds. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stays: weakref.WeakSet[Stay] = weakref.WeakSet()

    def begin(self, who: ActorId) -> Stay:
        """The actor's stay from now on."""
        stay = Stay(who)
        with self._lock:
            self._stays.add(stay)
        return stay

    def erased(self, who: ActorId) -> None:
        """The actor is gone: so are its stays."""
        with self._lock:
            for stay in self._stays:
                stay.over = stay.over or stay.who == who

    def exchanged(self, save: str) -> None:
        """Nothing to do: the epoch of the save tells."""
