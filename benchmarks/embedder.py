"""The daemon's own embedding engine, in this process, for measures that need vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingKind
from sidecar.settings import EmbeddingSettings

AT_ONCE = 64

Embed = Callable[[EmbeddingKind, Sequence[str]], np.ndarray]


@contextmanager
def embedder(model: str) -> Iterator[Embed]:
    """Texts to unit vectors by the named model, or a model folder's absolute path; fails where there is none."""
    settings = EmbeddingSettings(model=model, inference_seconds=1_800)
    engine = EmbeddingEngine(settings, Catalogue(Path("models"), settings))
    with asyncio.Runner() as loop:

        def embed(kind: EmbeddingKind, texts: Sequence[str]) -> np.ndarray:
            parts = [texts[at : at + AT_ONCE] for at in range(0, len(texts), AT_ONCE)]
            return np.concatenate([loop.run(engine.embed(kind, part)).vectors for part in parts])

        try:
            fault = loop.run(engine.start())
            if fault is not None:
                raise fault
            yield embed
        finally:
            loop.run(engine.close())
