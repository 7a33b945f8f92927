"""``doctor`` and ``repair`` on what lies beside the journals of records, and on checkpoints."""

from __future__ import annotations

import json

import pytest
from client import failure
from daemon_process import run_command
from record_samples import house_on, record
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import save_pb2
from sidecar.wire import actor_from


def run(name, folder, *arguments):
    return run_command(name, "--json", *arguments, folder=folder)


@pytest.fixture
def records(daemon, actor):
    """Of each run of the daemon."""
    return lambda: Records(daemon.client, actor)


def damage(folder, name, word):
    """Change a word in the one file of a save that is called so and holds it, and in all that share its bytes."""
    (file,) = [path for path in (folder / "saves").rglob(name) if word in path.read_bytes()]
    data = file.read_bytes().replace(word, word.swapcase(), 1)
    with file.open("r+b") as opened:
        opened.write(data)


def leave_in_inbox(folder, name, actors):
    """A record of each actor, added in one call and in no journal yet, as a kill may leave them."""
    house = house_on(folder)
    owners = [actor_from(actor) for actor in actors]
    house.store.add(owners[0].save, [(who, record(name)) for who in owners])
    house.close()


def test_an_inbox_with_a_bad_line_can_be_mended_and_the_other_lines_count(daemon, records):
    mine, other = records().actor, records().other("other")
    daemon.stop()
    for name in ("first", "second"):
        leave_in_inbox(daemon.folder, name, [mine, other])
    damage(daemon.folder, "inbox.jsonl", b"first")
    daemon.start()
    assert failure(lambda: records().listed()).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    daemon.stop()
    assert json.loads(run("doctor", daemon.folder).stdout)[0]["problem"] == "1 of its lines cannot be read"
    assert run("repair", daemon.folder, "--yes").returncode == 0
    daemon.start()
    assert [records().listed(), records().listed(other)] == [["second"], ["first", "second"]]


def test_kept_answers_with_a_bad_line_can_be_mended(daemon, records):
    records().add(m("m1"), m("m2"), m("m3"))
    for key in ("a", "b"):
        records().forget(f"m{1 + 'ab'.index(key)}", idempotency_key=key)
    daemon.stop()
    damage(daemon.folder, "answers.jsonl", b"answer")
    daemon.start()
    assert failure(lambda: records().forget("m3", idempotency_key="c")).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    daemon.stop()
    assert run("repair", daemon.folder, "--yes").returncode == 0
    daemon.start()
    assert records().forget("m3", idempotency_key="c").forgotten == 1
    assert records().forget("m2", idempotency_key="b").forgotten == 1


def test_a_checkpoint_that_shares_damaged_bytes_can_still_be_restored_after_a_repair(daemon, records):
    records().add(m("m1", "wolf"))
    records().add(m("m2", "wolf"), actor=records().other("other"))
    records().add(m("m3", "wolf"))
    save = records().actor.save_id
    checkpoint = daemon.client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=save)).checkpoint
    daemon.stop()
    damage(daemon.folder, "records.jsonl", b"m1")
    assert run("repair", daemon.folder, "--yes").returncode == 1
    (left,) = json.loads(run("doctor", daemon.folder).stdout)
    assert left["file"].startswith("checkpoints/")
    daemon.start()
    assert records().listed() == ["m3"]
    wanted = save_pb2.RestoreCheckpointRequest(save_id=save, checkpoint_id=checkpoint.checkpoint_id)
    assert daemon.client.saves.RestoreCheckpoint(wanted).save.epoch == 1
    assert records().listed(records().other("other")) == ["m2"]
    daemon.stop()
    run("repair", daemon.folder, "--yes")
    daemon.start()
    assert records().listed() == ["m3"]
