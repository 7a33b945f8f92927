"""Forgotten is forgotten: the bytes of the data folder hold nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_client import Chat
from client import failure
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2

SECRET = "The vault opens at 31-12-7."


def holding(daemon, *words):
    """The files that hold any of ``words``, as text or as a part of their name."""
    marks = [word.encode() for word in words]
    return [
        path.relative_to(daemon.folder).as_posix()
        for path in Path(daemon.folder).rglob("*")
        if path.is_file() and any(mark in path.read_bytes() or mark.decode() in path.name for mark in marks)
    ]


def actor(save, name, player=""):
    return common_pb2.Actor(save_id=save, actor_id=name, player_id=player)


def checkpoint(client, save):
    return client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=save)).checkpoint


def restore(client, save, kept):
    request = save_pb2.RestoreCheckpointRequest(save_id=save, checkpoint_id=kept.checkpoint_id)
    return client.saves.RestoreCheckpoint(request)


def test_nothing_of_an_erased_save_is_left(daemon):
    client = daemon.client
    client.write(actor("doomed", "traitor"), SECRET)
    restore(client, "doomed", checkpoint(client, "doomed"))
    client.write(actor("other", "wolf"), "stays")
    erased = client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="doomed"))
    assert erased.existed
    assert (erased.erased.actors, erased.erased.documents, erased.erased.checkpoints_deleted) == (1, 1, 2)
    assert holding(daemon, SECRET, "doomed", "traitor") == []
    assert client.read(actor("doomed", "traitor")).status == common_pb2.LOAD_STATUS_NOT_FOUND
    assert [info.save_id for info in client.saves.ListSaves(save_pb2.ListSavesRequest()).saves] == ["other"]
    assert daemon.restart().client.text(actor("other", "wolf")) == "stays"
    assert holding(daemon, SECRET, "doomed", "traitor") == []


def test_nothing_of_an_erased_actor_is_left_also_in_checkpoints(daemon):
    client = daemon.client
    client.write(actor("slot", "traitor"), SECRET)
    client.write(actor("slot", "wolf"), "stays")
    kept = checkpoint(client, "slot")
    restore(client, "slot", kept)
    erased = client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=actor("slot", "traitor")))
    assert (erased.existed, erased.erased.actors, erased.erased.checkpoints_rewritten) == (True, 1, 2)
    assert holding(daemon, SECRET, "traitor") == []
    restore(client, "slot", kept)
    assert client.text(actor("slot", "wolf")) == "stays"
    assert client.read(actor("slot", "traitor")).status == common_pb2.LOAD_STATUS_NOT_FOUND


def test_a_rewritten_checkpoint_tells_what_it_still_holds(daemon):
    records = Records(daemon.client, actor("slot", "traitor"))
    records.add(m("one"), m("two"), m("three", owner=records.other("wolf")))
    assert checkpoint(daemon.client, "slot").records == 3
    daemon.client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=records.actor))
    listed = daemon.client.saves.ListCheckpoints(save_pb2.ListCheckpointsRequest(save_id="slot")).checkpoints
    assert [(kept.rewritten, kept.actors, kept.records) for kept in listed] == [(True, 1, 1)]


def test_an_actor_that_lives_only_in_a_checkpoint_can_be_erased(daemon):
    client = daemon.client
    beginning = checkpoint(client, "slot")
    client.write(actor("slot", "traitor"), SECRET)
    restore(client, "slot", beginning)
    erased = client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=actor("slot", "traitor")))
    assert (erased.existed, erased.erased.actors, erased.erased.checkpoints_rewritten) == (True, 0, 1)
    assert holding(daemon, SECRET, "traitor") == []


def test_what_repair_kept_of_an_erased_actor_goes_too(daemon):
    client = daemon.client
    client.write(actor("slot", "traitor"), SECRET)
    (document,) = Path(daemon.folder, "saves").rglob("document.json")
    kept = Path(daemon.folder, "repaired", document.relative_to(daemon.folder).with_name("document.json.0"))
    kept.parent.mkdir(parents=True)
    kept.write_bytes(document.read_bytes())
    client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=actor("slot", "traitor")))
    assert holding(daemon, SECRET) == []


def test_nothing_of_an_erased_player_is_left_in_any_save(daemon):
    client = daemon.client
    for save in ("one", "two"):
        client.write(actor(save, "mira", "Ada Lovelace"), SECRET)
        client.write(actor(save, "mira", "Bob"), "about somebody else")
        client.write(actor(save, "mira"), "about nobody")
    kept = checkpoint(client, "one")
    gone = checkpoint(client, "two")
    client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=actor("two", "mira", "Bob")))
    client.write(actor("three", "wolf"), "stays")
    answer = client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id="Ada Lovelace"))
    assert [info.save_id for info in answer.saves] == ["one", "two"]
    assert (answer.erased.actors, answer.erased.documents, answer.erased.checkpoints_rewritten) == (2, 2, 2)
    assert holding(daemon, SECRET, "Ada Lovelace") == []
    restore(client, "one", kept)
    restore(client, "two", gone)
    assert client.text(actor("one", "mira", "Bob")) == "about somebody else"
    assert client.text(actor("two", "mira")) == "about nobody"


def test_only_the_saves_and_the_tenant_that_are_named_forget_a_player(daemon):
    client = daemon.client
    other = common_pb2.Actor(save_id="one", actor_id="mira", player_id="Ada", tenant_id="studio")
    for who in (actor("one", "mira", "Ada"), actor("two", "mira", "Ada"), other):
        client.write(who, "known")
    client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id="Ada", save_ids=["one"]))
    assert client.text(actor("one", "mira", "Ada")) == ""
    assert client.text(actor("two", "mira", "Ada")) == "known"
    assert client.text(other) == "known"


def test_a_dry_run_counts_and_keeps_everything(daemon):
    client = daemon.client
    client.write(actor("slot", "mira", "Ada"), SECRET)
    checkpoint(client, "slot")
    save = client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot", dry_run=True))
    player = client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id="Ada", dry_run=True))
    assert (save.existed, save.erased.actors, save.erased.checkpoints_deleted) == (True, 1, 1)
    assert (player.erased.actors, player.erased.checkpoints_rewritten) == (1, 1)
    assert client.text(actor("slot", "mira", "Ada")) == SECRET
    really = client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot"))
    assert really.erased == save.erased


def test_what_does_not_exist_is_told_as_such(daemon):
    client = daemon.client
    assert not client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="nothing")).existed
    assert not client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id="nobody")).saves


@pytest.mark.parametrize("save_id", ["", "  "])
def test_nothing_is_erased_by_omission(daemon, save_id):
    daemon.client.write(actor("", "mira"), "default")
    failed = failure(lambda: daemon.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id=save_id)))
    assert failed.kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")
    assert failure(lambda: daemon.client.saves.ErasePlayer(save_pb2.ErasePlayerRequest())).reason == "FIELD_REQUIRED"
    assert daemon.client.text(actor("", "mira")) == "default"


def test_an_erased_save_may_begin_anew(daemon):
    client = daemon.client
    client.write(actor("slot", "mira"), "old")
    client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot"))
    assert client.write(actor("slot", "mira"), "new").version == 1
    assert client.text(actor("slot", "mira")) == "new"


def test_a_save_that_cannot_be_read_can_be_erased(daemon):
    client = daemon.client
    client.write(actor("slot", "mira"), SECRET)
    daemon.stop()
    for path in Path(daemon.folder, "saves").rglob("*.json"):
        path.write_bytes(b"\xff" + path.read_bytes())
    client = daemon.start().client
    assert client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot")).existed
    assert holding(daemon, SECRET) == []


def test_groups_that_cannot_be_read_are_told_and_left_as_they_are(daemon):
    daemon.client.write(actor("slot", "traitor"), SECRET)
    (save,) = Path(daemon.folder, "saves").iterdir()
    (save / "groups.json").write_bytes(b'{"format":1,"groups":[7]}')
    request = memory_pb2.EraseActorRequest(actor=actor("slot", "traitor"))
    assert failure(lambda: daemon.client.memory.EraseActor(request)).kind == ("DATA_LOSS", "STORAGE_CORRUPT")


def test_a_pattern_of_members_that_names_nobody_else_goes_with_its_actor(daemon):
    client = daemon.client
    for role in ("Merchant", "Guard"):
        client.write(common_pb2.Actor(save_id="slot", actor_id="traitor", role_id=role), SECRET)
    members = [actor("", "traitor"), actor("", "wolf")]
    group = memory_pb2.Group(group_id="guild", members=members)
    client.memory.PutGroups(memory_pb2.PutGroupsRequest(save_id="slot", groups=[group]))

    def erase(role):
        who = common_pb2.Actor(save_id="slot", actor_id="traitor", role_id=role)
        client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=who))
        listed = client.memory.ListGroups(memory_pb2.ListGroupsRequest(save_id="slot")).groups
        return [member.actor_id for member in listed[0].members]

    assert erase("Merchant") == ["traitor", "wolf"]
    assert erase("Guard") == ["wolf"]
    assert holding(daemon, "traitor") == []


def test_a_player_is_forgotten_also_where_it_was_spoken_of_in_this_process_only(daemon):
    chat, whispered = Chat(daemon.client), actor("slot", "wolf", "ada")
    chat.talk(whispered, 40)
    assert chat.compact(whispered).compacted
    dry = daemon.client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id="ada", dry_run=True))
    erased = daemon.client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id="ada"))
    assert (erased.erased.messages, erased.erased.summaries) == (40, 1)
    assert dry.erased == erased.erased
    assert (chat.texts(whispered), chat.summary(whispered).version) == ([], 0)


def test_a_save_is_forgotten_also_where_it_has_no_files(daemon):
    chat, doomed, other = Chat(daemon.client), actor("doomed", "wolf"), actor("other", "wolf")
    chat.talk(doomed, 3)
    chat.talk(other, 3)
    erased = daemon.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="doomed"))
    assert (erased.existed, erased.erased.messages) == (True, 3)
    assert (len(chat.texts(doomed)), len(chat.texts(other))) == (0, 3)
    daemon.client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=other))
    assert list(daemon.client.saves.ListSaves(save_pb2.ListSavesRequest()).saves) == []
