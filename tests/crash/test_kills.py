"""Real kills at moments that nobody chose: what was told is there, and nothing is torn."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time

import grpc
import pytest

from sidecar.gen.lorekeeper.v1 import common_pb2

ACTOR = common_pb2.Actor(actor_id="mira")
EDITS = 200


class Appender(threading.Thread):
    """Appends one fact after the other until a call fails or all are there; ``told`` has those that were told."""

    def __init__(self, client, *, first, some):
        """``some_told`` is set once ``some`` were told, and when it ends."""
        super().__init__(daemon=True)
        self._client = client
        self._next = first
        self._some = some
        self.some_told = threading.Event()
        self.told = []

    def run(self):
        while self._next < EDITS:
            try:
                self._client.append(ACTOR, f"fact {self._next:03}")
            except grpc.RpcError:
                break
            self.told.append(self._next)
            self._next += 1
            if len(self.told) >= self._some:
                self.some_told.set()
        self.some_told.set()


@pytest.mark.slow
def test_no_acknowledged_edit_is_lost_when_the_daemon_is_killed_again_and_again(daemon):
    chance = random.Random(4)
    told, kills = 0, 0
    while told < EDITS:
        appender = Appender(daemon.client, first=told, some=chance.randrange(50))
        appender.start()
        appender.some_told.wait()
        # The moment within the next edit is what is tried out here, so that it cannot wait for an event.
        time.sleep(chance.uniform(0, 0.003))
        daemon.process.kill()
        appender.join()
        daemon.wait()
        kills += 1
        daemon.restart()
        told += len(appender.told)
        document = daemon.client.read(ACTOR)
        lines = document.text.split("\n") if document.text else []
        # The last edit may have been stored without having been told; it is never half there.
        assert lines in [[f"fact {number:03}" for number in range(count)] for count in (told, told + 1)]
        assert document.version == len(lines)
        newest = daemon.client.versions(ACTOR, include_content=True).versions[-1:]
        assert [version.content for version in newest] == ([document.text] if lines else [])
        told = len(lines)
    assert kills >= 5


@pytest.mark.slow
def test_a_revision_that_was_told_is_never_told_again_after_a_kill(daemon):
    told = []
    for round_ in range(5):
        for number in range(3):
            told.append(daemon.client.append(ACTOR, f"fact {round_}.{number}").save.revision)
        daemon.kill()
        daemon.restart()
        assert daemon.client.read(ACTOR).save.revision >= told[-1]
    assert told == sorted(set(told))


def test_32_clients_that_append_to_one_document_at_once_lose_nothing(daemon):
    clients = [daemon.connect() for _ in range(32)]
    together = threading.Barrier(32)

    def append(number):
        together.wait()
        clients[number].append(ACTOR, f"fact_{number:02}")

    threads = [threading.Thread(target=append, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(daemon.client.text(ACTOR).split("\n")) == [f"fact_{number:02}" for number in range(32)]
    assert daemon.client.read(ACTOR).version == 32
    daemon.kill()
    daemon.restart()
    assert len(daemon.client.text(ACTOR).split("\n")) == 32


def test_32_calls_of_the_tool_on_one_document_at_once_lose_nothing(daemon):
    clients = [daemon.connect() for _ in range(4)]
    together = threading.Barrier(32)

    def append(number):
        together.wait()
        clients[number % 4].call_tool(ACTOR, {"action": "append", "content": f"fact_{number:02}"})

    threads = [threading.Thread(target=append, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(daemon.client.text(ACTOR).split("\n")) == [f"fact_{number:02}" for number in range(32)]


# Migrates a folder in steps that take a while, over and over, and says when the first one has begun.
MIGRATE = """
import sys
from pathlib import Path
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.format import Migration, open_format

def step(mark):
    def change(disk):
        print("step", flush=True)
        folder = disk.root / "saves"
        for name in disk.names(folder):
            if not name.endswith(".tmp") and not disk.read(folder / name).endswith(mark):
                disk.replace(folder / name, disk.read(folder / name) + mark)
    return change

steps = [Migration(to, step(b"<%d>" % to)) for to in range(2, 6)]
print("done", open_format(FileDisk(Path(sys.argv[1])), current=5, migrations=steps), flush=True)
"""
FILES = 40


@pytest.mark.slow
def test_a_migration_that_is_killed_at_random_moments_ends_with_every_step_taken_once(tmp_path):
    saves = tmp_path / "saves"
    saves.mkdir()
    for number in range(FILES):
        (saves / f"file-{number}").write_bytes(b"%d" % number)
    (tmp_path / "format.json").write_text('{"format":1}', encoding="utf-8")
    chance, kills = random.Random(1), 0
    while True:
        with subprocess.Popen([sys.executable, "-c", MIGRATE, str(tmp_path)], stdout=subprocess.PIPE) as migration:
            migration.stdout.readline()
            # The moment of the kill is what is tried out here, so that it cannot wait for an event.
            time.sleep(chance.uniform(0, 0.02 * (kills + 1)))
            migration.kill()
            if b"done" in migration.stdout.read():
                break
        kills += 1
    assert kills > 1
    for number in range(FILES):
        assert (saves / f"file-{number}").read_bytes() == b"%d<2><3><4><5>" % number
        assert (tmp_path / "backups" / "format-1" / "saves" / f"file-{number}").read_bytes() == b"%d" % number
    assert (tmp_path / "format.json").read_text("utf-8") == '{"format":5}'
