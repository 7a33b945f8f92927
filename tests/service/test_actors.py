"""Who remembers: any id, lists of actors, and forgetting one completely."""

from __future__ import annotations

import re

import pytest
from chat_client import Chat
from client import failure

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, system_pb2


def listed(client, save, **more):
    return client.memory.ListActors(memory_pb2.ListActorsRequest(save_id=save, **more))


def erase(client, actor, **more):
    return client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=actor, **more))


STRANGE = [
    "emoji 🎮🧙", "a/b", "a\\b", "..", "../../etc/passwd", ".", "CON", "NUL", "aux.txt", "LPT1", "a:b", "a*b?",
    "a|b<c>",     "x" * 500, "日" * 512, "Mira", "mira", "MIRA", "caf\u00e9", "cafe\u0301", "'; DROP TABLE actors; --",
    "%2e%2e", "~", "$HOME", "\u202eright to left", "trailing dot.", "-rf", "a\u00a0b", "İstanbul", "ﬁ",
]  # fmt: skip


def test_any_text_is_an_id_and_each_is_its_own_memory_through_a_restart(daemon):
    parts = ("save_id", "actor_id", "role_id", "player_id", "topic_id", "tenant_id")
    actors = [common_pb2.Actor(**{"actor_id": "someone", part: name}) for part in parts for name in STRANGE]
    texts = [f"{number} of {len(actors)}" for number in range(len(actors))]
    for actor, text in zip(actors, texts, strict=True):
        daemon.client.write(actor, text)
    daemon.restart()
    assert [daemon.client.text(actor) for actor in actors] == texts
    names = [path.name for path in daemon.folder.joinpath("saves").rglob("*")]
    assert all(re.fullmatch(r"[sa]-[0-9a-f]{32}|(save|actor|document)\.json", name) for name in names)


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "\x7fa\x7fb", "x" * 513])
def test_an_id_that_no_text_is_or_that_is_too_long_is_refused(client, name):
    told = failure(lambda: client.write(common_pb2.Actor(actor_id=name), "one"))
    assert (told.code.name, told.fields) == ("INVALID_ARGUMENT", ("actor.actor_id",))


def test_a_list_has_every_actor_of_the_save_with_its_whole_address(client):
    actors = [
        common_pb2.Actor(
            save_id="list", actor_id="mira", role_id="Merchant", player_id="p", topic_id="t", tenant_id="n"
        ),
        common_pb2.Actor(save_id="list", actor_id="bran 🧙", role_id="Creator"),
    ]
    for actor in actors:
        client.write(actor, "日本")
    client.write(common_pb2.Actor(save_id="another", actor_id="x"), "two")
    found = listed(client, "list").actors
    assert sorted(one.actor.SerializeToString() for one in found) == sorted(one.SerializeToString() for one in actors)
    assert {(one.document_version, one.document_length, one.document_status) for one in found} == {
        (1, 2, common_pb2.LOAD_STATUS_LOADED)
    }
    assert all(one.bytes > 100 and one.updated.seconds for one in found)


def test_a_list_may_be_of_one_role_or_one_player(client):
    for number, (role, player) in enumerate([("A", "p"), ("A", "q"), ("B", "p")]):
        client.write(common_pb2.Actor(save_id="filtered", actor_id=str(number), role_id=role, player_id=player), "x")
    assert {one.actor.actor_id for one in listed(client, "filtered", role_id="A").actors} == {"0", "1"}
    assert {one.actor.actor_id for one in listed(client, "filtered", player_id="p").actors} == {"0", "2"}
    assert {one.actor.actor_id for one in listed(client, "filtered", role_id="A", player_id="p").actors} == {"0"}


def test_a_list_comes_in_pages_that_miss_nobody_and_name_nobody_twice(client):
    names = {f"actor {number}" for number in range(7)}
    for name in names:
        client.write(common_pb2.Actor(save_id="paged", actor_id=name), "x")
    seen, token = [], ""
    while True:
        page = listed(client, "paged", page_size=3, page_token=token)
        assert len(page.actors) <= 3
        seen += [one.actor.actor_id for one in page.actors]
        token = page.next_page_token
        if not token:
            break
    assert (len(seen), set(seen)) == (7, names)


def test_a_save_that_holds_nothing_has_no_actors_and_is_not_created_by_looking(daemon):
    assert listed(daemon.client, "nothing").actors == []
    daemon.client.read(common_pb2.Actor(save_id="nothing", actor_id="x"))
    assert not (daemon.folder / "saves").exists()


def test_an_erased_actor_is_gone_from_the_disk_and_from_every_answer(daemon, actor):
    daemon.client.write(actor, "the secret")
    counted = erase(daemon.client, actor, dry_run=True)
    assert daemon.client.text(actor) == "the secret"
    done = erase(daemon.client, actor)
    assert (done.existed, done.erased) == (True, counted.erased)
    assert (done.erased.actors, done.erased.documents) == (1, 1)
    assert done.erased.bytes > 0
    assert daemon.client.read(actor).status == common_pb2.LOAD_STATUS_NOT_FOUND
    assert listed(daemon.client, actor.save_id).actors == []
    assert not [path for path in daemon.folder.rglob("*") if path.is_file() and b"the secret" in path.read_bytes()]
    assert erase(daemon.client, actor).existed is False


def test_an_erasure_counts_no_document_that_was_reset(client, actor):
    client.write(actor, "one")
    client.memory.ResetDocument(memory_pb2.ResetDocumentRequest(actor=actor))
    assert erase(client, actor).erased.documents == 0


@pytest.mark.parametrize("name", ["document.json", "actor.json"])
def test_an_actor_whose_files_are_damaged_can_be_erased_and_begin_anew(daemon, actor, name):
    daemon.client.write(actor, "one")
    daemon.stop()
    next(daemon.folder.rglob(name)).write_bytes(b"{")
    daemon.start()
    assert erase(daemon.client, actor).erased.documents == 1
    assert daemon.client.write(actor, "two").version == 1


def test_an_erasure_that_is_resent_after_a_kill_spares_the_actor_that_began_anew(daemon, actor):
    daemon.client.write(actor, "one")
    request = memory_pb2.EraseActorRequest(actor=actor, idempotency_key="key 1")
    first = daemon.client.memory.EraseActor(request)
    daemon.client.write(actor, "two")
    daemon.kill()
    daemon.start()
    again = daemon.client.memory.EraseActor(request)
    assert (again.existed, again.erased) == (True, first.erased)
    assert daemon.client.memory.GetDocument(memory_pb2.GetDocumentRequest(actor=actor)).text == "two"


def test_an_erased_actor_may_begin_anew(client, actor):
    client.write(actor, "one", idempotency_key="k")
    erase(client, actor)
    assert client.write(actor, "two", idempotency_key="k").version == 1


def test_an_erasure_leaves_other_actors_alone(client, actor):
    other = common_pb2.Actor(save_id=actor.save_id, actor_id="other")
    client.write(actor, "one")
    client.write(other, "two")
    erase(client, actor)
    assert client.text(other) == "two"


def test_an_erasure_that_was_killed_in_the_middle_leaves_no_half_actor_and_a_repeat_ends_it(daemon, actor):
    daemon.client.write(actor, "the secret")
    daemon.stop()
    folder = next(daemon.folder.rglob("actor.json")).parent
    folder.rename(folder.with_name(folder.name + ".erased"))
    daemon.start()
    assert listed(daemon.client, actor.save_id).actors == []
    assert daemon.client.read(actor).status == common_pb2.LOAD_STATUS_NOT_FOUND
    assert erase(daemon.client, actor).existed is False
    assert not list(daemon.folder.rglob("*.erased"))


def test_a_damaged_actor_is_left_out_of_the_list_and_told_and_the_others_are_there(daemon):
    for name in ("mira", "tomas"):
        daemon.client.write(common_pb2.Actor(actor_id=name), "A line.")
    damaged = next(path for path in daemon.folder.rglob("actor.json") if "mira" in path.read_text("utf-8"))
    damaged.write_bytes(b"{")
    listed = daemon.client.memory.ListActors(memory_pb2.ListActorsRequest()).actors
    assert [info.actor.actor_id for info in listed] == ["tomas"]
    watch = daemon.client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(after_sequence=0))
    told = next(answer.diagnostic for answer in watch if answer.diagnostic.code == "actor_damaged")
    watch.cancel()
    assert told.details["file"].endswith("actor.json")


def test_a_list_tells_who_has_a_summary(client, actor):
    chat = Chat(client)
    chat.put_summary(actor, "They met in the rain.")
    assert [info.has_summary for info in listed(client, actor.save_id).actors if info.actor == actor] == [True]
    chat.clear_summary(actor, idempotency_key="k")
    assert [info.has_summary for info in listed(client, actor.save_id).actors if info.actor == actor] == [False]
