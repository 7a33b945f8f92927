"""Adding, opening and searching many records of many owners, as ratios to floors that are taken in the same run.

    python benchmarks/records.py [--entries 10000] [--calls 2000]

The workload is the one of the shared benchmark: 8 records of one target owner among ``entries`` (100 to 100,000) that
lie one to ten an owner in a hundred saves. Floors: a bare grpc.aio echo of an answer's size, one append with fsync.
Prints one JSON object; fails where a count is not what it must be.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import grpc
from daemon import daemon, echo_server, fsync_floor, p50, timed

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, memory_pb2_grpc, search_pb2, search_pb2_grpc
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.journal import Journal

TARGETS = 8
BATCH = 100
TARGET = common_pb2.Actor(save_id="target-session", actor_id="target-owner")
QUERY = search_pb2.SearchRequest(actor=TARGET, text="target", limit=TARGETS)


class Calls:
    """The stubs of one daemon, with its token."""

    def __init__(self, channel: grpc.Channel, token: str) -> None:
        self._token = (("authorization", f"Bearer {token}"),)
        self._memory = memory_pb2_grpc.MemoryServiceStub(channel)
        self._search = search_pb2_grpc.SearchServiceStub(channel)

    def add(self, save: str, records: list[memory_pb2.NewRecord]) -> None:
        actor = common_pb2.Actor(save_id=save)
        self._memory.AddRecords(memory_pb2.AddRecordsRequest(actor=actor, records=records), metadata=self._token)

    def search(self, request: search_pb2.SearchRequest = QUERY) -> search_pb2.SearchResponse:
        return self._search.Search(request, metadata=self._token)

    def status(self, save: str) -> search_pb2.GetIndexStatusResponse:
        request = search_pb2.GetIndexStatusRequest(save_id=save)
        return self._search.GetIndexStatus(request, metadata=self._token)


def workload(entries: int) -> Iterator[tuple[str, memory_pb2.NewRecord]]:
    """Save and record, in order."""
    for number in range(entries):
        target = number < TARGETS
        save = "target-session" if target else f"session-{number % 100}"
        owner = "target-owner" if target else f"owner-{number // 100 % 100}"
        yield save, new_record(f"memory-{number}", owner, number, text="target" if target else "unrelated")


def new_record(record_id: str, owner: str, tick: int, *, text: str) -> memory_pb2.NewRecord:
    return memory_pb2.NewRecord(
        record_id=record_id,
        owner=common_pb2.Actor(actor_id=owner),
        scope="fact",
        kind=memory_pb2.RECORD_KIND_FACT,
        payload_json=json.dumps({"target": text == "target"}),
        moment=common_pb2.Moment(timeline_id="world", tick=tick),
        searchable_text=text,
    )


def add_all(calls: Calls, entries: int) -> list[float]:
    """Add the workload in batches of one save each; the seconds that each batch took."""
    saves = defaultdict(list)
    for save, record in workload(entries):
        saves[save].append(record)
    batches = [
        (save, records[start : start + BATCH])
        for save, records in saves.items()
        for start in range(0, len(records), BATCH)
    ]
    return [timed(lambda batch=batch: calls.add(*batch)) for batch in batches]


def settled(calls: Calls, folder: Path) -> float:
    """Seconds until all records lie in their owners' journals."""
    began = time.perf_counter()
    while any((folder / "saves").glob("*/inbox*")):
        time.sleep(0.05)
    return time.perf_counter() - began


def indexed(calls: Calls) -> float:
    """Seconds until the index holds all words: what runs in the background shares the daemon's one interpreter."""
    began = time.perf_counter()
    for save in ("target-session", *(f"session-{number}" for number in range(100))):
        while (status := calls.status(save)).terms_ready < status.total:
            time.sleep(0.05)
    return time.perf_counter() - began


def full_scan(folder: Path) -> int:
    """Read every journal; how many records are the target's."""
    disk = FileDisk(folder)
    found = 0
    for path in (folder / "saves").glob("*/a-*/records.jsonl"):
        found += sum(line.row["record"].get("text") == "target" for line in Journal(disk, path).load().lines)
    return found


def single_adds(calls: Calls, times: int) -> float:
    """Median seconds of adding one record."""
    numbers = iter(range(10**9))

    def add() -> None:
        number = next(numbers)
        calls.add("singles", [new_record(f"single-{number}", "owner", number, text="unrelated")])

    return p50(add, times)


def measure(entries: int, times: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder, echo_server() as echo:
        data = Path(folder) / "data"
        with daemon(data) as (handshake, _, _), grpc.insecure_channel(handshake["address"]) as channel:
            calls = Calls(channel, handshake["token"])
            batches = add_all(calls, entries)
            moved = settled(calls, data)
            filed = indexed(calls)
            ticks = itertools.count(1_000)
            hot = p50(lambda: calls.search(as_of(next(ticks))), times)
            same = p50(calls.search, times)
            answer = calls.search()
            floor = p50(lambda: echo(answer.SerializeToString()), times)
            fsync = fsync_floor(Path(folder))
            single = single_adds(calls, 300)
            seven = statistics.median(timed(calls.search) for _ in range(7))
        scan = timed(lambda: check(full_scan(data), TARGETS))
        with daemon(data) as (handshake, _, _), grpc.insecure_channel(handshake["address"]) as channel:
            calls = Calls(channel, handshake["token"])
            calls.status("nothing")
            cold = timed(calls.search)
            other = search_pb2.SearchRequest(
                actor=common_pb2.Actor(save_id="session-8", actor_id="owner-7"), text="unrelated"
            )
            cold_large = timed(lambda: calls.search(other))
            total = sum(calls.status(save).total for save in ["target-session", *(f"session-{n}" for n in range(100))])
        check(len(answer.hits), TARGETS)
        check(answer.stages[0].scanned, TARGETS)
        check(total, entries)
        return {
            "entries": entries,
            "targetEntries": TARGETS,
            "baselineFullDirectoryScanMilliseconds": scan * 1_000,
            "migrationMilliseconds": sum(batches) * 1_000,
            "migratedEntries": entries,
            "partitionedEntries": total,
            "partitionedHotQueryMedianMilliseconds": seven * 1_000,
            "authoritativeScanned": answer.stages[0].scanned,
            "resultCount": len(answer.hits),
            "operatingSystem": platform.platform(),
            "framework": f"Python {platform.python_version()}, grpc {grpc.__version__}",
            "echoMilliseconds": floor * 1_000,
            "fsyncMilliseconds": fsync * 1_000,
            "hotQueryP50Milliseconds": hot * 1_000,
            "hotQueryEchoRatio": hot / floor,
            "sameQueryAgainEchoRatio": same / floor,
            "addedPerSecond": entries / sum(batches),
            "addBatchP50Milliseconds": statistics.median(batches) * 1_000,
            "addBatchP99Milliseconds": statistics.quantiles(batches, n=100)[98] * 1_000,
            "movedToJournalsMilliseconds": moved * 1_000,
            "thenIndexedMilliseconds": filed * 1_000,
            "addOneP50Milliseconds": single * 1_000,
            "addOneGoalRatio": single / (2 * floor + fsync),
            "firstQueryAfterStartMilliseconds": cold * 1_000,
            "firstQueryOfAnotherSaveMilliseconds": cold_large * 1_000,
        }


def as_of(tick: int) -> search_pb2.SearchRequest:
    """The query as of another moment, so that no earlier answer serves."""
    request = search_pb2.SearchRequest()
    request.CopyFrom(QUERY)
    request.filter.at_or_before.CopyFrom(common_pb2.Moment(timeline_id="world", tick=tick))
    return request


def check(found: int, expected: int) -> None:
    if found != expected:
        raise SystemExit(f"found {found} where {expected} were expected")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=2_000)
    options = parser.parse_args()
    if not 100 <= options.entries <= 100_000:
        parser.error("--entries must be from 100 to 100000")
    json.dump(measure(options.entries, options.calls), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
