"""Records and stores for tests: the helpers M and Q of the acceptance cases, and a store on a real folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidecar.diagnostics import Diagnostic
from sidecar.embedding.vectors import VectorStore
from sidecar.memory.embedding_marks import NO_MARK, EmbeddingMark, Item
from sidecar.memory.groups import GroupStore
from sidecar.memory.moments import Moment
from sidecar.memory.open_saves import NothingKnown
from sidecar.memory.record_store import RecordStore, Stored
from sidecar.memory.records import Kind, Record, RecordHead
from sidecar.search.indexer import Indexer
from sidecar.search.indexes import Indexes
from sidecar.search.recall import Recall
from sidecar.search.save_languages import SaveLanguages
from sidecar.search.vector_cache import VectorCache
from sidecar.search.vector_feed import VectorFeed
from sidecar.search.views import Views
from sidecar.search.words import WordSource, words_version
from sidecar.settings import RecordSettings, SearchSettings
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.keys import ActorId, actor_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.session_disk import SessionDisk


def owner(actor: str = "npc", save: str = "session", **more: str) -> ActorId:
    return actor_id(save=save, actor=actor, **more)


def record(record_id: str, text: str = "", *, tick: int = 1, **head: Any) -> Record:
    """M of the cases: scope personal, kind Fact, payload {"text": text}, timeline world, searchable text = text."""
    given = {"scope": "personal", "kind": Kind.FACT, "moment": Moment("world", tick), **head}
    return Record(RecordHead(record_id, **given), json.dumps({"text": text}, ensure_ascii=False), text)


def store_on(disk: Disk, actors: Actors, saves: SaveStates) -> RecordStore:
    """A store without an index behind it."""
    return RecordStore(
        disk,
        actors,
        saves,
        RecordSettings(),
        known=NothingKnown(),
        retention=lambda who: None,
        report=lambda diagnostic: None,
    )


def archived(store: RecordStore, who: ActorId) -> list[Stored]:
    """The archived turns of an actor, in the order of their addition."""
    with store.opened(who) as opened:
        turns = [entry for entry in opened.records().entries.values() if entry.head.archived]
        return list(store.stored_many(opened, turns))


@dataclass
class House:
    """The rooms of records and search on one folder, without a daemon around them."""

    disk: Disk
    limits: RecordSettings = field(default_factory=RecordSettings)
    search_limits: SearchSettings = field(default_factory=lambda: SearchSettings(index_delay_seconds=0.0))
    told: list[Diagnostic] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.actors = Actors(self.disk)
        self.saves = SaveStates(self.disk)
        self.groups = GroupStore(self.disk, self.saves, self.limits)
        in_memory = isinstance(self.disk, SessionDisk)
        self.languages = SaveLanguages(self.disk.root, self.search_limits.language)
        version = lambda folder: words_version(self.languages.analyzer_of_folder(folder))  # noqa: E731
        self.indexes = Indexes(
            self.disk.root,
            in_memory=in_memory,
            version=version,
            report=self.told.append,
            most_open=self.search_limits.max_open_indexes,
        )
        self.store = RecordStore(
            self.disk,
            self.actors,
            self.saves,
            self.limits,
            known=self.indexes,
            retention=self.groups.applied_retention,
            report=self.told.append,
        )
        self.vectors = VectorStore(None if in_memory else self.disk.root / "index" / "vectors.sqlite3")
        self.feed = VectorFeed(self.vectors, self.told.append)
        self.repaired: list[ActorId] = []
        bounds = {"most_bytes": self.search_limits.max_cached_vector_bytes, "most_compared": 1_000_000}
        self.matrices = VectorCache(self.feed, self.repaired.append, **bounds)
        self.words = WordSource(self.store, self.indexes.of, self.languages)
        self.views = Views(self.words, self.search_limits)
        self.recall = Recall(self.store, self.groups, self.saves, self.words, self.views, self.matrices)
        self.indexer = Indexer(self.store, self.indexes, self.words, self.search_limits, self.told.append)

    def again(self) -> House:
        """The same folder after a restart."""
        self.close()
        return House(self.disk, self.limits, self.search_limits)

    def close(self) -> None:
        self.indexer.close()
        self.indexes.close()
        self.vectors.close()

    def index_now(self, save: str = "session") -> None:
        """Bring the index up to date at once."""
        for _ in self.indexer.bring_up(save, self.store.catalog(save).owners()):
            pass

    def ids(self, who: ActorId) -> list[str]:
        with self.store.opened(who) as opened:
            return sorted(opened.records().entries)


def house_on(folder: Path, **limits: Any) -> House:
    return House(FileDisk(folder), RecordSettings(**limits))


class NoMarks:
    """What a daemon without a model tells of records."""

    def of(self, items: Sequence[Item]) -> list[EmbeddingMark]:
        return [NO_MARK] * len(items)

    of_new = of

    def flag_from(self, items: Sequence[Item], similarity: float) -> None:
        """Nothing is ever flagged."""
