"""Finding records by words and by meaning, as ratios to floors that are taken in the same run.

    python -m benchmarks.search [--records 10000] [--owners 100] [--calls 300] [--background 10000]
                                [--data FOLDER] [--prepare]

One owner of ``records``, and ``owners`` of a thousand each, in a daemon of its own with the built-in model. Vectors are
put into the cache beforehand (made up: what is measured is the search), except with ``--background``: then ``Search``
is measured while the daemon embeds so many records itself. Floors: a bare grpc.aio echo of an answer's size, one query
embedding in the daemon, and reading the vectors' bytes once. Filling takes much longer than measuring: with ``--data``
what was filled is kept there and found again, and ``--prepare`` does nothing but fill. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
import psutil

from benchmarks.daemon import daemon, echo_server, timed
from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.vectors import VectorStore
from sidecar.gen.lorekeeper.v1 import (
    common_pb2,
    embedding_pb2,
    embedding_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    search_pb2,
    search_pb2_grpc,
)
from sidecar.search.index import MIGRATIONS, OUTDATED, Index
from sidecar.storage.derived_database import DerivedDatabase

BATCH = 1_000
OWNER_RECORDS = 1_000
TEXT = (
    "wolf gate bread sword river storm king shield apple orchard market night guard ship horse fire "
    "stone silver letter promise debt winter harvest bridge tower song knife lantern forest merchant road well mill"
)
WORDS = TEXT.split()
NONE = ("--set", "embedding.model=none")
MODEL = ("--set", "embedding.model=auto")
MOST = ("--set", "records.max_records_per_save=1000000", "--set", "records.max_records_per_owner=1000000")


class Calls:
    """The stubs of one daemon, with its token."""

    def __init__(self, channel: grpc.Channel, token: str) -> None:
        self._token = (("authorization", f"Bearer {token}"),)
        self._memory = memory_pb2_grpc.MemoryServiceStub(channel)
        self._search = search_pb2_grpc.SearchServiceStub(channel)
        self._embedding = embedding_pb2_grpc.EmbeddingServiceStub(channel)

    def add(self, actor: common_pb2.Actor, records: list[memory_pb2.NewRecord]) -> None:
        self._memory.AddRecords(memory_pb2.AddRecordsRequest(actor=actor, records=records), metadata=self._token)

    def search(self, actor: common_pb2.Actor, text: str, **more) -> search_pb2.SearchResponse:
        request = search_pb2.SearchRequest(actor=actor, text=text, limit=8, **more)
        return self._search.Search(request, metadata=self._token)

    def embed(self, text: str) -> None:
        request = embedding_pb2.EmbedRequest(kind=embedding_pb2.EMBED_KIND_QUERY, texts=[text])
        self._embedding.Embed(request, metadata=self._token)

    def status(self, save: str) -> search_pb2.GetIndexStatusResponse:
        return self._search.GetIndexStatus(search_pb2.GetIndexStatusRequest(save_id=save), metadata=self._token)

    def rebuild_terms(self, save: str) -> None:
        request = search_pb2.RebuildIndexRequest(save_id=save, terms=True)
        for _ in self._search.RebuildIndex(request, metadata=self._token):
            pass

    def identity(self) -> EmbeddingIdentity:
        """Of the model, once it is loaded."""
        deadline = time.monotonic() + 60
        while not (status := self.status("none")).HasField("identity"):
            assert time.monotonic() < deadline, "no model answers"
            time.sleep(0.05)
        found = status.identity
        return EmbeddingIdentity(found.provider_id, found.model_id, found.version, found.dimensions)


def text(number: int) -> str:
    """Six words, different for each number."""
    rng = np.random.default_rng(number)
    return f"{number} " + " ".join(rng.choice(WORDS, 6))


def fill(calls: Calls, actor: common_pb2.Actor, count: int) -> None:
    for start in range(0, count, BATCH):
        records = [
            memory_pb2.NewRecord(
                record_id=f"m{number}",
                scope="fact",
                kind=memory_pb2.RECORD_KIND_FACT,
                moment=common_pb2.Moment(timeline_id="world", tick=number),
                searchable_text=text(number),
            )
            for number in range(start, min(start + BATCH, count))
        ]
        calls.add(actor, records)


def make_vectors(folder: Path, identity: EmbeddingIdentity) -> int:
    """A unit vector for every text that the index knows; how many."""
    store, rng, count = VectorStore(folder / "index" / "vectors.sqlite3"), np.random.default_rng(1), 0
    for path in (folder / "index").glob("s-*.sqlite3"):
        version = _version(path)
        index = Index(DerivedDatabase(path, MIGRATIONS, lambda kept=version: kept, print, outdated=OUTDATED))
        texts = list({text for _, text in index.texts()})
        index.close()
        for start in range(0, len(texts), BATCH):
            few = texts[start : start + BATCH]
            raw = rng.standard_normal((len(few), identity.dimensions)).astype(np.float32)
            raw /= np.linalg.norm(raw, axis=1, keepdims=True)
            store.put_many(identity, dict(zip(few, raw, strict=True)))
            count += len(few)
    store.close()
    return count


def _version(path: Path) -> str:
    import sqlite3

    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT version FROM made_by").fetchone()[0]
    finally:
        database.close()


def spread(call, times: int) -> dict[str, float]:
    """p50 and p99 in milliseconds, after a few calls that do not count."""
    for _ in range(10):
        call()
    seconds = [timed(call) for _ in range(times)]
    return {"p50": statistics.median(seconds) * 1e3, "p99": statistics.quantiles(seconds, n=100)[98] * 1e3}


def scan_floor(count: int, dimensions: int) -> float:
    """Milliseconds of reading so many vectors once."""
    vectors = np.ones((count, dimensions), np.float32)
    return min(timed(lambda: vectors.max()) for _ in range(5)) * 1e3


def measured_owner(calls: Calls, actor: common_pb2.Actor, echo, times: int, process) -> dict[str, object]:
    queries = (f"who saw the {a} at the {b} {n}" for n in itertools.count() for a, b in itertools.pairwise(WORDS))
    ticks = itertools.count(10**6)
    words = search_pb2.SEARCH_MODE_LEXICAL
    before = process.memory_info().rss
    cold = timed(lambda: calls.search(actor, "wolf", mode=words)) * 1e3
    after_words = process.memory_info().rss
    cold_vectors = timed(lambda: calls.search(actor, "a cold question")) * 1e3
    after = process.memory_info().rss
    answer = calls.search(actor, "wolf gate")
    assert not answer.degraded, answer.degraded_reasons
    floor = spread(lambda: echo(answer.SerializeToString()), times)["p50"]
    embedding = spread(lambda: calls.embed(next(queries)), times)["p50"] - floor
    hybrid = spread(lambda: calls.search(actor, next(queries)), times)
    known = itertools.cycle(("wolf gate", "bread at the mill"))  # by turns: the last comparison is kept
    cached = spread(lambda: calls.search(actor, next(known), filter=as_of(next(ticks))), times)
    same = spread(lambda: calls.search(actor, "wolf gate", filter=as_of(next(ticks))), times)
    lexical = spread(lambda: calls.search(actor, "wolf gate", mode=words, filter=as_of(next(ticks))), times)
    answer = calls.search(actor, next(queries))
    stages = {search_pb2.SearchStageKind.Name(one.kind)[18:].lower(): one.duration_ms for one in answer.stages}
    return {
        "echo_ms": floor,
        "embedding_ms": embedding,
        "lexical": lexical | {"ratio_to_echo": lexical["p50"] / floor},
        "hybrid": hybrid | {"ratio_to_goal_floor": hybrid["p50"] / (embedding + floor)},
        "hybrid_cached_query": cached | {"ratio_to_echo": cached["p50"] / floor},
        "hybrid_same_query_later": same | {"ratio_to_echo": same["p50"] / floor},
        "first_query_ms": {"words": cold, "vectors": cold_vectors},
        "stages_ms": stages,
        "resident_mb": {
            "before": before / 1e6,
            "words": (after_words - before) / 1e6,
            "vectors": (after - after_words) / 1e6,
        },
    }


@contextmanager
def asked_daemon(folder: Path, *options: str) -> Iterator[tuple[Calls, psutil.Process]]:
    """A daemon on a folder, what calls it, and its process."""
    with (
        daemon(folder, *options) as (handshake, process, _),
        grpc.insecure_channel(handshake["address"]) as channel,
    ):
        yield Calls(channel, handshake["token"]), psutil.Process(process.pid)


def as_of(tick: int) -> memory_pb2.RecordFilter:
    """Another moment for each call, so that no earlier answer serves."""
    return memory_pb2.RecordFilter(at_or_before=common_pb2.Moment(timeline_id="world", tick=tick))


def prepared(folder: Path, actors: list[common_pb2.Actor], count: int) -> None:
    """A data folder with records, words and vectors."""
    with asked_daemon(folder, *NONE, *MOST) as (calls, _):
        for actor in actors:
            fill(calls, actor, count)
        for save in {actor.save_id for actor in actors}:
            calls.rebuild_terms(save)
    with tempfile.TemporaryDirectory() as other, asked_daemon(Path(other), *MODEL) as (calls, _):
        identity = calls.identity()
    make_vectors(folder, identity)


def large_owner(data: Path, count: int) -> tuple[Path, common_pb2.Actor]:
    """A folder with one owner of so many records; made where it is not there."""
    actor, folder = common_pb2.Actor(save_id="large", actor_id="npc"), data / f"one of {count}"
    if not folder.exists():
        prepared(folder, [actor], count)
    return folder, actor


def town(data: Path, owners: int) -> tuple[Path, list[common_pb2.Actor]]:
    """A folder with so many owners of a thousand records each; made where it is not there."""
    actors = [common_pb2.Actor(save_id="town", actor_id=f"npc {number}") for number in range(owners)]
    folder = data / f"{owners} owners"
    if not folder.exists():
        prepared(folder, actors, OWNER_RECORDS)
    return folder, actors


def one_owner(data: Path, count: int, times: int) -> dict[str, object]:
    folder, actor = large_owner(data, count)
    with echo_server() as echo, asked_daemon(folder, *MODEL, *MOST) as (calls, process):
        dimensions = calls.identity().dimensions
        found = measured_owner(calls, actor, echo, times, process)
    vectors_mb = count * dimensions * 4 / 1e6
    floor = scan_floor(count, dimensions)
    return found | {
        "records": count,
        "scan_floor_ms": floor,
        "scan_ratio_to_floor": found["stages_ms"]["vector_scoring"] / floor,
        "vector_memory_ratio": found["resident_mb"]["vectors"] / vectors_mb,
    }


def many_owners(data: Path, owners: int, times: int) -> dict[str, object]:
    folder, actors = town(data, owners)
    with echo_server() as echo, asked_daemon(folder, *MODEL, *MOST) as (calls, _):
        calls.identity()
        answer = calls.search(actors[0], "wolf gate").SerializeToString()
        cold = [timed(lambda actor=actor: calls.search(actor, "wolf gate")) * 1e3 for actor in actors]
        floor = spread(lambda: echo(answer), times)["p50"]
        turn, ticks = itertools.cycle(actors), itertools.count(10**6)
        hot = spread(lambda: calls.search(next(turn), "wolf gate", filter=as_of(next(ticks))), max(times, 2 * owners))
    return {
        "owners": owners,
        "echo_ms": floor,
        "first_query_p50_ms": statistics.median(cold),
        "hybrid_cached_query": hot | {"ratio_to_echo": hot["p50"] / floor},
    }


def background(count: int, times: int) -> dict[str, object]:
    """``Search`` idle, and while the daemon embeds ``count`` records of another owner."""
    actor, other = (common_pb2.Actor(save_id="busy", actor_id=name) for name in ("npc", "other"))
    queries = (f"who saw the {a} {n}" for n in itertools.count() for a in WORDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        with asked_daemon(folder, *MODEL, *MOST) as (calls, _):
            calls.identity()
            fill(calls, actor, OWNER_RECORDS)
            while calls.status("busy").pending:
                time.sleep(0.2)
            idle = spread(lambda: calls.search(actor, next(queries)), times)
            began = time.perf_counter()
            fill(calls, other, count)
            busy = spread(lambda: calls.search(actor, next(queries)), times)
            left = calls.status("busy").pending
            while calls.status("busy").pending:
                time.sleep(0.5)
            seconds = time.perf_counter() - began
    return {
        "idle": idle,
        "busy": busy,
        "p99_ratio": busy["p99"] / idle["p99"],
        "still_pending_when_measured": left,
        "embedded_per_second": count / seconds,
    }


def measured(asked: argparse.Namespace, data: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    if asked.records:
        found["one_owner"] = one_owner(data, asked.records, asked.calls)
    if asked.owners:
        found["many_owners"] = many_owners(data, asked.owners, asked.calls)
    if asked.background:
        found["background"] = background(asked.background, asked.calls)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--owners", type=int, default=0)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--background", type=int, default=0, help="embed so many records meanwhile")
    parser.add_argument("--data", type=Path, help="keep what is filled in this folder")
    parser.add_argument("--prepare", action="store_true", help="fill, and measure nothing")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = asked.data or Path(name)
        if asked.records:
            large_owner(data, asked.records)
        if asked.owners:
            town(data, asked.owners)
        json.dump({} if asked.prepare else measured(asked, data), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
