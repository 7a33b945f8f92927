"""What a save is said to hold is what it holds: also while records of a call for several owners wait in its inbox for
their journals, and after a kill."""

from __future__ import annotations

import pytest
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import common_pb2, save_pb2

SAVE = "slot"


def for_two_owners(client):
    """One record each, of two actors of whom nothing is known yet, in one call."""
    owners = [common_pb2.Actor(save_id=SAVE, actor_id=name) for name in ("mira", "wolf")]
    Records(client, owners[0]).add(*(m("r", "a feast", owner=owner) for owner in owners))


def listed(client):
    return [(info.actors, info.records) for info in client.saves.ListSaves(save_pb2.ListSavesRequest()).saves]


def test_a_list_of_saves_counts_them_at_once_and_after_a_kill(daemon):
    for_two_owners(daemon.client)
    assert listed(daemon.client) == [(2, 2)]
    daemon.kill()
    assert listed(daemon.start().client) == [(2, 2)]


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_erasure_counts_them(daemon, dry_run):
    for_two_owners(daemon.client)
    request = save_pb2.EraseSaveRequest(save_id=SAVE, dry_run=dry_run)
    erased = daemon.client.saves.EraseSave(request).erased
    assert (erased.actors, erased.records) == (2, 2)
    assert listed(daemon.client) == ([(2, 2)] if dry_run else [])


def test_an_actor_of_whom_a_kill_left_an_empty_folder_is_none(daemon):
    mira = common_pb2.Actor(save_id=SAVE, actor_id="mira")
    daemon.client.write(mira, "The player is kind.")
    (save,) = (daemon.folder / "saves").iterdir()
    daemon.kill()
    (save / "a-made-and-no-more").mkdir()
    client = daemon.start().client
    assert listed(client) == [(1, 0)]
    made = client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=SAVE)).checkpoint
    assert made.actors == 1
