"""Processes that are killed while they add records lose nothing that they had acknowledged."""

import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from record_samples import house_on
from records_client import Records, m

ADDER = """
import random, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from record_samples import house_on, owner, record

house = house_on(Path(sys.argv[1]))
chance = random.Random(int(sys.argv[3]))

def move():
    while True:
        house.store.flush("session", most=chance.choice([1, 3, None]))
        time.sleep(0.001)

threading.Thread(target=move, daemon=True).start()
number = house.store.catalog("session").total
while True:
    number += 1
    size = chance.choice([1, 1, 3])
    names = [f"npc {chance.randrange(6)}" for _ in range(size)]
    batch = [(owner(name), record(f"{sys.argv[3]} {number} {place}", "wolf")) for place, name in enumerate(names)]
    house.store.add("session", batch)
    forgotten = chance.random() < 0.1 and house.store.forget(*[(who, [one.head.record_id]) for who, one in batch][0])
    for who, one in batch[1 if forgotten else 0:]:
        print(f"{who.actor}/{one.head.record_id}", flush=True)
"""
ROUNDS = 50


def killed_run(folder: Path, seed: int) -> set[str]:
    """Add until killed; what was acknowledged."""
    arguments = [sys.executable, "-c", ADDER, str(folder), str(Path(__file__).parent.parent), str(seed)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(random.Random(seed).uniform(0, 0.08))
        process.kill()
        rest = process.stdout.read().splitlines(keepends=True)
    assert first, "the process ended by itself"
    return {line.strip() for line in [first, *rest] if line.endswith("\n")}


def stored(folder: Path) -> tuple[set[str], int, int]:
    """What is there after the next opening, the records that the catalog counts, and the words that the index has."""
    house = house_on(folder)
    catalog = house.store.catalog("session")
    found = {f"{who.actor}/{record_id}" for who in catalog.owners() for record_id in house.ids(who)}
    house.index_now()
    indexed = sum(len(house.indexes.of("session").words(row.folder)) for row in house.indexes.of("session").owners())
    house.close()
    return found, catalog.total, indexed


def killed_again_and_again(folder: Path, seed: int) -> None:
    acknowledged: set[str] = set()
    for number in range(ROUNDS):
        acknowledged |= killed_run(folder, seed * ROUNDS + number)
    found, counted, indexed = stored(folder)
    assert acknowledged - found == set()
    assert len(found) == counted == indexed
    assert stored(folder)[0] == found


@pytest.mark.slow
def test_two_processes_killed_a_hundred_times_lose_nothing_that_was_acknowledged(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(killed_again_and_again, [tmp_path / "one", tmp_path / "two"], [1, 2]))


def test_a_daemon_that_is_killed_keeps_what_it_acknowledged(daemon, actor):
    acknowledged: list[str] = []
    for number in range(3):
        records = Records(daemon.client, actor)
        for place in range(10):
            batch = [m(f"{number} {place} {n}", "wolf", owner=records.other(str(n))) for n in range(5)]
            records.add(*batch)
            acknowledged += [one.record_id for one in batch]
        daemon.kill()
        daemon.start()
    records = Records(daemon.client, actor)
    assert sorted(records.listed(all_owners=True, page_size=1_000)) == sorted(acknowledged)
    assert records.rebuild()[-1].total == len(acknowledged)
    status = records.status()
    assert (status.total, status.terms_ready, status.orphan) == (len(acknowledged), len(acknowledged), 0)


def test_a_daemon_that_is_killed_while_many_saves_wait_keeps_what_it_acknowledged(start_daemon, actor):
    """More waits in the inboxes than may, so calls move rows of other saves while they add their own."""
    daemon = start_daemon("--set", "records.max_waiting_bytes=4000")
    saves = [f"{actor.save_id} {number}" for number in range(4)]
    for number in range(3):
        records = Records(daemon.client, actor)
        for place in range(12):
            save = saves[place % 4]
            batch = [m(f"{number} {place} {n}", "wolf", owner=records.other(f"{place} {n}", save)) for n in range(5)]
            records.add(*batch, actor=records.other("", save))
        daemon.kill()
        daemon.start()
    records = Records(daemon.client, actor)
    for save in saves:
        assert len(records.listed(records.other("", save), all_owners=True, page_size=1_000)) == 45


def test_a_daemon_that_is_killed_between_calls_with_keys_does_each_of_them_once(daemon, actor):
    from sidecar.gen.lorekeeper.v1 import memory_pb2

    for number in range(3):
        records = Records(daemon.client, actor)
        records.add(m(f"old {number}"))
        given = {"filter": memory_pb2.RecordFilter(), "idempotency_key": f"key {number}"}
        assert records.forget(**given).forgotten == 1 + (number > 0)
        records.add(m(f"new {number}"))
        daemon.kill()
        daemon.start()
        again = Records(daemon.client, actor)
        assert again.forget(**given).forgotten == 1 + (number > 0)
        assert again.listed() == [f"new {number}"]


def emptied(daemon, actor):
    """The records of a new run whose index knows an owner with a journal and without records."""
    records = Records(daemon.client, actor)
    records.add(m("first", "wolf"), m("second", "wolf"), idempotency_key="k")
    records.until_indexed(2)
    records.forget("first", "second")
    records.until_indexed(0)
    return Records(daemon.restart().client, actor)


def test_what_an_owner_without_records_is_given_together_with_others_survives_a_kill(daemon, actor):
    records = emptied(daemon, actor)
    other = records.other("tomas")
    records.add(m("third", "wolf"), m("fourth", "wolf", owner=other))
    daemon.kill()
    records = Records(daemon.start().client, actor)
    assert (records.listed(), records.listed(other)) == (["third"], ["fourth"])


def test_what_was_forgotten_stays_so_where_an_owner_has_no_records_left(daemon, actor):
    records = emptied(daemon, actor)
    records.add(m("first", "wolf"), m("second", "wolf"), idempotency_key="k")
    assert records.listed() == []
