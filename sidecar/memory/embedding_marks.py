"""What is told of a record besides what was remembered: whether it can be found by meaning, and which record says
nearly the same. Who knows it lies above this room; here is only what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sidecar.memory.records import Record
from sidecar.storage.keys import ActorId

_NONE = 1


@dataclass(frozen=True, slots=True)
class Item:
    """A record that is asked about."""

    owner: ActorId
    record: Record
    content_hash: str


@dataclass(frozen=True, slots=True)
class EmbeddingMark:
    """``state`` is a number of the contract's EmbeddingState."""

    state: int = _NONE
    near_duplicate_of: str = ""


NO_MARK = EmbeddingMark()


class EmbeddingMarks(Protocol):
    """Thread-safe; never raises for want of a model or an index."""

    def of(self, items: Sequence[Item]) -> list[EmbeddingMark]:
        """The marks of records, in their order."""
        ...

    def of_new(self, items: Sequence[Item]) -> list[EmbeddingMark]:
        """The same for records that were just added: those whose text was embedded before are compared at once."""
        ...

    def flag_from(self, items: Sequence[Item], similarity: float) -> None:
        """Flag these records as near duplicates from this cosine similarity on, instead of the daemon's; 0: never."""
        ...
