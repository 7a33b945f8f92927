"""Which texts of an owner have no vector yet, and what they say: read from the derived index and the journals.

Synchronous; call it in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.vectors import VectorStore
from sidecar.errors import Corrupt
from sidecar.memory.record_store import RecordStore
from sidecar.search.indexes import Indexes
from sidecar.search.words import embedded_text
from sidecar.storage.keys import ActorId, folder_name


@dataclass(frozen=True, slots=True)
class Wanted:
    """A text that has or needs a vector: a record's content by its hash, and the hash of what is embedded of it."""

    who: ActorId
    content: str
    text: bytes


class OwnerTexts:
    """What the index knows of texts. What it does not know yet is told once it does."""

    def __init__(self, store: RecordStore, indexes: Indexes, vectors: VectorStore) -> None:
        self._store = store
        self._indexes = indexes
        self._vectors = vectors

    def all_of(self, who: ActorId) -> list[Wanted]:
        """Every text of an owner."""
        texts = self._indexes.of(who.save).texts(folder_name(who))
        return [Wanted(who, content, text) for content, text in texts if text]

    def missing(self, who: ActorId, identity: EmbeddingIdentity) -> list[Wanted]:
        """The texts of an owner that have no vector of this identity. Raises Unavailable."""
        wanted = self.all_of(who)
        missing = set(self._vectors.missing(identity, [one.text for one in wanted]))
        return [one for one in wanted if one.text in missing]

    def read(self, wanted: Iterable[Wanted]) -> Mapping[bytes, str]:
        """What texts say, by their hash. What was forgotten meanwhile or cannot be read is left out."""
        found: dict[bytes, str] = {}
        by_owner: dict[ActorId, dict[str, bytes]] = {}
        for one in wanted:
            by_owner.setdefault(one.who, {})[one.content] = one.text
        for who, contents in by_owner.items():
            with suppress(Corrupt), self._store.opened(who) as owner:
                for entry in owner.records().by_content(contents):
                    record = self._store.stored(owner, entry).record
                    found[contents[entry.content_hash]] = embedded_text(record)
        return found
