"""What a search hands back: hits with the account of each, the steps that were taken, and what was missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.texts import TextCut
from sidecar.memory.record_store import Stored
from sidecar.search.access import Known
from sidecar.search.channels import Weights
from sidecar.search.options import Options
from sidecar.search.rerank import Reranked
from sidecar.search.vector_rows import VectorState
from sidecar.storage.save_state import SaveState


class Stage(IntEnum):
    """A step of a search. The numbers are those of the contract."""

    SNAPSHOT = 2
    WORDS = 3
    EMBEDDING = 4
    VECTORS_READ = 5
    VECTORS_COMPARED = 6
    FUSION = 7
    RERANK = 8


class Degraded(IntEnum):
    """Why an answer is less than it could be. The numbers are those of the contract."""

    NO_MODEL = 1
    MODEL_LOADING = 2
    MODEL_FAILED = 3
    EMBEDDING_FAILED = 4
    EMBEDDING_TIMEOUT = 5
    EMBEDDING_QUEUE_FULL = 6
    VECTORS_PENDING = 7
    VECTORS_STALE = 8
    INDEX_DAMAGED = 9
    INDEX_UNAVAILABLE = 10
    SCAN_LIMIT = 11
    RERANKER_FAILED = 12
    GROUPS_DAMAGED = 13


@dataclass(frozen=True, slots=True)
class StageReport:
    """What a step did: milliseconds, rows looked at, rows passed on, whether it used what was there."""

    stage: Stage
    milliseconds: float
    scanned: int
    candidates: int
    reused: bool = False


@dataclass(frozen=True, slots=True)
class WordScore:
    """What one word of the query was worth: how often the record holds it, and how many visible records do."""

    term: str
    frequency: int
    records: int
    score: float


class ChannelScore(NamedTuple):
    """What a channel said of a hit that it found: raw score, place (equal ones share theirs), score as it was added."""

    name: str
    score: float
    rank: int
    normalised: float
    weight: float


class Hit(NamedTuple):
    """A record that was found; ``score`` decided its place. ``vector`` is the state of its vector, as far as the search
    looked at it."""

    stored: Stored
    known: Known
    score: float
    fused_score: float
    fused_rank: int
    channels: Sequence[ChannelScore] = ()
    reranked: Reranked | None = None
    explained: Sequence[WordScore] = ()
    vector: VectorState | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was found, as of one state of the save, and how: the options and weights that were used."""

    state: SaveState
    hits: list[Hit]
    stages: list[StageReport]
    degraded: list[Degraded]
    options: Options
    weights: Weights
    identity: EmbeddingIdentity | None = None
    words_cut: bool = False
    query_cuts: Sequence[TextCut] = ()
