"""A fork is a save of its own from the moment it is made."""

from __future__ import annotations

import pytest
from client import failure

from sidecar.gen.lorekeeper.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    common_pb2,
    memory_pb2,
    save_pb2,
    search_pb2,
    search_pb2_grpc,
)


@pytest.fixture
def names(request):
    """The ids of a save and its fork, of this test alone."""
    return f"old {request.node.name}", f"new {request.node.name}"


def mira(save):
    return common_pb2.Actor(save_id=save, actor_id="mira")


def fork(client, old, new, **more):
    return client.saves.ForkSave(save_pb2.ForkSaveRequest(save_id=old, new_save_id=new, **more))


def test_a_fork_knows_what_was_known_and_goes_its_own_way(client, names):
    old, new = names
    client.write(mira(old), "common past")
    made = fork(client, old, new)
    assert (made.info.save_id, made.info.forked_from, made.info.actors) == (new, old, 1)
    assert made.save.epoch == 0
    client.append(mira(old), "only here")
    client.append(mira(new), "only there")
    assert client.text(mira(old)) == "common past\nonly here"
    assert client.text(mira(new)) == "common past\nonly there"
    assert [version.version for version in client.versions(mira(new)).versions] == [1, 2]


def test_a_fork_of_a_checkpoint_knows_what_was_known_then(client, names):
    old, new = names
    client.write(mira(old), "then")
    request = save_pb2.CreateCheckpointRequest(save_id=old)
    kept = client.saves.CreateCheckpoint(request).checkpoint
    client.write(mira(old), "now")
    fork(client, old, new, checkpoint_id=kept.checkpoint_id)
    assert client.text(mira(new)) == "then"
    assert client.text(mira(old)) == "now"


def test_a_fork_keeps_the_name_unless_it_gets_another(client, names):
    old, new = names
    settings = save_pb2.SaveSettings(name="The long road", languages=["ru"])
    client.saves.PutSaveSettings(save_pb2.PutSaveSettingsRequest(save_id=old, settings=settings))
    assert fork(client, old, new).info.name == "The long road"
    assert fork(client, old, new + "2", new_name="The short road").info.name == "The short road"
    read = client.saves.GetSaveSettings(save_pb2.GetSaveSettingsRequest(save_id=new + "2"))
    assert list(read.settings.languages) == ["ru"]


def test_a_fork_never_overwrites_a_save(client, names):
    old, new = names
    client.write(mira(old), "old")
    client.write(mira(new), "new")
    assert failure(lambda: fork(client, old, new)).kind == ("ALREADY_EXISTS", "SAVE_EXISTS")
    assert failure(lambda: fork(client, old, old)).kind == ("ALREADY_EXISTS", "SAVE_EXISTS")
    assert client.text(mira(new)) == "new"


def test_a_fork_of_nothing_is_not_found(client, names):
    assert failure(lambda: fork(client, *names)).kind == ("NOT_FOUND", "SAVE_NOT_FOUND")
    assert failure(lambda: fork(client, names[0], "")).kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")


def test_a_repeated_fork_with_the_same_key_answers_the_same(client, names):
    client.write(mira(names[0]), "one")
    first = fork(client, *names, idempotency_key="k")
    assert fork(client, *names, idempotency_key="k") == first


def test_a_fork_outlives_the_save_that_it_came_from(client, names):
    old, new = names
    client.write(mira(old), "kept")
    fork(client, old, new)
    client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id=old))
    assert client.text(mira(new)) == "kept"


def test_saves_are_listed_by_id_and_by_pages(client, names):
    old, new = names
    client.write(mira(old), "one")
    fork(client, old, new)
    request, found = save_pb2.ListSavesRequest(page_size=1), []
    while True:
        page = client.saves.ListSaves(request)
        found += [info.save_id for info in page.saves]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert found == sorted(found)
    assert {old, new} <= set(found)


def test_settings_are_checked_filled_in_and_kept(client, names):
    save = names[0]
    put = save_pb2.SaveSettings(automatic_checkpoints=save_pb2.AutomaticCheckpoints(every_minutes=5))
    answer = client.saves.PutSaveSettings(save_pb2.PutSaveSettingsRequest(save_id=save, settings=put))
    assert answer.effective.automatic_checkpoints.keep == 5
    read = client.saves.GetSaveSettings(save_pb2.GetSaveSettingsRequest(save_id=save))
    assert read.settings == put
    assert list(read.effective.languages) == ["en"]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"name": "x" * 513}, "settings.name"),
        ({"languages": ["english"]}, "settings.languages[0]"),
        ({"languages": ["en"] * 17}, "settings.languages"),
        ({"similarity_floor": 1.5}, "settings.similarity_floor"),
        ({"similarity_floor": float("nan")}, "settings.similarity_floor"),
        ({"automatic_checkpoints": {"keep": 0}}, "settings.automatic_checkpoints.keep"),
        ({"fusion": {"rrf_k": 0}}, "settings.fusion.rrf_k"),
        ({"rerank": {"half_life_ticks": 0}}, "settings.rerank.half_life_ticks"),
    ],
)
def test_settings_out_of_range_are_refused_with_their_field(client, names, settings, field):
    request = save_pb2.PutSaveSettingsRequest(save_id=names[0], settings=save_pb2.SaveSettings(**settings))
    failed = failure(lambda: client.saves.PutSaveSettings(request))
    assert failed.kind == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert failed.fields == (field,)


def test_a_fork_goes_on_on_its_own_timeline(client, names):
    old, new = names

    def remember(save, record_id, timeline, tick):
        record = memory_pb2.NewRecord(
            record_id=record_id,
            scope="personal",
            kind=memory_pb2.RECORD_KIND_EVENT,
            payload_json="{}",
            searchable_text="a wolf",
            moment=common_pb2.Moment(timeline_id=timeline, tick=tick),
        )
        client.memory.AddRecords(memory_pb2.AddRecordsRequest(actor=mira(save), records=[record]))

    def found(save, timeline):
        before = common_pb2.Moment(timeline_id=timeline, tick=10)
        request = search_pb2.SearchRequest(
            actor=mira(save), text="wolf", filter=memory_pb2.RecordFilter(at_or_before=before)
        )
        hits = search_pb2_grpc.SearchServiceStub(client.channel).Search(request).hits
        return {hit.record.record_id: hit.record.moment.timeline_id for hit in hits}

    remember(old, "past", "world", 3)
    remember(old, "dream", "dreams", 3)
    fork(client, old, new, new_timeline_id="world 2", old_timeline_id="world")
    remember(new, "present", "world 2", 9)
    assert found(new, "world 2") == {"past": "world 2", "present": "world 2"}
    assert found(new, "dreams") == {"dream": "dreams"}
    assert found(old, "world") == {"past": "world"}
    fork(client, new, new + " again", new_timeline_id="world 3")
    assert found(new + " again", "world 3") == dict.fromkeys(("past", "present", "dream"), "world 3")


def test_a_record_of_an_old_clock_lies_on_the_timeline_of_the_fork_at_once_and_may_be_sent_again(daemon):
    old, new = "old", "new"
    daemon.client.write(mira(old), "one")
    fork(daemon.client, old, new, new_timeline_id="world 2", old_timeline_id="world")
    record = memory_pb2.NewRecord(
        record_id="r",
        scope="personal",
        kind=memory_pb2.RECORD_KIND_EVENT,
        moment=common_pb2.Moment(timeline_id="world", tick=4),
        expires_at=common_pb2.Moment(timeline_id="world", tick=9),
    )
    request = memory_pb2.AddRecordsRequest(actor=mira(new), records=[record])
    daemon.client.memory.AddRecords(request)
    for _ in range(2):
        read = daemon.client.memory.GetRecord(memory_pb2.GetRecordRequest(actor=mira(new), record_id="r")).record
        assert (read.moment.timeline_id, read.expires_at.timeline_id) == ("world 2", "world 2")
        again = daemon.client.memory.AddRecords(request).records
        assert [one.outcome for one in again] == [memory_pb2.ADD_OUTCOME_UNCHANGED]
        daemon.restart()


def say(client, save, content, timeline, tick):
    said = chat_pb2.NewMessage(role="user", content=content, moment=common_pb2.Moment(timeline_id=timeline, tick=tick))
    request = chat_pb2.AppendMessagesRequest(actor=mira(save), messages=[said], persist=True)
    return chat_pb2_grpc.ChatServiceStub(client.channel).AppendMessages(request)


def heard(client, save):
    chat = chat_pb2_grpc.ChatServiceStub(client.channel)
    messages = chat.ListMessages(chat_pb2.ListMessagesRequest(actor=mira(save))).messages
    entries = chat.ListTranscript(chat_pb2.ListTranscriptRequest(actor=mira(save))).entries
    timelines = [message.moment.timeline_id for message in messages]
    assert timelines == [entry.moment.timeline_id for entry in entries]
    return timelines


def test_what_was_said_lies_on_the_timeline_of_the_fork_too(client, names):
    old, new = names
    say(client, old, "hello", "world", 1)
    say(client, old, "asleep", "dreams", 2)
    fork(client, old, new, new_timeline_id="world 2", old_timeline_id="world")
    say(client, new, "hello again", "world 2", 3)
    say(client, new, "an old clock", "world", 4)
    assert heard(client, new) == ["world 2", "dreams", "world 2", "world 2"]
    assert heard(client, old) == ["world", "dreams"]
    fork(client, new, new + " again", new_timeline_id="world 3")
    assert heard(client, new + " again") == ["world 3"] * 4


def test_a_fork_may_not_go_on_on_a_timeline_that_was_replaced(client, names):
    old, new = names
    client.write(mira(old), "one")
    fork(client, old, new, new_timeline_id="c", old_timeline_id="b")
    again = {"new_timeline_id": "b", "old_timeline_id": "a"}
    failed = failure(lambda: fork(client, new, new + " again", **again))
    assert (failed.reason, failed.fields) == ("FIELD_INVALID", ("new_timeline_id",))


def test_a_timeline_that_is_replaced_by_none_is_refused_and_no_fork_is_made(client, names):
    old, new = names
    client.write(mira(old), "one")
    failed = failure(lambda: fork(client, old, new, old_timeline_id="world"))
    assert (failed.reason, failed.fields) == ("FIELD_REQUIRED", ("new_timeline_id",))
    assert fork(client, old, new).info.save_id == new


def latest(client, save):
    saves = client.saves.ListSaves(save_pb2.ListSavesRequest(page_size=1_000)).saves
    (info,) = [info for info in saves if info.save_id == save]
    moments = [(moment.timeline_id, moment.tick, moment.calendar_json) for moment in info.latest_moments]
    return moments, info.latest_moment.timeline_id


def test_a_save_tells_its_latest_moment_on_each_timeline(client, names):
    old, new = names
    client.write(mira(old), '"at":["never",99]')
    assert latest(client, old) == ([], "")
    say(client, old, 'a trap: "moment":["never",99]', "world", 7)
    assert latest(client, old) == ([("world", 7, "")], "world")
    moment = common_pb2.Moment(timeline_id='dre"ams', tick=-3, calendar_json='{"day":1}')
    record = memory_pb2.NewRecord(
        record_id="r", scope="personal", kind=memory_pb2.RECORD_KIND_EVENT, payload_json="{}", moment=moment
    )
    client.memory.AddRecords(memory_pb2.AddRecordsRequest(actor=mira(old), records=[record]))
    say(client, old, "later", "world", 9)
    say(client, old, "told late", "world", 4)
    assert latest(client, old) == ([('dre"ams', -3, '{"day":1}'), ("world", 9, "")], "world")
    made = fork(client, old, new, new_timeline_id="world 2", old_timeline_id="world")
    assert [moment.timeline_id for moment in made.info.latest_moments] == ['dre"ams', "world 2"]


def test_a_restored_save_knows_no_moment_of_the_abandoned_future(client, names):
    save = names[0]
    say(client, save, "then", "world", 1)
    kept = client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=save)).checkpoint
    say(client, save, "now", "world", 5)
    assert latest(client, save)[0] == [("world", 5, "")]
    request = save_pb2.RestoreCheckpointRequest(save_id=save, checkpoint_id=kept.checkpoint_id)
    client.saves.RestoreCheckpoint(request)
    assert latest(client, save)[0] == [("world", 1, "")]
    say(client, save, "another way", "world", 3)
    assert latest(client, save)[0] == [("world", 3, "")]
