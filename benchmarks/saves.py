"""Checkpoint, restore, fork, export and import of a save with 1,000 actors and 100,000 records, beside ``cp`` of the
same folder in the same run.

    python benchmarks/saves.py [--actors 1000] [--records 100] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from sidecar.daemon.rooms import Rooms, open_disk
from sidecar.memory.edits import Action, Edit
from sidecar.memory.moments import Moment
from sidecar.memory.records import Kind as RecordKind
from sidecar.memory.records import Record, RecordHead
from sidecar.saves.checkpoint import Kind, Wish
from sidecar.saves.exporter import Export
from sidecar.saves.importer import Conflict, Importer
from sidecar.saves.save_files import Fork
from sidecar.settings import Config, StorageSettings
from sidecar.storage.keys import actor_id

_TEXT = "The player spared the wolf at the old orchard and went home by the river when the lanterns were lit. "
_ROUNDS = 3


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--actors", type=int, default=1_000)
    options.add_argument("--records", type=int, default=100, help="records of each actor")
    options.add_argument("--folder", type=Path, default=None, help="where to work; the disk that is measured")
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lorekeeper-saves-", dir=given.folder))
    try:
        for figures in measured(folder, given.actors, given.records):
            print(json.dumps(figures), flush=True)
    finally:
        shutil.rmtree(folder)


def measured(folder: Path, actors: int, records: int) -> Iterator[dict[str, Any]]:
    """What there is, then the figures by stage."""
    fill(opened(folder, Config(storage=StorageSettings(durability="relaxed"))), actors, records)
    rooms = opened(folder, Config())
    live = rooms.save.files.layout.live("slot")
    yield {"actors": actors, "records": actors * records, "bytes": rooms.save.files.facts("slot").bytes}
    yield {"linked": operations(rooms, live, folder / "cp", "-al")}
    yield transfers(rooms, folder)
    with mock.patch("os.link", side_effect=OSError(95, "no hard links here")):
        yield {"copied": operations(rooms, live, folder / "cp", "-a")}


def opened(folder: Path, config: Config) -> Rooms:
    return Rooms(open_disk(folder, config, lambda _: None), config, serving=lambda *_: None, report=lambda _: None)


def fill(rooms: Rooms, actors: int, records: int) -> None:
    """Documents and records of every actor, made by the stores themselves."""
    for number in range(actors):
        who = actor_id(save="slot", actor=f"npc {number}")
        rooms.documents.edit(who, [Edit(Action.WRITE, content=_TEXT * 5)])
        batch = [(who, record(number, place)) for place in range(records)]
        rooms.records.store.add("slot", batch)
    rooms.records.store.settle("slot")
    rooms.saves.close()
    os.sync()


def record(number: int, place: int) -> Record:
    head = RecordHead(f"r{place}", "personal", RecordKind.EVENT, Moment("world", place), tags=("wolf",))
    return Record(head, payload='{"mood":"calm"}', text=f"{_TEXT}{number} {place}")


def operations(rooms: Rooms, live: Path, copy: Path, flag: str) -> dict[str, Any]:
    """Medians in milliseconds, and how many times the floor each takes."""
    files, times = rooms.save.files, dict[str, list[float]]()
    for _ in range(_ROUNDS):
        with timed(times, "floor"):
            subprocess.run(["cp", flag, str(live), str(copy)], check=True)
        shutil.rmtree(copy)
        with timed(times, "checkpoint"):
            kept = files.checkpoint("slot", Wish())
        with timed(times, "restore"):
            files.restore("slot", kept.checkpoint_id, Wish(kind=Kind.SAFETY))
        with timed(times, "fork"):
            files.fork(Fork("slot", kept.checkpoint_id, "fork"))
        files.erase("fork")
        files.checkpoints.delete("slot", kept.checkpoint_id)
        files.sweep()
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = {f"{name}_x": round(value / medians["floor"], 2) for name, value in medians.items() if name != "floor"}
    return {f"{name}_ms": round(value, 1) for name, value in medians.items()} | ratios


def transfers(rooms: Rooms, folder: Path) -> dict[str, float]:
    """Megabytes of the save per second, out and in."""
    files, times = rooms.save.files, dict[str, list[float]]()
    live, size = files.layout.live("slot"), files.facts("slot").bytes / 1_000_000
    importer = Importer(rooms._disk, files, rooms.saves, Config().saves)
    place = importer.workplace()
    with timed(times, "export"), (place / "upload.zip").open("wb") as out:
        for piece in Export(rooms._disk, live, save="slot", name="").pieces():
            out.write(piece)
    with timed(times, "import"):
        importer.put(importer.prepare(place, place / "upload.zip", "imported"), Conflict.FAIL)
    packed = (place / "upload.zip").stat().st_size
    return {f"{name}_mb_per_s": round(size / values[0] * 1_000, 1) for name, values in times.items()} | {
        "zip_bytes": packed
    }


@contextmanager
def timed(times: dict[str, list[float]], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    times.setdefault(name, []).append((time.perf_counter() - began) * 1_000)


if __name__ == "__main__":
    sys.exit(main())
