"""The histories that are in memory: stored ones up to a bound, and all that live as long as the process only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from sidecar.chat.history import History
from sidecar.compaction.answers import Answers
from sidecar.storage.journal import Journal
from sidecar.storage.keys import ActorId

# What a history costs that holds nothing, so that looking for actors who never spoke fills no memory either.
_EMPTY_CHARS = 1_000


@dataclass
class OpenHistory:
    """One actor's history with its file and the answers that retries hear."""

    history: History
    journal: Journal
    answers: Answers
    cap_told: bool = False
    """Whether it was told that the oldest messages leave it."""
    head_owed: bool = False
    """Whether what retries hear is in no file yet: it was cleared before it had one."""


class OpenHistories:
    """Lets go of what was not used for longest, but never of rows that are nowhere else. Thread-safe."""

    def __init__(self, *, max_chars: int) -> None:
        self._max_chars = max_chars
        self._lock = threading.Lock()
        self._known: OrderedDict[ActorId, OpenHistory] = OrderedDict()
        self._sizes: dict[ActorId, tuple[int, int]] = {}
        self._chars = 0
        self.session_chars = 0

    def get(self, who: ActorId) -> OpenHistory | None:
        """The history, if it is in memory."""
        return self._known.get(who)

    def keep(self, who: ActorId, opened: OpenHistory) -> None:
        """Put it in, or count it anew after it changed."""
        with self._lock:
            self._forget_size(who)
            self._known[who] = opened
            self._known.move_to_end(who)
            size = (opened.history.weight + _EMPTY_CHARS, opened.history.session_weight)
            self._sizes[who] = size
            self._chars += size[0]
            self.session_chars += size[1]
            self._shrink()

    def drop(self, who: ActorId) -> None:
        """Forget it: what it stands for is gone, or has changed on the disk."""
        with self._lock:
            self._forget_size(who)
            self._known.pop(who, None)

    def drop_save(self, save: str) -> None:
        """Forget all of a save, also what was kept for this process only."""
        with self._lock:
            for who in [who for who in self._known if who.save == save]:
                self._forget_size(who)
                del self._known[who]

    def unstored(self) -> list[ActorId]:
        """The actors with rows that are nowhere else."""
        with self._lock:
            return [who for who, (_, session_chars) in self._sizes.items() if session_chars]

    def _shrink(self) -> None:
        for who in list(self._known)[:-1] if self._chars > self._max_chars else ():
            if self._chars <= self._max_chars:
                return
            if not self._sizes[who][1]:
                self._forget_size(who)
                del self._known[who]

    def _forget_size(self, who: ActorId) -> None:
        chars, session_chars = self._sizes.pop(who, (0, 0))
        self._chars -= chars
        self.session_chars -= session_chars
