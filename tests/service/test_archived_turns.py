"""What left the prompt long ago is found again: archived turns in searches and in prompts, over the socket."""

from __future__ import annotations

import pytest
from chat_client import Chat, parts
from records_client import Records, at, m, wanted
from turn_client import TurnClient
from wire_server import stream

from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, memory_pb2, role_pb2, save_pb2

TURN, FACT = memory_pb2.RECORD_KIND_TURN, memory_pb2.RECORD_KIND_FACT
RECALLED = chat_pb2.PROMPT_SECTION_KIND_RECALLED
PROMISE = "I promise to bring you the silver wolf's pelt before midwinter."
RECALL = role_pb2.RecallOptions(enabled=True, limit=3)


class Talk:
    """One actor's conversation, with the searches over it."""

    def __init__(self, daemon, actor):
        self.daemon, self.actor = daemon, actor
        self.connect()

    def connect(self):
        self.chat, self.records = Chat(self.daemon.client), Records(self.daemon.client, self.actor)

    def killed(self):
        self.daemon.kill()
        self.daemon.start()
        self.connect()

    def say(self, *lines, tick=None, **more):
        moment = None if tick is None else at(tick)
        messages = [chat_pb2.NewMessage(role="user", content=line, moment=moment, **more) for line in lines]
        self.chat.stub.AppendMessages(chat_pb2.AppendMessagesRequest(actor=self.actor, messages=messages))

    def small_talk(self, count=40, *, tick=None):
        self.say(*(f"It rains again, day {n}." for n in range(count)), tick=tick)

    def first_hour(self, *, tick=None):
        """A promise, and then so much talk that it is folded."""
        self.say(PROMISE, tick=tick)
        self.small_talk(tick=None if tick is None else tick + 10)
        assert self.chat.compact(self.actor, history_tokens=200).compacted

    def turns(self, text="silver pelt", **more):
        given = {"filter": wanted(), **more}
        hits = self.records.search(text, **given).hits
        return [hit.record for hit in hits if hit.record.kind == TURN]

    def texts(self, text="silver pelt", **more):
        return [turn.searchable_text for turn in self.turns(text, **more)]

    def listed(self):
        request = memory_pb2.RecordFilter(kinds=[TURN])
        return [record.searchable_text for record in self.records.list(filter=request, page_size=1_000).records]

    def recalled(self, line="What became of the silver pelt?", **more):
        prompt = self.chat.prompt(self.actor, line, moment=at(50), **more)
        return "\n".join(parts(prompt, RECALLED))


def npc(actor, role):
    return common_pb2.Actor(save_id=actor.save_id, actor_id=actor.actor_id, role_id=role)


@pytest.fixture
def talk(daemon, actor):
    """An actor of a role that keeps its history and recalls."""
    Chat(daemon.client).put_role("Smith", persist_history=True, recall=RECALL)
    return Talk(daemon, npc(actor, "Smith"))


def test_a_promise_of_the_first_hour_is_found_again(talk):
    talk.first_hour(tick=3)
    assert PROMISE in talk.chat.texts(talk.actor)[0]
    (turn, *_) = talk.turns()
    assert turn.searchable_text == PROMISE
    assert (turn.moment.timeline_id, turn.moment.tick, turn.speaker, turn.ordinal) == ("world", 3, "user", 1)
    assert turn.authority == memory_pb2.RECORD_AUTHORITY_ARCHIVE


def test_a_promise_of_the_first_hour_comes_back_into_the_prompt(talk):
    talk.first_hour(tick=3)
    talk.chat.clear_summary(talk.actor)
    assert f"[tick 3] user: {PROMISE}" in talk.recalled()


def test_an_archived_promise_outlives_a_kill(talk):
    talk.first_hour(tick=3)
    talk.killed()
    assert talk.texts()[0] == PROMISE
    assert PROMISE in talk.recalled()
    talk.small_talk(10)
    talk.chat.compact(talk.actor, history_tokens=200)
    assert talk.listed().count(PROMISE) == 1


def test_what_the_cap_of_a_history_pushes_out_is_found(start_daemon, actor):
    daemon = start_daemon("--set", "chat.max_messages=40")
    summary = role_pb2.SummaryOptions(enabled=False)
    Chat(daemon.client).put_role("Smith", persist_history=True, summary=summary, recall=RECALL)
    talk = Talk(daemon, npc(actor, "Smith"))
    talk.say(PROMISE, tick=3)
    talk.small_talk(30)
    talk.small_talk(30)
    assert PROMISE not in talk.chat.texts(talk.actor)
    assert talk.texts()[0] == PROMISE


def test_what_the_window_of_a_role_without_a_summary_leaves_out_is_found(talk):
    talk.chat.put_role("Smith", persist_history=True, summary={"enabled": False})
    talk.say(PROMISE)
    talk.small_talk()
    assert talk.chat.prompt(talk.actor, "Hello").window.left_out > 0
    assert not talk.chat.compact(talk.actor).compacted
    assert PROMISE in talk.texts()
    assert len(talk.listed()) == talk.chat.preview(talk.actor).window.left_out


def test_what_the_window_of_a_turn_without_a_summary_leaves_out_is_archived_behind_it(daemon, actor, server):
    game = TurnClient(daemon.client, actor, server)
    game.put_role(summary={"enabled": False})
    server.standing = stream("Hm.")
    talk = Talk(daemon, game.actor)
    talk.say(PROMISE)
    talk.small_talk()
    assert not game.send("Hello.").completed.compaction_pending
    daemon.restart()  # the end of a daemon waits for what goes on behind turns
    talk.connect()
    assert PROMISE in talk.texts()


def test_every_archived_message_is_found_once_and_whole(talk):
    talk.first_hour(tick=3)
    talk.small_talk(30)
    talk.chat.compact(talk.actor, history_tokens=100)
    listed = talk.listed()
    assert len(listed) > 30
    assert sorted(listed) == sorted(talk.chat.texts(talk.actor)[: len(listed)])


def test_a_role_whose_archive_is_off_neither_writes_nor_searches(talk):
    talk.chat.put_role("Smith", persist_history=True, recall=RECALL, archive=False)
    talk.first_hour(tick=3)
    assert talk.listed() == []
    talk.chat.put_role("Smith", persist_history=True, recall=RECALL)
    talk.say(PROMISE, tick=4)
    talk.small_talk()
    talk.chat.compact(talk.actor, history_tokens=200)
    assert talk.texts()[0] == PROMISE
    talk.chat.put_role("Smith", persist_history=True, recall=RECALL, archive=False)
    assert talk.texts() == []
    assert talk.recalled() == ""
    answer = talk.records.call_tool("search_game_memory", {"text": "silver pelt"}, tick=50)
    assert PROMISE not in answer.result_json


def test_a_query_may_overrule_its_role(talk):
    talk.first_hour(tick=3)
    assert talk.texts(include_archive=False) == []
    talk.chat.put_role("Smith", persist_history=True, recall=RECALL, archive=False)
    assert talk.texts(include_archive=True)[0] == PROMISE


def test_the_search_tool_finds_archived_turns(talk):
    talk.first_hour(tick=3)
    answer = talk.records.call_tool("search_game_memory", {"text": "silver pelt"}, tick=50)
    assert PROMISE in answer.result_json


def test_messages_of_a_role_that_persists_nothing_never_become_records(daemon, actor):
    talk = Talk(daemon, npc(actor, "Merchant"))
    talk.first_hour(tick=3)
    assert talk.listed() == []


def test_a_message_without_a_moment_was_said_at_that_of_the_one_before(talk):
    talk.say("Good morning.", tick=7)
    talk.first_hour()
    (turn, *_) = talk.turns()
    assert (turn.moment.timeline_id, turn.moment.tick) == ("world", 7)
    assert talk.texts(filter=wanted(now=6)) == []


def test_talk_that_nobody_dated_is_found_at_any_moment_and_on_any_timeline(talk):
    talk.first_hour()
    (turn, *_) = talk.turns()
    assert not turn.HasField("moment")
    elsewhere = memory_pb2.RecordFilter(at_or_before=at(-(2**62), "dream"))
    assert talk.texts(filter=elsewhere)[0] == PROMISE
    assert talk.texts(filter=memory_pb2.RecordFilter(at_or_after=at(-(2**63)))) == []
    assert f"- user: {PROMISE}" in talk.recalled()
    assert talk.records.search("silver pelt", explain=True).hits[0].record.searchable_text == PROMISE


def test_a_future_turn_is_not_found_in_the_past(talk):
    talk.first_hour(tick=30)
    assert talk.texts(filter=wanted(now=29)) == []
    assert talk.texts(filter=wanted(now=30))[0] == PROMISE


def test_nobody_else_finds_what_was_said_to_an_actor(talk):
    talk.first_hour(tick=3)
    assert talk.records.found("silver pelt", talk.records.other("gossip")) == []


def test_clearing_the_archive_forgets_the_turns_and_no_record(talk):
    talk.records.add(m("m1", "the silver pelt hangs in the hall"))
    talk.first_hour(tick=3)
    assert talk.chat.clear(talk.actor).archived == 0
    assert talk.texts()[0] == PROMISE
    assert talk.chat.clear(talk.actor, clear_archive=True).archived > 10
    assert talk.records.found("silver pelt") == ["m1"]
    assert not any(PROMISE.encode() in path.read_bytes() for path in talk.daemon.folder.rglob("*.jsonl"))


def test_forgetting_a_turn_forgets_it_everywhere_but_in_its_history(talk):
    talk.first_hour(tick=3)
    talk.records.forget(talk.turns()[0].record_id)
    assert PROMISE not in talk.texts()


@pytest.mark.parametrize("restarts", [False, True])
def test_a_turn_that_was_forgotten_is_not_archived_again_when_its_message_is_folded_or_leaves(
    start_daemon, actor, restarts
):
    daemon = start_daemon("--set", "chat.max_messages=60")
    Chat(daemon.client).put_role("Smith", persist_history=True)
    talk = Talk(daemon, npc(actor, "Smith"))
    talk.first_hour(tick=3)
    talk.records.forget(talk.turns()[0].record_id)
    if restarts:
        talk.killed()
    talk.chat.clear_summary(talk.actor)
    assert talk.chat.compact(talk.actor, history_tokens=200).compacted
    talk.small_talk(tick=20)
    assert PROMISE not in talk.chat.texts(talk.actor)
    assert PROMISE not in talk.listed()


def test_turns_count_for_no_capacity_and_no_retention(start_daemon, actor):
    daemon = start_daemon("--set", "records.max_records_per_save=2", "--set", "records.max_records_per_owner=2")
    Chat(daemon.client).put_role("Smith", persist_history=True, recall=RECALL)
    talk = Talk(daemon, npc(actor, "Smith"))
    talk.first_hour(tick=3)
    talk.records.add(m("m1", "one"), m("m2", "two"))
    policy = memory_pb2.RetentionPolicy(max_records=1)
    memory = daemon.client.memory
    memory.PutRetention(memory_pb2.PutRetentionRequest(save_id=talk.actor.save_id, policy=policy))
    assert talk.records.listed(filter=memory_pb2.RecordFilter(kinds=[FACT])) == ["m2"]
    assert talk.texts()[0] == PROMISE
    talk.small_talk(30)
    talk.chat.compact(talk.actor, history_tokens=100)
    assert talk.records.listed(filter=memory_pb2.RecordFilter(kinds=[FACT])) == ["m2"]


def counts(talk):
    listed = talk.daemon.client.memory.ListActors(memory_pb2.ListActorsRequest(save_id=talk.actor.save_id)).actors
    (info,) = [info for info in listed if info.actor == talk.actor]
    (save,) = talk.daemon.client.saves.ListSaves(save_pb2.ListSavesRequest()).saves
    return info.records, info.archived, save.records


def test_turns_are_counted_apart_from_records_also_after_a_restart(talk):
    talk.records.add(m("m1", "the hall"))
    talk.first_hour(tick=3)
    archived = len(talk.listed())
    assert counts(talk) == (1, archived, 1)
    talk.records.forget(talk.turns()[0].record_id)
    talk.killed()
    (save,) = talk.daemon.client.saves.ListSaves(save_pb2.ListSavesRequest()).saves
    assert save.records == 1
    assert counts(talk) == (1, archived - 1, 1)


def test_the_oldest_turns_go_for_new_ones_beyond_the_bound_of_the_archive(start_daemon, actor):
    daemon = start_daemon("--set", "chat.max_archived_messages=10")
    Chat(daemon.client).put_role("Smith", persist_history=True, recall=RECALL)
    talk = Talk(daemon, npc(actor, "Smith"))
    talk.first_hour(tick=3)
    listed = talk.listed()
    assert len(listed) == 10
    assert PROMISE not in listed


def test_an_erased_actor_leaves_no_turn(talk):
    talk.first_hour(tick=3)
    erased = talk.daemon.client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=talk.actor)).erased
    assert (erased.records, erased.messages > 41) == (0, True)
    assert talk.texts() == []


def test_a_restore_takes_turns_back_with_the_history_that_they_left(talk):
    talk.say(PROMISE, tick=3)
    saves = talk.daemon.client.saves
    made = saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=talk.actor.save_id))
    talk.small_talk(tick=9)
    talk.chat.compact(talk.actor, history_tokens=200)
    assert talk.texts()[0] == PROMISE
    restore = save_pb2.RestoreCheckpointRequest(save_id=talk.actor.save_id, checkpoint_id=made.checkpoint.checkpoint_id)
    saves.RestoreCheckpoint(restore)
    assert talk.listed() == []
    assert talk.chat.texts(talk.actor) == [PROMISE]


def test_a_fork_has_the_turns_on_its_own_timeline(talk):
    talk.first_hour(tick=3)
    fork = save_pb2.ForkSaveRequest(save_id=talk.actor.save_id, new_save_id="fork", new_timeline_id="dream")
    talk.daemon.client.saves.ForkSave(fork)
    twin = Talk(talk.daemon, common_pb2.Actor(save_id="fork", actor_id=talk.actor.actor_id, role_id="Smith"))
    (turn, *_) = twin.turns(filter=memory_pb2.RecordFilter(at_or_before=at(50, "dream")))
    assert (turn.searchable_text, turn.moment.timeline_id, turn.moment.tick) == (PROMISE, "dream", 3)


def test_turns_are_indexed_like_any_record(talk):
    talk.first_hour(tick=3)
    (*_, done) = talk.records.rebuild()
    status = talk.records.status()
    assert (done.failed, status.terms_ready) == (0, status.total)
    assert status.total == len(talk.listed()) > 10
