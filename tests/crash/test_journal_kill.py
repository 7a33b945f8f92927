"""A process that is killed while it appends loses nothing that it had acknowledged."""

import random
import subprocess
import sys
import time

from sidecar.storage.file_disk import FileDisk
from sidecar.storage.journal import Journal

APPENDER = """
import sys
from pathlib import Path
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.journal import Journal

root = Path(sys.argv[1])
journal = Journal(FileDisk(root), root / "rows.jsonl")
number = len(journal.load().lines) // 2
while True:
    journal.append([{"number": number, "half": 0}, {"number": number, "half": 1, "filler": "狼" * 2000}])
    print(number, flush=True)
    number += 1
"""


def killed_run(root, seconds: float) -> int:
    """Append until killed; the last acknowledged number."""
    with subprocess.Popen([sys.executable, "-c", APPENDER, str(root)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = int(process.stdout.readline())
        time.sleep(seconds)
        process.kill()
        return max([acknowledged, *(int(line) for line in process.stdout.read().splitlines())])


def test_nothing_acknowledged_is_lost_and_nothing_half_done_stays(tmp_path):
    randomness = random.Random(7)
    for _ in range(12):
        acknowledged = killed_run(tmp_path, randomness.uniform(0, 0.05))
        found = [line.row for line in Journal(FileDisk(tmp_path), tmp_path / "rows.jsonl").load().lines]
        numbers = [row["number"] for row in found]
        assert numbers == [number for number in range(len(found) // 2) for _ in (0, 1)]
        assert acknowledged <= numbers[-1] <= acknowledged + 1
