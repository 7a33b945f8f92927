"""SearchService and the record tools over a real socket."""

import json

import pytest
from client import failure
from records_client import Records, at, m, wanted

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2, search_pb2

NO_MODEL = common_pb2.DEGRADED_REASON_NO_MODEL


@pytest.fixture
def records(shared_daemon, actor):
    return Records(shared_daemon.client, actor)


def test_an_answer_tells_scores_stages_revision_and_that_there_is_no_model(records):
    revision = records.add(m("m1", "the wolf", tick=3)).save.revision
    answer = records.search("wolves")
    (hit,) = answer.hits
    assert answer.save.revision >= revision
    assert (answer.degraded, answer.degraded_reason, list(answer.degraded_reasons)) == (True, NO_MODEL, [NO_MODEL])
    assert answer.mode == search_pb2.SEARCH_MODE_LEXICAL
    assert [stage.kind for stage in answer.stages] == [
        search_pb2.SEARCH_STAGE_KIND_AUTHORITATIVE_SNAPSHOT,
        search_pb2.SEARCH_STAGE_KIND_LEXICAL_SEARCH,
        search_pb2.SEARCH_STAGE_KIND_FUSION,
        search_pb2.SEARCH_STAGE_KIND_RERANK,
    ]
    (channel,) = hit.channels
    assert (hit.rank, channel.rank, channel.channel) == (1, 1, search_pb2.SEARCH_CHANNEL_LEXICAL)
    assert hit.score == hit.rerank.total == hit.rerank.source_order + hit.rerank.importance
    assert hit.access == search_pb2.HIT_ACCESS_OWN
    assert not hit.HasField("explanation")


def test_a_search_for_no_words_keeps_every_record_that_the_filter_allows(records):
    records.add(m("m1", "wolf"), m("m2", "river"))
    words = records.search("", limit=1).stages[1]
    assert (words.kind, words.candidates) == (search_pb2.SEARCH_STAGE_KIND_LEXICAL_SEARCH, 2)


def test_the_snapshot_counts_the_records_of_the_owner_before_any_filter(records):
    records.add(m("m1", "wolf"), m("m2", "river"), m("m3", "wolf", scope="secret"), m("m4", "wolf", tick=500))
    records.add(m("other", "wolf"), actor=records.other("b"))
    snapshot, words = records.search("wolf", filter=wanted(scopes=["personal"])).stages[:2]
    assert (snapshot.scanned, snapshot.candidates, words.scanned, words.candidates) == (4, 4, 4, 1)


def test_a_search_by_words_alone_is_not_degraded(records):
    answer = records.search("wolf", mode=search_pb2.SEARCH_MODE_LEXICAL)
    assert (answer.degraded, answer.degraded_reason) == (False, 0)


@pytest.mark.parametrize("more", [{"require_semantic": True}, {"mode": search_pb2.SEARCH_MODE_VECTOR}])
def test_asking_for_meaning_without_a_model_is_an_error(records, more):
    assert failure(lambda: records.search("wolf", **more)).kind == ("FAILED_PRECONDITION", "NO_MODEL")


def test_an_explanation_gives_the_account(records):
    records.add(m("m1", "the wolf hunts", tick=3))
    (hit,) = records.search("wolf", explain=True).hits
    assert [(term.term, term.frequency, term.records) for term in hit.explanation.terms] == [("wolf", 1, 1)]
    assert hit.explanation.age_ticks == 97
    assert "wolf" in hit.explanation.text


def test_an_owner_that_is_no_source_is_denied(records):
    other = records.other("a")
    records.add(m("m1", "wolf"), actor=other)
    assert failure(lambda: records.search("wolf", owners=[other])).kind == ("PERMISSION_DENIED", "OWNER_NOT_ALLOWED")
    assert records.found("wolf", owners=[other], sources=[other]) == ["m1"]


def test_a_limit_over_the_most_is_lowered_and_told(records):
    records.add(*(m(f"m{n}", "wolf") for n in range(600)))
    answer = records.search("wolf", limit=600)
    assert len(answer.hits) == 512
    assert [(cut.what, cut.kept) for cut in answer.cuts] == [("search_limit", 512)]
    assert len(records.search("wolf").hits) == 10
    assert len(records.search("wolf", limit=0).hits) == 0
    assert failure(lambda: records.search("wolf", limit=-1)).kind == ("INVALID_ARGUMENT", "FIELD_INVALID")


def test_a_query_of_a_megabyte_is_answered_and_its_cut_told(records):
    records.add(m("m1", "the wolf"))
    answer = records.search("wolf " * 199_000)
    assert [hit.record.record_id for hit in answer.hits] == ["m1"]
    assert [cut.what for cut in answer.cuts] == ["query"]
    assert failure(lambda: records.search("x" * 1_000_001)).kind == ("INVALID_ARGUMENT", "FIELD_TOO_LONG")


def test_a_moment_of_another_timeline_finds_nothing(records):
    records.add(m("m1", "wolf"))
    assert records.found("wolf", filter=memory_pb2.RecordFilter(at_or_before=at(100, "dream"))) == []
    failed = failure(lambda: records.search("wolf", filter=wanted(at_or_after=at(1, "dream"))))
    assert failed.kind == ("INVALID_ARGUMENT", "FIELD_INVALID")


def test_another_player_character_is_another_memory(records):
    dead = common_pb2.Actor(save_id="s", actor_id="smith", player_id="old hero")
    born = common_pb2.Actor(save_id="s", actor_id="smith", player_id="new hero")
    records.add(m("m1", "the hero owes me gold"), actor=dead)
    assert records.found("gold", born) == []
    assert records.found("gold", dead) == ["m1"]


def test_the_index_is_counted_and_built_again(start_daemon, actor):
    records = Records(start_daemon().client, actor)
    assert records.status().state == search_pb2.INDEX_STATE_EMPTY
    records.add(*(m(f"m{n}", "wolf") for n in range(50)))
    steps = records.rebuild()
    assert [step.phase for step in steps][-1] == search_pb2.REBUILD_PHASE_DONE
    assert (steps[-1].done, steps[-1].total) == (50, 50)
    status = records.status()
    assert (status.total, status.terms_ready, status.pending, status.requires_rebuild) == (50, 50, 50, True)
    assert status.tokenizer_version
    assert status.degraded_reason == NO_MODEL


def test_health_answers_while_an_index_is_rebuilt(start_daemon, actor):
    daemon = start_daemon()
    records = Records(daemon.client, actor)
    records.add(*(m(f"m{n}", f"wolf {n} " * 30) for n in range(2_000)))
    stream = records.stub.RebuildIndex(search_pb2.RebuildIndexRequest(save_id=actor.save_id, force=True))
    for step in stream:
        assert daemon.client.serving()
        if step.phase == search_pb2.REBUILD_PHASE_TERMS:
            records.add(m(f"late {step.done}", "wolf"))


# G: the tools of a model


def answer_of(response) -> dict:
    return json.loads(response.result_json)


def test_g1_what_is_remembered_is_found_with_its_numbers_and_its_tick(records):
    payload = {"affinity": 0.75}
    remembered = records.call_tool(
        "remember_game_memory", {"scope": "relationship", "kind": "relationship", "payload": payload}, input_id="i"
    )
    assert remembered.succeeded
    answer = answer_of(remembered)
    assert answer == {
        "memoryId": remembered.record_id,
        "ownerId": records.actor.actor_id,
        "timelineId": "world",
        "tick": 5,
    }
    (memory,) = answer_of(records.call_tool("search_game_memory", {"scopes": ["relationship"]}))["memories"]
    assert (memory["payload"], memory["tick"], memory["kind"]) == (payload, 5, "Relationship")
    assert records.get(remembered.record_id).source_input_id == "i"


def test_g3_a_search_sees_the_past_of_its_actor_and_nothing_else(records):
    records.add(m("past", "wolf", tick=5), m("future", "wolf", tick=10))
    records.add(m("others", "wolf", tick=5), actor=records.other("a"))
    answer = answer_of(records.call_tool("search_game_memory", {"text": "wolf"}, tick=7))
    assert [memory["memoryId"] for memory in answer["memories"]] == ["past"]
    assert answer["truncated"] is False


def test_the_search_tool_searches_as_the_save_says(daemon, actor):
    records = Records(daemon.client, actor)
    records.add(m("near", "wolf", importance=0.2), m("grave", "wolf bread bread bread", importance=0.9))
    by_importance = search_pb2.RerankOptions(source_order_weight=0, importance_weight=1_000_000)
    for rerank, order in ((None, ["near", "grave"]), (by_importance, ["grave", "near"])):
        settings = save_pb2.SaveSettings(rerank=rerank)
        daemon.client.saves.PutSaveSettings(save_pb2.PutSaveSettingsRequest(save_id=actor.save_id, settings=settings))
        answer = json.loads(records.call_tool("search_game_memory", {"text": "wolf"}).result_json)
        assert [memory["memoryId"] for memory in answer["memories"]] == order == records.found("wolf")


def test_g4_the_future_is_refused_with_words_that_a_model_understands(records):
    response = records.call_tool("search_game_memory", {"atOrBeforeTick": 6}, tick=5)
    assert (response.succeeded, response.reason) == (False, "FUTURE_MOMENT")
    assert "future" in answer_of(response)["Error"]


def test_a_foreign_owner_is_refused_unless_the_game_names_it_as_a_source(records):
    other = records.other("a")
    records.add(m("m1", "wolf"), actor=other)
    asked = {"text": "wolf", "ownerId": other.actor_id}
    response = records.call_tool("search_game_memory", asked)
    assert (response.succeeded, response.reason) == (False, "OWNER_NOT_ALLOWED")
    allowed = answer_of(records.call_tool("search_game_memory", asked, sources=[other]))
    assert [memory["ownerId"] for memory in allowed["memories"]] == [other.actor_id]


def test_a_payload_may_be_null(records):
    remembered = records.call_tool(
        "remember_game_memory", {"scope": "s", "kind": "fact", "payload": None, "searchableText": "wolf"}
    )
    assert records.get(remembered.record_id).payload_json == "null"
    assert records.found("wolf") == [remembered.record_id]


def test_what_a_model_remembered_stays_forgotten_when_its_call_is_resent_after_a_kill(daemon, actor):
    arguments = {"scope": "personal", "kind": "event", "payload": "wolf"}

    def remember():
        return Records(daemon.client, actor).call_tool("remember_game_memory", arguments, idempotency_key="key 1")

    first = remember()
    Records(daemon.client, actor).forget(first.record_id)
    daemon.kill()
    daemon.start()
    assert remember().record_id == first.record_id
    assert Records(daemon.client, actor).listed() == []


@pytest.mark.parametrize("memory_id", ["", "  ", None])
def test_a_memory_id_without_a_letter_is_as_good_as_none(records, memory_id):
    arguments = {"scope": "s", "kind": "fact", "payload": 1, "memoryId": memory_id}
    first, second = (records.call_tool("remember_game_memory", arguments) for _ in range(2))
    assert records.listed() == sorted([first.record_id, second.record_id])
    assert records.get(first.record_id).payload_json == "1"


def test_a_repeated_call_remembers_once_and_other_content_is_refused(records):
    def remember(text):
        arguments = {"scope": "personal", "kind": "event", "payload": {"text": text}}
        return records.call_tool("remember_game_memory", arguments, input_id="i", turn=1, call_index=0)

    first = remember("wolf")
    assert first.record_id.startswith("oga-memory-v1:")
    assert remember("wolf").record_id == first.record_id
    conflict = remember("bear")
    assert (conflict.succeeded, conflict.reason) == (False, "CONTENT_CONFLICT")
    assert records.listed() == [first.record_id]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"scope": "s", "kind": "fact"},
        {"scope": "s", "kind": "Fact", "payload": 1},
        {"scope": "s", "kind": "turn", "payload": 1},
        {"scope": "s", "kind": "fact", "payload": 1, "importance": 2},
        {"scope": "s", "kind": "fact", "payload": 1, "importance": True},
        {"scope": "s", "kind": "fact", "payload": 1, "tags": ["x"] * 65},
        {"scope": "s", "kind": "fact", "payload": 1, "tags": "x"},
        {"scope": "s", "kind": "fact", "payload": 1, "expiresAtTick": 4},
        {"scope": "s", "kind": "fact", "payload": 1, "expiresAtTick": "soon"},
        {"scope": "s", "kind": "fact", "payload": 1, "owner": "someone"},
        {"scope": "s", "kind": "fact", "payload": 1, "searchableText": "x" * 65_537},
    ],
)
def test_a_models_mistake_is_an_answer_and_changes_nothing(records, arguments):
    response = records.call_tool("remember_game_memory", arguments)
    assert not response.succeeded
    assert response.reason in {"FIELD_REQUIRED", "FIELD_INVALID", "FIELD_TOO_LONG", "TOO_MANY_ITEMS"}
    assert records.listed() == []


def test_a_model_is_told_by_its_own_words_that_an_expiry_is_past(records):
    arguments = {"scope": "s", "kind": "fact", "payload": 1, "expiresAtTick": 4}
    error = answer_of(records.call_tool("remember_game_memory", arguments))["Error"]
    assert error == "expiresAtTick lies before now; it is tick 5 now"


@pytest.mark.parametrize("field", ["turn", "call_index"])
def test_a_place_of_a_call_below_its_first_is_refused(records, field):
    failed = failure(lambda: records.call_tool("search_game_memory", {}, **{field: -1}))
    assert (failed.kind, failed.fields) == (("INVALID_ARGUMENT", "FIELD_INVALID"), (field,))


def test_the_game_must_tell_what_time_it_is(records):
    failed = failure(lambda: records.call_tool("search_game_memory", {}, tick=None))
    assert (failed.kind, failed.fields) == (("INVALID_ARGUMENT", "FIELD_REQUIRED"), ("moment",))


def test_the_tools_are_offered_with_their_schemas(records):
    tools = records.memory.ListTools(memory_pb2.ListToolsRequest(actor=records.actor)).tools
    offered = {tool.name: tool for tool in tools}
    assert {"memory", "remember_game_memory", "search_game_memory"} == set(offered)
    assert offered["remember_game_memory"].mutating
    assert not offered["search_game_memory"].mutating
    assert json.loads(offered["remember_game_memory"].parameters_json)["required"] == ["scope", "kind", "payload"]


def test_an_answer_that_grows_too_long_is_cut_record_by_record(start_daemon, actor):
    records = Records(start_daemon("--set", "records.max_tool_result_chars=1024").client, actor)
    records.add(*(m(f"m{n}", "wolf " * 50) for n in range(4)))
    response = records.call_tool("search_game_memory", {"text": "wolf"})
    answer = answer_of(response)
    assert answer["truncated"]
    assert 0 < len(answer["memories"]) < 4
    assert [(cut.what, cut.dropped) for cut in response.cuts] == [("result", 4 - len(answer["memories"]))]


def test_the_same_question_is_answered_from_before_until_anything_changes(records):
    guard = records.other("guard")
    records.add(m("m1", "wolf"))
    first, again, third = (records.search("wolf") for _ in range(3))
    assert [hit.record.record_id for hit in again.hits] == ["m1"]
    assert (first.save, again.save) == (third.save, third.save)
    assert all(stage.reused for stage in third.stages)
    assert records.found("wolf", guard) == records.found("wolf", guard) == []
    records.add(m("m2", "wolf", audience=["*"]))
    assert records.found("wolf") == ["m1", "m2"]
    assert records.found("wolf", guard) == ["m2"]
    group = memory_pb2.Group(group_id="g", members=[guard], recall_weight=1.0)
    records.memory.PutGroups(memory_pb2.PutGroupsRequest(save_id=records.actor.save_id, groups=[group]))
    records.add(m("m3", "wolf", audience=["g"]))
    assert records.found("wolf", guard) == ["m2", "m3"]
    records.memory.PutGroups(memory_pb2.PutGroupsRequest(save_id=records.actor.save_id, remove_group_ids=["g"]))
    assert records.found("wolf", guard) == ["m2"]
    records.forget("m2")
    assert records.found("wolf", guard) == []


def test_a_record_keeps_the_payload_as_the_model_wrote_it(records):
    arguments = '{"scope":"s", "payload" : {"x":0.750,"n":12345678901234567890.10, "t":"\\u732b}"} ,"kind":"fact"}'
    answer = records.memory.CallTool(
        memory_pb2.CallToolRequest(
            actor=records.actor, name="remember_game_memory", arguments_json=arguments, moment=at(5)
        )
    )
    stored = records.get(answer.record_id)
    assert stored.payload_json == '{"x":0.750,"n":12345678901234567890.10, "t":"\\u732b}"}'


def test_ids_to_forget_are_trimmed_as_those_to_add_are(records):
    records.add(m(" m1 ", "wolf"))
    assert records.forget(" m1 ").forgotten == 1
    fault = failure(lambda: records.forget("m2", "a\x01b"))
    assert (fault.kind, fault.fields) == (("INVALID_ARGUMENT", "FIELD_INVALID"), ("record_ids[1]",))


@pytest.mark.parametrize("field", ["kinds", "authorities"])
@pytest.mark.parametrize(("value", "reason"), [(0, "FIELD_REQUIRED"), (99, "FIELD_INVALID")])
def test_a_filter_names_the_value_that_is_none(records, field, value, reason):
    fault = failure(lambda: records.search("wolf", filter=memory_pb2.RecordFilter(**{field: [1, value]})))
    assert (fault.kind, fault.fields) == (("INVALID_ARGUMENT", reason), (f"filter.{field}[1]",))


def test_what_a_tool_result_holds_is_told_with_what_it_leaves_out(start_daemon, actor):
    records = Records(start_daemon("--set", "records.max_tool_result_chars=1024").client, actor)
    records.add(*(m(f"m{n}", "wolf " * 40) for n in range(4)))
    answer = records.call_tool("search_game_memory", {"text": "wolf"})
    (cut,) = answer.cuts
    assert cut.kept == len(json.loads(answer.result_json)["memories"])
    assert (cut.what, cut.unit, cut.kept + cut.dropped) == ("result", "records", 4)
    assert cut.kept > 0


def test_reciprocal_rank_is_told_to_ten_digits(records):
    records.add(m("first", "wolf wolf"), m("second", "the wolf of the north tower"))
    answer = records.search(
        "wolf",
        fusion=search_pb2.FusionOptions(mode=search_pb2.FUSION_MODE_RRF),
        rerank=search_pb2.RerankOptions(enabled=False),
    )
    assert [round(hit.score, 10) for hit in answer.hits] == [0.0163934426, 0.0161290323]


def test_an_age_of_more_ticks_than_a_number_holds_is_told_as_the_most_that_it_holds(records):
    records.add(m("first", "wolf", tick=-(2**63)))
    (hit,) = records.search("wolf", filter=wanted(now=2**63 - 1), explain=True).hits
    assert hit.explanation.age_ticks == 2**63 - 1


def said(record_id: str, text: str, ordinal: int, **more):
    """A turn of a conversation."""
    return m(record_id, text, conversation_id="by the fire", ordinal=ordinal, **more)


def test_several_records_at_one_place_of_a_conversation_are_lent_the_same_and_stop_nobody(records):
    records.add(said("asked", "wolf", 1), *(said(f"m{n}", "bread", 2) for n in range(3)), said("end", "river", 3))
    answer = records.search("wolf")
    assert [hit.record.record_id for hit in answer.hits] == ["asked", "m0", "m1", "m2", "end"]
    assert len({hit.fused_score for hit in answer.hits[1:4]}) == 1


def test_turns_that_are_known_for_different_reasons_stand_beside_each_other(records):
    teller = records.other("teller")
    shares = [memory_pb2.Share(recipient=records.actor, kind=memory_pb2.SHARE_KIND_WITNESS)]
    records.add(said("seen", "wolf", 1, shares=shares), said("told", "bread", 2, audience=["*"]), actor=teller)
    assert records.found("wolf") == ["seen", "told"]
