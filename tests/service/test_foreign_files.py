"""What file managers and cloud drives leave in a data folder is nobody's save and nobody's memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from client import append
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2

MIRA = common_pb2.Actor(save_id="slot 1", actor_id="mira", role_id="Merchant")
FOREIGN = (".DS_Store", "Thumbs.db", "desktop.ini", "._saves")
COPY = " (conflicted copy 2026-03-01)"


def littered(folder: Path) -> None:
    """As after a look at the folder in file managers, and a conflict that a cloud drive solved by copies."""
    saves = folder / "saves"
    for path in [path for path in saves.glob("s-*/a-*") if path.is_dir()] + list(saves.glob("s-*")):
        shutil.copytree(path, path.with_name(path.name + COPY))
    for place in [saves, *saves.glob("s-*"), *saves.glob("s-*/a-*")]:
        for name in FOREIGN:
            (place / name).write_bytes(b"\0\1")


@pytest.fixture
def client(daemon: Any) -> Any:
    """A client of a daemon on a folder in that state."""
    Records(daemon.client, MIRA).add(m("wolf", "The player spared the wolf.", tick=7))
    daemon.client.edit(MIRA, append("Owes me 12 silver."))
    daemon.client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot 1"))
    daemon.stop()
    littered(daemon.folder)
    return daemon.start().client


def test_a_save_is_listed_once_and_counts_what_it_holds(client):
    (save,) = client.saves.ListSaves(save_pb2.ListSavesRequest()).saves
    assert (save.save_id, save.actors, save.records) == ("slot 1", 1, 1)
    assert [
        actor.actor.actor_id
        for actor in client.memory.ListActors(memory_pb2.ListActorsRequest(save_id="slot 1")).actors
    ] == ["mira"]


def test_memories_are_found_once_and_can_be_changed(client):
    records = Records(client, MIRA)
    assert records.found("wolf") == ["wolf"]
    records.forget("wolf")
    assert records.found("wolf") == []
    client.edit(MIRA, append("Paid."))
    assert client.text(MIRA) == "Owes me 12 silver.\nPaid."


def test_an_erased_save_stays_in_no_copy(client, daemon):
    client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot 1"))
    left = [path for path in daemon.folder.rglob("*.json*") if b"silver" in path.read_bytes()]
    assert left == []
