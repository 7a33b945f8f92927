"""How each actor's document was last sent whole. Of this process only: a snapshot that is lost is taken again."""

from __future__ import annotations

import threading
from collections import OrderedDict

from sidecar.chat.memory_view import MemorySnapshot, snapshot_of
from sidecar.memory.document_store import DocumentStore
from sidecar.storage.keys import ActorId

_MAX_CHARS = 4_000_000


class MemorySnapshots:
    """Thread-safe; calls for one actor are made one at a time by the caller."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self._known: OrderedDict[ActorId, MemorySnapshot] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def get(self, who: ActorId) -> MemorySnapshot | None:
        """The snapshot; ``None`` before the first."""
        return self._known.get(who)

    def take(self, who: ActorId) -> MemorySnapshot:
        """The document as it is now becomes what prompts show: a turn sends it whole, or the history was folded."""
        snapshot = snapshot_of(self._documents.read(who))
        with self._lock:
            self._forget(who)
            self._known[who] = snapshot
            self._chars += len(snapshot.text)
            while len(self._known) > 1 and self._chars > _MAX_CHARS:
                self._forget(next(iter(self._known)))
        return snapshot

    def exchanged(self, save: str) -> None:
        """The files of a save were exchanged."""
        for who in [who for who in list(self._known) if who.save == save]:
            self.erased(who)

    def erased(self, who: ActorId) -> None:
        """The actor is gone, or its folder was exchanged."""
        with self._lock:
            self._forget(who)

    def _forget(self, who: ActorId) -> None:
        known = self._known.pop(who, None)
        self._chars -= len(known.text) if known else 0
