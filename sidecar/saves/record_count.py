"""How many records a folder in the form of a save's holds: counted in the bytes of its journals, which takes a fraction
of the time of reading them. Nothing is checked here: whoever opens a journal is told of its damage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sidecar.memory.record_ids import TURN_PREFIX
from sidecar.storage.disk import Disk
from sidecar.storage.keys import is_actor_folder

_JOURNAL = "records.jsonl"
_ADD, _FORGET = b'"op":"add"', b'"op":"forget"'
_ADD_TURN = f'"record":{{"id":"{TURN_PREFIX}'.encode()


def records_in(disk: Disk, folder: Path) -> int:
    """The records of all owners in ``folder``, archived turns left out."""
    return sum(_in_journal(disk, folder / name / _JOURNAL) for name in disk.names(folder) if is_actor_folder(name))


def _in_journal(disk: Disk, path: Path) -> int:
    """Rows that add, without those that later rows forget and without archived turns. Within a text a quote is
    escaped: it counts for none."""
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return 0
    data = data[: data.rfind(b"\n") + 1]  # a torn end was never acknowledged
    forgotten = sum(not record_id.startswith(TURN_PREFIX) for record_id in _forgotten(data))
    return data.count(_ADD) - data.count(_ADD_TURN) - forgotten


def _forgotten(data: bytes) -> Iterator[str]:
    for line in data.split(b"\n") if _FORGET in data else ():
        if _FORGET in line:
            with suppress(ValueError):
                yield from json.loads(line)["row"]["ids"]
