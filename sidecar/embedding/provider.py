"""What every source of vectors looks like, and what it answers. Whoever embeds knows only this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sidecar.embedding.admission import Lane
from sidecar.embedding.identity import EmbeddingIdentity

if TYPE_CHECKING:
    from sidecar.embedding.identity import FloatVectors


@dataclass(frozen=True)
class Embedded:
    """Vectors in the order of the texts and how they came about; times in seconds."""

    vectors: FloatVectors
    tokens: tuple[int, ...]
    """Tokens read of each text, marks included; 0 where the provider does not tell."""

    dropped: tuple[int, ...]
    """Tokens of each text that were not read."""

    batch_sizes: tuple[int, ...]
    tokenization: float
    inference: float


class Provider(Protocol):
    """Queries and documents are apart, because models may treat them differently."""

    identity: EmbeddingIdentity

    async def embed_query(self, text: str, lane: Lane) -> Embedded: ...

    async def embed_documents(self, texts: Sequence[str], lane: Lane) -> Embedded: ...

    async def close(self) -> None:
        """Free what it holds; nothing runs any more when this is called."""
        ...
