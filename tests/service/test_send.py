"""One turn with the daemon's own tools, over a real socket, against a scripted model server."""

from __future__ import annotations

import json
import re

import pytest
from tiny_models import tokenizer_json
from turn_client import TurnClient
from wire_server import WAIT_SECONDS, Reply, WireServer, calls, delta, end, error, event, stream, usage

from sidecar.gen.lorekeeper.v1 import (
    backend_pb2,
    chat_pb2,
    common_pb2,
    role_pb2,
    save_pb2,
    save_pb2_grpc,
    system_pb2,
)


def test_a_turn_starts_speaks_and_ends(game, server):
    server.play(stream("Good ", "day", ".", tokens=usage(900, 3)))
    turn = game.send("Hello", input_id="line-1")
    assert turn.kinds == ["started", "text", "text", "text", "completed"]
    assert (turn.deltas, turn.completed.text) == (["Good ", "day", "."], "Good day.")
    assert [event.sequence for event in turn.events] == [1, 2, 3, 4, 5]
    assert {event.input_id for event in turn.events} == {"line-1"}
    assert turn.completed.usage.completion_tokens == 3
    assert turn.completed.finish_reason == chat_pb2.FINISH_REASON_STOP
    assert (turn.completed.backend_id, turn.completed.model) == ("scripted", "scripted")


def test_what_was_said_is_remembered(game, server):
    server.play(stream("Good day."))
    order = game.send("Hello").completed.message_order
    assert game.messages() == [("user", "Hello"), ("assistant", "Good day.")]
    listed = game.stub.ListMessages(chat_pb2.ListMessagesRequest(actor=game.actor)).messages
    assert listed[-1].order == order
    game.send("And now?")
    assert [message["content"] for message in server.turns[1].messages][1:] == ["Hello", "Good day.", "And now?"]


def test_each_delta_is_passed_on_before_the_next_one_comes(game, server):
    gates = [server.gate() for _ in range(3)]
    server.play(stream("a", gates[0], "b", gates[1], "c", gates[2]))
    told = game.start("Hello")
    kinds = []
    for response in told:
        kinds.append(response.event.text.text or response.event.WhichOneof("event"))
        if response.event.HasField("text"):
            gates.pop(0).open()
    assert kinds == ["started", "a", "b", "c", "completed"]


def test_the_offline_backend_answers_with_the_roles_lines_in_turn(game):
    game.put_role(offline_lines=["First line.", "Second."])
    told = [game.send("Hi", backend_id="offline").completed.text for _ in range(3)]
    assert told == ["First line.", "Second.", "First line."]


def test_without_any_backend_the_turn_is_offline(game):
    assert game.send("Hi", backend_id="").started.backend_id == "offline"


def test_the_memory_tool_is_run_and_its_result_goes_back(game, server):
    server.play(calls(("memory", {"action": "append", "content": "Ada came."})), stream("I will remember."))
    turn = game.send("Remember that Ada came.")
    call, result = turn.all("tool_call")[0], turn.all("tool_result")[0]
    assert (call.name, call.origin, call.roundtrip, call.mutating) == ("memory", chat_pb2.TOOL_ORIGIN_DAEMON, 1, True)
    assert (result.call_id, result.succeeded) == (call.call_id, True)
    assert (turn.completed.document_version, turn.completed.roundtrips, turn.completed.tool_calls) == (1, 2, 1)
    told = server.turns[1].messages[-2:]
    assert told[0]["tool_calls"][0]["id"] == told[1]["tool_call_id"]
    assert json.loads(told[1]["content"])["Success"] is True
    assert game.messages()[-1][0] == "tool"
    assert game.messages()[-1][1].startswith("## Tool Results\n- memory: ok DONE")


@pytest.mark.parametrize(("sources", "succeeded"), [([{"actor_id": "bard"}], True), ([], False)])
def test_a_model_searches_the_owners_that_its_role_names(game, server, sources, succeeded):
    game.put_role(sources=[common_pb2.Actor(role_id="Creator", **each) for each in sources])
    asked = {"text": "wolf", "ownerId": "bard"}
    server.play(calls(("search_game_memory", asked)), stream("Hm."))
    turn = game.send("What does the bard know?", moment=common_pb2.Moment(timeline_id="main", tick=5))
    (result,) = turn.all("tool_result")
    assert (result.succeeded, result.reason) == (succeeded, "" if succeeded else "OWNER_NOT_ALLOWED")


def test_text_after_a_tool_begins_a_new_message(game, server):
    server.play(calls(("memory", {"action": "read"}), text="Let me think."), stream("It is ", "Ada."))
    turn = game.send("Who came?")
    assert [(each.text, each.starts_message) for each in turn.all("text")] == [
        ("Let me think.", True),
        ("It is ", True),
        ("Ada.", False),
    ]
    assert turn.completed.text == "Let me think.\n\nIt is Ada."


def test_reasoning_is_neither_shown_nor_stored(game, server):
    server.play(
        Reply(
            [delta(reasoning_content="He lies."), delta(content="<think>He "), delta(content="lies.</think>Hi"), end()]
        )
    )
    turn = game.send("Hello")
    assert (turn.deltas, game.messages()[-1]) == (["Hi"], ("assistant", "Hi"))


@pytest.mark.parametrize("tags", [("<thought>", "</thought>"), ("[THINK]", "[/THINK]")])
def test_reasoning_between_the_tags_of_any_family_is_neither_shown_nor_stored(game, server, tags):
    server.play(stream(*"He lies.".join(tags), "Hi"))
    turn = game.send("Hello")
    assert (turn.deltas, game.messages()[-1]) == (["Hi"], ("assistant", "Hi"))


def test_reasoning_that_was_shown_is_taken_back(game, server):
    server.play(stream("He lies.", "</think>", "Hi"))
    turn = game.send("Hello")
    assert turn.kinds == ["started", "text", "text_reset", "text", "completed"]
    assert (turn.completed.text, game.messages()[-1][1]) == ("Hi", "Hi")


def test_what_came_before_words_that_are_taken_back_is_said_again(game, server):
    server.play(calls(("memory", {"action": "read"}), text="Let me think."), stream("He lies.", "</think>", "Hi"))
    turn = game.send("Who came?")
    after = [event for event in turn.events[turn.kinds.index("text_reset") :] if event.WhichOneof("event") == "text"]
    assert [event.text.text for event in after] == ["Let me think.", "Hi"]
    assert turn.completed.text == "Let me think.\n\nHi"


def test_a_model_that_spoke_before_its_last_tool_has_stopped_by_itself(game, server):
    server.play(calls(("memory", {"action": "read"}), text="Let me think."), stream(""))
    done = game.send("Who came?").completed
    assert (done.text, done.finish_reason) == ("Let me think.", chat_pb2.FINISH_REASON_STOP)


@pytest.mark.parametrize("form", ["```json\n{call}\n```", "<tool_call>{call}</tool_call>", "{call}"])
def test_a_call_in_the_text_is_executed(game, server, form):
    call = '{"name": "memory", "arguments": {"action": "append", "content": "x"}}'
    server.play(stream(*form.replace("{call}", call)), stream("Done."))
    turn = game.send("Note x.")
    assert (len(turn.all("tool_call")), turn.completed.text) == (1, "Done.")


NOTE = '{"name": "memory", "arguments": {"action": "append", "content": "Ada came."}}'
NATIVE = {"tool_channel": backend_pb2.TOOL_CHANNEL_NATIVE}


def test_a_call_in_the_text_is_text_where_the_model_calls_tools_natively(game, server):
    game.put_backend(base_url=server.base_url, **NATIVE)
    server.play(stream("So: ", NOTE))
    turn = game.send("What is a call?")
    assert (turn.completed.text, turn.completed.document_version) == (f"So: {NOTE}", 0)


def test_a_model_that_has_called_a_tool_natively_means_text_by_what_it_writes(game, server):
    server.play(calls(("memory", {"action": "read"})), stream(NOTE), stream(NOTE))
    assert [game.send(line).completed.text for line in ("Read!", "And a call?")] == [NOTE, NOTE]
    (backend,) = [
        info
        for info in game.stub.ListBackends(chat_pb2.ListBackendsRequest()).backends
        if info.backend.backend_id == "scripted"
    ]
    assert backend.tool_channel == backend_pb2.TOOL_CHANNEL_NATIVE


@pytest.mark.parametrize("written", [NOTE, '{"tool": "memory", "action": "append", "content": "Ada came."}'])
def test_a_memory_call_in_the_text_is_obeyed_where_the_role_allows_directives(game, server, written):
    game.put_backend(base_url=server.base_url, **NATIVE)
    game.put_role(text_directives=True)
    server.play(stream("Well. ", written), stream("Noted."))
    turn = game.send("Remember Ada.")
    assert (turn.completed.text, turn.completed.document_version) == ("Well.\n\nNoted.", 1)


def test_what_a_model_writes_is_text_once_its_tools_are_taken_away(game, server):
    written = f"I noted it: {NOTE}\n```memory\nAda came.\n```"
    game.put_role(text_directives=True, max_roundtrips=1)
    server.play(calls(("memory", {"action": "read"})), stream(*written))
    turn = game.send("Remember Ada.")
    assert (turn.completed.text, game.messages()[1]) == (written, ("assistant", written))
    assert turn.completed.document_version == 0


def test_a_repaired_answer_may_have_the_form_of_a_call(game, server):
    schema = '{"type": "object", "required": ["name", "arguments"]}'
    server.play(stream("Well."), stream(NOTE))
    turn = game.send("Which call?", response_schema_json=schema)
    assert (turn.completed.response_json, turn.completed.tool_calls) == (NOTE, 0)


@pytest.mark.parametrize("escape", ["\\ud83d", "\\ude00"])
def test_arguments_with_half_a_character_are_refused_and_asked_for_again(game, server, escape):
    server.play(calls(("memory", f'{{"action": "append", "content": "a {escape} b"}}')), stream("Well."))
    turn = game.send("Note it.")
    assert (turn.warnings, turn.completed.text) == (["TOOL_ARGUMENTS_INVALID"], "Well.")
    assert turn.completed.document_version == 0


def test_json_for_an_unknown_tool_is_shown_as_text(game, server):
    text = '```json\n{"name": "fly", "arguments": {}}\n```'
    server.play(stream(*text))
    assert game.send("Fly!").completed.text == text


def test_a_model_without_tools_is_told_of_them_in_its_text(game, server):
    server.play(error(400, {"error": {"message": "scripted does not support tools"}}), stream("Hello."), stream("Bye."))
    assert game.send("Hi").completed.text == "Hello."
    game.send("Bye")
    first, second, third = server.turns
    assert "tools" in first.body
    assert all("tools" not in request.body for request in (second, third))
    assert '"name": "<tool>"' in second.messages[0]["content"]


@pytest.mark.parametrize(
    ("reply", "code", "status"),
    [
        (error(401, {"error": "no"}), "AUTH_EXPIRED", "FAILED_PRECONDITION"),
        (error(402, {"error": "no"}), "PAYMENT_REQUIRED", "FAILED_PRECONDITION"),
        (
            error(429, {"error": {"code": "insufficient_quota", "message": "quota"}}),
            "QUOTA_EXCEEDED",
            "RESOURCE_EXHAUSTED",
        ),
        (error(422, {"error": "no"}), "INVALID_REQUEST", "FAILED_PRECONDITION"),
        (
            Reply([delta(content="Hi"), event({"error": {"message": "x", "code": 500}})]),
            "BACKEND_UNAVAILABLE",
            "UNAVAILABLE",
        ),
        (Reply([end()]), "EMPTY_RESPONSE", "UNAVAILABLE"),
        (Reply([event("not json")]), "PROVIDER_ERROR", "UNAVAILABLE"),
    ],
)
def test_what_is_wrong_at_the_backend_is_told_by_code(game, server, reply, code, status):
    server.play(reply)
    turn = game.send("Hello")
    assert (turn.code, turn.error.code().name, turn.failed.backend_id) == (code, status, "scripted")
    assert game.messages() == [("user", "Hello")]


def test_a_backend_that_was_busy_is_asked_again(game, server):
    game.put_backend(base_url=server.base_url)
    server.play(error(429, {"error": "slow"}, retry_after_ms="10"), stream("Hi"))
    turn = game.send("Hello")
    assert (turn.warnings, turn.completed.text) == (["RETRY"], "Hi")
    assert turn.all("warning")[0].wait_ms == 10


NAMES = ("idempotency-key", "x-request-id", "x-coreai-role")


def test_a_call_is_named_alike_in_every_attempt_and_each_attempt_has_a_name_of_its_own(game, server):
    busy = error(429, {"error": "slow"}, retry_after_ms="10")
    server.play(busy, calls(("memory", {"action": "read"})), stream("I remember."))
    game.send("What do you know?")
    keys, requests, roles = zip(*([each.headers[name] for name in NAMES] for each in server.turns), strict=True)
    assert (keys[0] == keys[1], len(set(keys)), len(set(requests))) == (True, 2, 3)
    assert set(roles) == {game.actor.role_id}


def test_a_prompt_that_was_built_anew_is_another_call(game, server):
    too_long = {"error": {"type": "exceed_context_size_error", "message": "too long", "n_ctx": 2_048}}
    server.play(error(400, too_long), stream("Hi"))
    game.append(*[("user", f"Line {n} " + "word " * 200) for n in range(20)])
    game.send("Hello")
    assert len({each.headers["idempotency-key"] for each in server.turns}) == 2


def test_no_name_of_a_call_tells_what_is_said(game, server):
    lines = ("Ada is here", "Ada is here")
    for line in lines:
        game.send(line, input_id="line-1")
    first, second = ([each.headers[name] for name in NAMES[:2]] for each in server.turns)
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in (*first, *second))
    assert set(first).isdisjoint(second)


@pytest.mark.parametrize(
    ("role", "told"),
    [("Old Smith", "Old Smith"), ("Мира", "%D0%9C%D0%B8%D1%80%D0%B0"), ("Zoë & Co", "Zo%C3%AB%20%26%20Co")],
)
def test_a_server_is_told_whose_words_it_makes(game, server, role, told):
    game.actor.role_id = role
    game.send("Hello")
    assert server.turns[0].headers["x-coreai-role"] == told


def test_a_profile_cannot_take_the_daemons_own_headers_away(game, server):
    game.put_backend(base_url=server.base_url, headers={"Idempotency-Key": "mine", "X-Request-ID": "mine", "X-A": "b"})
    game.send("Hello")
    told = server.turns[0].headers
    assert ("mine" in told.values(), told["x-a"]) == (False, "b")


def test_a_wait_that_is_too_long_is_told_and_not_waited_for(game, server):
    server.play(error(429, {"error": "slow"}, retry_after="3600"))
    turn = game.send("Hello")
    assert (turn.code, turn.failed.retry_after_ms, len(server.turns)) == ("RATE_LIMITED", 3_600_000, 1)


def test_nothing_is_retried_after_the_first_text(game, server):
    server.play(Reply([delta(content="Hi")], hang_up=True), stream("never"))
    assert (game.send("Hello").code, len(server.turns)) == ("BACKEND_UNAVAILABLE", 1)


def test_nothing_is_retried_after_a_tool_ran(game, server):
    server.play(calls(("memory", {"action": "read"})), error(503, {"error": "down"}), stream("never"))
    assert (game.send("Hello").code, len(server.turns)) == ("BACKEND_UNAVAILABLE", 2)


def test_another_backend_takes_over_when_one_is_down(game, server):
    game.put_backend("down", base_url="http://127.0.0.1:1/v1", max_retries=0, fallback_backend_id="scripted")
    turn = game.send("Hello", backend_id="down")
    assert (turn.warnings, turn.completed.backend_id) == (["FALLBACK"], "scripted")


def test_a_prompt_that_is_too_long_is_built_smaller(game, server):
    server.play(*(stream("word " * 60) for _ in range(6)))
    for number in range(6):
        game.send(f"Tell me story {number}. " + "please " * 60)
    told = {
        "code": 400,
        "type": "exceed_context_size_error",
        "message": "exceeds the available context size",
        "n_ctx": 1500,
    }
    server.play(error(400, {"error": told}), stream("Short."))
    turn = game.send("And?")
    assert (turn.warnings, turn.completed.text) == (["PROMPT_REBUILT"], "Short.")
    before, after = (sum(len(each["content"]) for each in request.messages) for request in server.turns[-2:])
    assert after < before
    assert server.turns[-1].messages[-1]["content"] == "And?"
    assert game.messages()[-2:] == [("user", "And?"), ("assistant", "Short.")]


def test_an_overflow_that_stays_is_told_after_the_allowed_tries(game, server):
    game.put_role(max_overflow_retries=2)
    server.standing = error(400, {"error": {"code": "context_length_exceeded", "message": "too long"}})
    turn = game.send("Hello")
    assert (turn.code, turn.warnings, len(server.turns)) == ("CONTEXT_LENGTH_EXCEEDED", ["PROMPT_REBUILT"] * 2, 3)


def test_a_prompt_that_was_cut_in_silence_is_told(game, server):
    server.play(stream("Hm.", tokens=usage(100, 1)))
    turn = game.send("Listen: " + "a long tale of woe " * 200)
    assert turn.warnings == ["CONTEXT_TRUNCATED"]
    details = turn.all("warning")[0].details
    assert int(details["sent"]) > 900
    assert details["read"] == "100"


def test_a_silent_backend_ends_the_turn(game, server):
    game.put_backend(base_url=server.base_url, idle_timeout_ms=50, max_retries=0)
    server.play(Reply([delta(content="Hi")], hold=True))
    turn = game.send("Hello")
    assert (turn.code, turn.error.code().name) == ("TIMEOUT", "DEADLINE_EXCEEDED")


def test_a_turn_may_take_only_so_long(game, server):
    server.play(stream("Hi", server.gate()))
    assert game.send("Hello", timeout_ms=100).code == "TIMEOUT"
    assert server.turns[0].gone.wait(WAIT_SECONDS)


def test_a_line_that_is_sent_again_is_stored_once(game, server):
    server.play(error(400, {"error": "no"}), stream("Hi"))
    assert game.send("Hello").code == "INVALID_REQUEST"
    turn = game.send("Hello")
    assert turn.started.resend
    assert game.messages() == [("user", "Hello"), ("assistant", "Hi")]
    assert [message["content"] for message in server.turns[1].messages].count("Hello") == 1


def test_history_that_a_chat_window_borrows_never_reaches_the_disk(game, server):
    game.put_role(history=False)
    server.play(stream("Hi"))
    game.send("Hello", source_tag="Chat", persist=True)
    listed = game.stub.ListMessages(chat_pb2.ListMessagesRequest(actor=game.actor)).messages
    assert [(message.content, message.persisted) for message in listed] == [("Hello", False), ("Hi", False)]


def test_attachments_are_told_by_name_only(game, server):
    note = chat_pb2.Attachment(name="map.png", media_type="image/png", bytes=9)
    game.send("Look", attachments=[note])
    assert game.messages()[0] == ("user", "Look\n[attachment: map.png image/png 9]")
    assert "map.png" in server.turns[0].messages[-1]["content"]


def test_callers_that_go_away_leave_no_request_to_the_model_open(game, server):
    for number in range(10):
        server.play(stream("Hi", server.gate(), "never"))
        told = game.start(f"Hello {number}")
        assert [next(told).event.WhichOneof("event") for _ in range(2)] == ["started", "text"]
        told.cancel()
        assert server.turns[number].gone.wait(WAIT_SECONDS)
    assert game.messages() == [("user", f"Hello {number}") for number in range(10)]


SCHEMA = '{"type": "object", "properties": {"mood": {"type": "string"}}, "required": ["mood"]}'


def test_a_structured_answer_is_passed_on_and_checked(game, server):
    server.play(stream('{"mood"', ': "calm"}'))
    done = game.send("Mood?", response_schema_json=SCHEMA).completed
    assert json.loads(done.response_json) == {"mood": "calm"}
    assert server.turns[0].body["response_format"]["json_schema"]["schema"] == json.loads(SCHEMA)


def test_a_wrong_structured_answer_is_repaired_once(game, server):
    server.play(stream("I am calm."), stream('{"mood": "calm"}'))
    turn = game.send("Mood?", response_schema_json=SCHEMA)
    assert (turn.warnings, turn.completed.response_json) == (["ANSWER_REPAIRED"], '{"mood": "calm"}')
    assert turn.kinds[-4:] == ["text_reset", "warning", "text", "completed"]
    assert game.messages()[-1] == ("assistant", '{"mood": "calm"}')


def test_nothing_of_a_wrong_structured_answer_is_said_again(game, server):
    server.play(stream("I am calm."), stream("Let me see.", "</think>", '{"mood": "calm"}'))
    turn = game.send("Mood?", response_schema_json=SCHEMA)
    assert turn.deltas == ["I am calm.", "Let me see.", '{"mood": "calm"}']


def test_an_answer_that_stays_wrong_is_told_with_its_text(game, server):
    server.play(stream("I am calm."), stream('{"mood": 1}'))
    turn = game.send("Mood?", response_schema_json=SCHEMA)
    assert (turn.code, turn.failed.raw_text) == ("ANSWER_INVALID", '{"mood": 1}')
    assert list(turn.failed.schema_errors) == ['mood: type "string"']
    assert game.messages() == [("user", "Mood?")]


MARK = "…[response truncated at 5 chars: +4 chars]"


def test_a_long_answer_is_cut_and_told_and_stored_as_it_was_told(game, server):
    game.put_role(max_response_chars=5)
    server.play(stream("abc", "defg", "hi"))
    turn = game.send("Hello")
    assert turn.deltas == ["abc", "de", MARK]
    assert (turn.completed.text, game.messages()[-1]) == (f"abcde{MARK}", ("assistant", f"abcde{MARK}"))
    assert [(cut.what, cut.kept, cut.dropped) for cut in turn.completed.cuts] == [("response", 5, 4)]


def test_what_is_taken_back_takes_none_of_the_room_of_an_answer(game, server):
    game.put_role(max_response_chars=5)
    server.play(stream("He lies all day.", "</think>", "Hello"))
    turn = game.send("Hello")
    assert (turn.completed.text, list(turn.completed.cuts)) == ("Hello", [])


def test_words_beyond_the_bound_are_words_all_the_same(game, server):
    game.put_role(max_response_chars=5, max_roundtrips=1)
    server.play(calls(("memory", {"action": "read"}), text="Hello"), stream(" you."))
    turn = game.send("Hello")
    assert turn.completed.text == "Hello…[response truncated at 5 chars: +4 chars]"


def test_what_is_said_of_tools_alone_keeps_to_the_bound_of_an_answer(game, server):
    game.put_role(max_response_chars=9)
    server.play(calls(("memory", {"action": "read"})), stream(""))
    assert game.send("Hello").completed.text == "Tool call…[response truncated at 9 chars: +19 chars]"


def test_a_json_answer_that_was_too_long_has_its_whole_room_when_it_is_asked_for_again(game, server):
    game.put_role(max_response_chars=20)
    server.play(stream('{"mood": "very calm indeed"}'), stream('{"mood": "calm"}'))
    turn = game.send("Mood?", response_schema_json=SCHEMA)
    assert (turn.completed.text, turn.completed.response_json) == ('{"mood": "calm"}',) * 2
    assert [(cut.what, cut.kept, cut.dropped) for cut in turn.completed.cuts] == [("response", 20, 8)]


@pytest.mark.parametrize("word", ["length", "MAX_TOKENS", "model_length"])
def test_an_answer_at_its_longest_is_warned_of(game, server, word):
    server.play(stream("Once upon", finish=word))
    turn = game.send("Tell me.")
    assert (turn.warnings, turn.completed.finish_reason) == (["ANSWER_CUT"], chat_pb2.FINISH_REASON_LENGTH)


def test_a_directive_in_the_text_is_obeyed_where_the_role_allows_it(game, server):
    game.put_role(text_directives=True)
    server.play(stream("Noted.\n```memory\nAda came.\n```"))
    turn = game.send("Remember Ada.")
    assert (turn.completed.text, turn.completed.document_version) == ("Noted.", 1)
    assert turn.completed.roundtrips == 1


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"text": " "}, "input.text"),
        ({"response_schema_json": "{"}, "input.response_schema_json"),
        ({"response_schema_json": '{"type": 7}'}, "input.response_schema_json"),
        ({"tool_choice": chat_pb2.TOOL_CHOICE_NAMED}, "input.tool_name"),
        ({"tool_choice": chat_pb2.TOOL_CHOICE_ANY, "allowed_tools": role_pb2.AllowedTools()}, "input.tool_choice"),
        ({"temperature": 3.0}, "input.temperature"),
        ({"timeout_ms": 0}, "input.timeout_ms"),
        ({"allowed_tools": role_pb2.AllowedTools(names=["x"] * 257)}, "input.allowed_tools"),
        ({"attachments": [chat_pb2.Attachment(name="a\nb")]}, "input.attachments[0].name"),
        ({"attachments": [chat_pb2.Attachment(media_type="x" * 513)]}, "input.attachments[0].media_type"),
        ({"attachments": [chat_pb2.Attachment(bytes=-1)]}, "input.attachments[0].bytes"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_stored(game, values, field):
    turn = game.send(**{"text": "Hello", **values})
    assert turn.error.code().name == "INVALID_ARGUMENT"
    assert field in turn.error.details()
    assert game.messages() == []


def test_build_prompt_shows_what_the_turn_then_sends(game, server):
    game.put_role(system_prompt="You are Mira.", temperature=0.5)
    game.send("Good day.")
    asked = chat_pb2.TurnInput(text="And now?", backend_id="scripted", instructions="Be brief.", max_output_tokens=50)
    shown = game.stub.BuildPrompt(chat_pb2.BuildPromptRequest(actor=game.actor, input=asked, include_wire_json=True))
    game.send("And now?", instructions="Be brief.", max_output_tokens=50)
    assert json.loads(shown.wire_json) == server.turns[1].body
    assert (shown.backend_id, shown.model, shown.budget.window) == ("scripted", "scripted", 8_192)
    assert [message.content for message in shown.messages] == [each["content"] for each in server.turns[1].messages]


@pytest.mark.embeds
def test_a_backends_own_tokenizer_counts_its_prompts(game, server, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json())
    game.put_backend(base_url=server.base_url, tokenizer_path=str(tmp_path / "tokenizer.json"))
    assert game.send("Hello").started.prompt.counter == common_pb2.TOKEN_COUNTER_EXACT


def test_a_tokenizer_that_cannot_be_used_is_told_and_estimates_take_its_place(game, server, tmp_path):
    game.put_backend(base_url=server.base_url, tokenizer_path=str(tmp_path / "nowhere.json"))
    turn = game.send("Hello")
    assert turn.started.prompt.counter == common_pb2.TOKEN_COUNTER_CALIBRATED
    assert [cut.what for cut in turn.completed.cuts] == ["tokenizer"]


def test_a_summary_that_its_model_did_not_write_is_told(game, server):
    with WireServer() as small:
        small.standing = error(500, {"error": "down"})
        game.put_backend("small", base_url=small.base_url)
        game.put_role(max_history_messages=2, summary={"background": False, "backend_id": "small"})
        turns = [game.send(f"Line {number}") for number in range(3)]
    assert turns[-1].warnings == ["SUMMARY_FALLBACK"]
    assert "Line 0" in server.turns[-1].said


def test_a_fold_behind_a_turn_that_fails_is_told_as_a_diagnostic(start_daemon, actor, server):
    daemon = start_daemon()
    game = TurnClient(daemon.client, actor, server)
    game.put_role(max_history_messages=2, summary={"background": True, "backend_id": "nowhere"})
    for number in range(3):
        assert game.send(f"Line {number}").completed.text
    watched = daemon.client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(after_sequence=0), timeout=30)
    told = next(each.diagnostic for each in watched if each.diagnostic.code == "background_fold_failed")
    watched.cancel()
    assert dict(told.details) == {"reason": "BACKEND_NOT_FOUND"}
    assert len(game.messages()) == 6


def test_an_unknown_backend_is_told_in_the_details(game):
    turn = game.send("Hello", backend_id="nowhere")
    assert (turn.code, turn.error.code().name) == ("INVALID_INPUT", "NOT_FOUND")
    assert game.messages() == [("user", "Hello")]


def test_a_turn_that_began_before_a_restore_stores_nothing_more(start_daemon, actor, server):
    daemon = start_daemon()
    game = TurnClient(daemon.client, actor, server)
    saves = save_pb2_grpc.SaveServiceStub(daemon.client.channel)
    game.send("Before")
    kept = saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=actor.save_id)).checkpoint
    gate = server.gate()
    server.play(stream("Hi", gate, " there"))
    talk = game.converse()
    talk.line("After")
    talk.until("text")
    saves.RestoreCheckpoint(save_pb2.RestoreCheckpointRequest(save_id=actor.save_id, checkpoint_id=kept.checkpoint_id))
    gate.open()
    assert talk.turn().code == "SAVE_CHANGED"
    assert game.messages() == [("user", "Before"), ("assistant", "You said: Before")]


def test_a_save_that_is_erased_during_a_conversation_does_not_come_back_with_it(start_daemon, server, actor):
    client = start_daemon().client
    game, gate = TurnClient(client, actor, server), server.gate()
    server.play(stream("Hi", gate, " there"))
    talk = game.converse()
    talk.line("Hello")
    talk.until("text")
    client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id=actor.save_id))
    gate.open()
    assert talk.turn().code == "SAVE_CHANGED"
    assert (game.messages(), game.transcript()) == ([], [])


def test_a_history_that_is_cleared_during_a_turn_stays_empty(game, server):
    gate = server.gate()
    server.play(stream("Hi", gate, " there"), stream("Good day."))
    talk = game.converse()
    talk.line("Hello")
    talk.until("text")
    game.stub.ClearHistory(chat_pb2.ClearHistoryRequest(actor=game.actor))
    gate.open()
    assert talk.turn().code == "SAVE_CHANGED"
    assert (game.messages(), game.transcript()) == ([], [])
    talk.line("Anew")
    assert talk.turn().completed.message_order
    assert game.messages() == [("user", "Anew"), ("assistant", "Good day.")]
