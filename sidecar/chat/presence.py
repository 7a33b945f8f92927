"""Whether the actor that a turn began with is still there: an erased one must not come back with the turn's answer, nor
may that get into a save that was restored meanwhile.

Of this process only; it reads and writes nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from sidecar.storage.keys import ActorId


class Stay:
    """From the beginning of a turn on. ``over`` once the actor, or all of its save, was erased or exchanged."""

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
        """The actor is gone."""
        self._end(lambda stay: stay.who == who)

    def exchanged(self, save: str) -> None:
        """The files of a save were exchanged, or are gone."""
        self._end(lambda stay: stay.who.save == save)

    def _end(self, over: Callable[[Stay], bool]) -> None:
        with self._lock:
            for stay in filter(over, self._stays):
                stay.over = True
