"""A call is answered, the daemon is killed, and the game, which never heard the answer, asks again with the same key:
it hears the same, and nothing happens a second time."""

from __future__ import annotations

import threading
from contextlib import suppress

import grpc
import pytest
from client import failure

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2


def mira(save="slot"):
    return common_pb2.Actor(save_id=save, actor_id="mira", player_id="Ada")


def erase_save(client, key="k"):
    return client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot", idempotency_key=key))


def erase_actor(client, key="k"):
    return client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=mira(), idempotency_key=key))


def erase_player(client, key="k"):
    return client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id="Ada", idempotency_key=key))


def fork(client, new="fork", key="k"):
    return client.saves.ForkSave(save_pb2.ForkSaveRequest(save_id="slot", new_save_id=new, idempotency_key=key))


def answered_or_not(call, client):
    with suppress(grpc.RpcError):
        call(client)


def killed(daemon):
    daemon.kill()
    return daemon.start().client


@pytest.mark.parametrize("erase", [erase_save, erase_actor, erase_player])
def test_what_was_made_anew_is_not_erased(daemon, erase):
    daemon.client.write(mira(), "old")
    first = erase(daemon.client)
    assert first.erased.documents == 1
    assert erase(daemon.client) == first
    client = killed(daemon)
    client.write(mira(), "new")
    assert erase(client).erased == first.erased
    assert client.text(mira()) == "new"
    assert erase(client, key="another").erased.documents == 1
    assert client.text(mira()) == ""


@pytest.mark.parametrize("erase", [erase_save, erase_actor, erase_player])
def test_an_erasure_that_a_kill_breaks_off_is_ended_by_the_next_start_which_knows_its_key(daemon, erase):
    daemon.client.write(mira(), "old secret")
    for _ in range(20):
        daemon.client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot"))
    asking = threading.Thread(target=answered_or_not, args=(erase, daemon.client), daemon=True)
    asking.start()
    while asking.is_alive() and not list(daemon.folder.glob("exchange/e-*.json")):
        pass
    client = killed(daemon)
    asking.join()
    assert not any(b"old secret" in path.read_bytes() for path in daemon.folder.rglob("*") if path.is_file())
    assert list((daemon.folder / "exchange").iterdir()) == []
    client.write(mira(), "new")
    assert erase(client).erased.documents == 1
    assert client.text(mira()) == "new"


def test_a_fork_is_made_once_and_goes_on(daemon):
    daemon.client.write(mira(), "common past")
    first = fork(daemon.client)
    client = killed(daemon)
    client.append(mira("fork"), "only there")
    again = fork(client)
    assert (again.method, again.info.save_id, again.info.forked_from) == (first.method, "fork", "slot")
    assert client.text(mira("fork")) == "common past\nonly there"
    assert failure(lambda: fork(client, new="second")).kind == ("ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")
    assert [info.save_id for info in client.saves.ListSaves(save_pb2.ListSavesRequest()).saves] == ["fork", "slot"]


def test_a_fork_that_was_erased_since_is_not_made_again(daemon):
    daemon.client.write(mira(), "common past")
    fork(daemon.client)
    daemon.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="fork"))
    client = killed(daemon)
    fork(client)
    assert [info.save_id for info in client.saves.ListSaves(save_pb2.ListSavesRequest()).saves] == ["slot"]


def test_a_deleted_checkpoint_is_told_as_before(daemon):
    daemon.client.write(mira(), "one")
    made = daemon.client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot")).checkpoint
    request = save_pb2.DeleteCheckpointRequest(save_id="slot", checkpoint_id=made.checkpoint_id, idempotency_key="k")
    first = daemon.client.saves.DeleteCheckpoint(request)
    assert first.existed
    assert killed(daemon).saves.DeleteCheckpoint(request) == first


def test_settings_are_not_set_back_by_a_retry(daemon):
    def put(client, name, key=""):
        settings = save_pb2.SaveSettings(name=name)
        request = save_pb2.PutSaveSettingsRequest(save_id="slot", settings=settings, idempotency_key=key)
        return client.saves.PutSaveSettings(request)

    first = put(daemon.client, "before", key="k")
    client = killed(daemon)
    put(client, "after")
    assert put(client, "before", key="k").effective == first.effective
    read = client.saves.GetSaveSettings(save_pb2.GetSaveSettingsRequest(save_id="slot"))
    assert read.settings.name == "after"


def test_a_key_of_another_request_is_refused_after_a_kill_too(daemon):
    daemon.client.write(mira(), "one")
    erase_save(daemon.client)
    client = killed(daemon)
    request = save_pb2.EraseSaveRequest(save_id="other", idempotency_key="k")
    assert failure(lambda: client.saves.EraseSave(request)).reason == "IDEMPOTENCY_KEY_REUSED"


def test_what_is_kept_of_keys_is_bounded_and_holds_no_id(start_daemon):
    daemon = start_daemon("--set", "saves.kept_answers=2")
    for number in range(9):
        daemon.client.write(mira(), "one")
        erase_player(daemon.client, key=f"zyxq {number}")
        fork(daemon.client, new=f"zyxq {number}", key=f"zyxq {number}")
    kept = (daemon.folder / "answers.jsonl").read_bytes()
    assert len(kept.splitlines()) <= 4
    assert not any(word in kept for word in (b"zyxq", b"slot", b"Ada"))
