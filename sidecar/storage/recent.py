"""What is kept in memory because it may be wanted again soon: within a bound, what was kept longest ago goes first.

It stands in for nothing: whatever is not here any more is read, or made, again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from sidecar.storage.keys import ActorId

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values of at most ``most`` weight together; the newest one stays in any case. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: K) -> V | None:
        """The value, where it is still kept. Asking does not make it newer."""
        known = self._known.get(key)
        return known[0] if known is not None else None

    def keep(self, key: K, value: V, *, weight: int = 1) -> V:
        """Have this value as the newest; those that came first make room."""
        with self._lock:
            self._forget(key)
            self._known[key] = (value, weight)
            self.weight += weight
            while self.weight > self._most and len(self._known) > 1:
                self._forget(next(iter(self._known)))
        return value

    def forget(self, key: K) -> None:
        """Let go of one; no effect where it is not kept."""
        with self._lock:
            self._forget(key)

    def forget_where(self, gone: Callable[[K], bool]) -> None:
        """Let go of all whose key is ``gone``."""
        with self._lock:
            for key in list(filter(gone, self._known)):
                self._forget(key)

    def clear(self) -> None:
        """Let go of everything."""
        self.forget_where(lambda _key: True)

    def _forget(self, key: K) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self.weight -= known[1]


class RecentActors(Recent[ActorId, V]):
    """The same by actor. It goes with its actor."""

    def erased(self, who: ActorId) -> None:
        """The actor is gone, or its folder was exchanged."""
        self.forget(who)

    def exchanged(self, save: str) -> None:
        """The files of a save were exchanged."""
        self.forget_where(lambda who: who.save == save)
