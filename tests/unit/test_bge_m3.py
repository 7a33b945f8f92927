"""The real BGE-M3, where LOREKEEPER_TEST_BGE_M3 names its folder: 570 MB are no test data."""

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingKind
from sidecar.settings import EmbeddingSettings

FOLDER = os.environ.get("LOREKEEPER_TEST_BGE_M3", "")


@pytest.mark.skipif(not FOLDER, reason="LOREKEEPER_TEST_BGE_M3 names no folder with the model")
def test_what_is_alike_in_meaning_is_nearer():
    async def run():
        settings = EmbeddingSettings(model=FOLDER, max_tokens=64)
        engine = EmbeddingEngine(settings, Catalogue(Path("nowhere"), settings))
        assert await engine.start() is None
        texts = ["一只猫守在门口", "一只小猫正在看门", "今天市场里的铁矿价格上涨"]
        answer = await engine.embed(EmbeddingKind.DOCUMENT, texts)
        await engine.close()
        return answer.vectors

    cat, kitten, ore = asyncio.run(run())
    assert all(0.999 < np.linalg.norm(vector) < 1.001 for vector in (cat, kitten, ore))
    assert cat @ kitten > cat @ ore
