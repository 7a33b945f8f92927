"""How each actor's document was last sent whole. Of this process only: a snapshot that is lost is taken again."""

from __future__ import annotations

from sidecar.chat.memory_view import MemorySnapshot, snapshot_of
from sidecar.memory.document_store import DocumentStore
from sidecar.storage.keys import ActorId
from sidecar.storage.recent import RecentActors

_MAX_CHARS = 4_000_000
# What a snapshot of nothing costs, so that those of many actors stay bounded too.
_EMPTY_CHARS = 100


class MemorySnapshots(RecentActors[MemorySnapshot]):
    """Calls for one actor are made one at a time by the caller."""

    def __init__(self, documents: DocumentStore) -> None:
        super().__init__(_MAX_CHARS)
        self._documents = documents

    def take(self, who: ActorId) -> MemorySnapshot:
        """The document as it is now becomes what prompts show: a turn sends it whole, or the history was folded."""
        snapshot = snapshot_of(self._documents.read(who))
        return self.keep(who, snapshot, weight=_EMPTY_CHARS + len(snapshot.text))
