"""BuildPrompt tells the very request that a turn then makes, and refuses what a turn refuses."""

from __future__ import annotations

import json
import random

import pytest
from chat_client import Chat
from client import append, failure
from wire_server import Reply, calls, delta, end, error, stream, usage, whole

from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2, common_pb2, role_pb2

AUTO, NATIVE, TEXT = (
    backend_pb2.TOOL_CHANNEL_AUTO,
    backend_pb2.TOOL_CHANNEL_NATIVE,
    backend_pb2.TOOL_CHANNEL_TEXT,
)
NONE, ANY, NAMED = chat_pb2.TOOL_CHOICE_NONE, chat_pb2.TOOL_CHOICE_ANY, chat_pb2.TOOL_CHOICE_NAMED
MEMORY_ONLY = role_pb2.AllowedTools(names=["memory"])
MOMENT = common_pb2.Moment(timeline_id="world", tick=7)
SCHEMA = '{"type": "object", "properties": {"mood": {"type": "string"}}, "required": ["mood"]}'
RING = chat_pb2.GameTool(
    name="ring_bell",
    description="Rings the harbour bell.",
    parameters_json='{"type": "object", "properties": {"times": {"type": "integer"}}, "additionalProperties": false}',
)


def test_the_prefix_of_a_model_without_tool_calls_does_not_depend_on_the_moment(game, server):
    game.put_backend(base_url=server.base_url, tool_channel=TEXT)
    dated, undated = shown(game, moment=MOMENT), shown(game)
    assert dated.messages[0] == undated.messages[0]
    assert "search_game_memory" in undated.messages[0].content
    availability = chat_pb2.PROMPT_SECTION_KIND_TOOL_AVAILABILITY
    told = [[m.content for m in prompt.messages if m.section == availability] for prompt in (dated, undated)]
    assert (told[0], ["You may call: memory." in each for each in told[1]]) == ([], [True])


def shown(game, text="Well?", tools=(), **fields):
    asked = chat_pb2.TurnInput(text=text, **{"backend_id": "scripted", **fields})
    request = chat_pb2.BuildPromptRequest(actor=game.actor, input=asked, tools=tools, include_wire_json=True)
    return game.stub.BuildPrompt(request)


def body(prompt):
    return json.loads(prompt.wire_json)


@pytest.mark.parametrize("tail_role", [backend_pb2.TAIL_ROLE_USER, backend_pb2.TAIL_ROLE_SYSTEM])
@pytest.mark.parametrize("channel", [NATIVE, TEXT])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"moment": MOMENT},
        {"allowed_tools": MEMORY_ONLY, "world_state": "Fog."},
        {"allowed_tools": role_pb2.AllowedTools()},
        {"tool_choice": NONE},
        {"tool_choice": ANY, "world_state": "Fog."},
        {"tool_choice": NAMED, "tool_name": "memory", "instructions": "Be brief."},
        {"response_schema_json": SCHEMA},
        {"temperature": 0.0, "max_output_tokens": 77, "model": "other", "context_tokens": 3_000},
        {"system_prompt": "You are a gull."},
    ],
)
def test_what_is_shown_is_what_a_turn_sends(game, server, channel, tail_role, fields):
    game.put_backend(base_url=server.base_url, tool_channel=channel, tail_role=tail_role, temperature=0.7)
    game.append(("user", "Good day."), ("assistant", "And to you."))
    server.standing = stream('{"mood": "calm"}')
    prompt = shown(game, **fields)
    turn = game.send("Well?", **fields)
    assert body(prompt) == server.turns[0].body
    assert [(m.role, m.content) for m in prompt.messages] == [
        (m["role"], m["content"]) for m in server.turns[0].messages
    ]
    assert [tool.name for tool in prompt.tools] == [
        tool["function"]["name"] for tool in server.turns[0].body.get("tools", [])
    ]
    assert prompt.total == turn.started.prompt == turn.completed.usage.estimated_prompt


@pytest.mark.parametrize("channel", [NATIVE, TEXT])
@pytest.mark.parametrize("fields", [{}, {"tool_choice": NAMED, "tool_name": "ring_bell"}])
def test_what_is_shown_with_a_games_tools_is_what_a_conversation_sends(game, server, channel, fields):
    game.put_backend(base_url=server.base_url, tool_channel=channel)
    prompt = shown(game, tools=[RING], **fields)
    talk = game.converse(RING)
    talk.line("Well?", **fields)
    talk.turn()
    assert body(prompt) == server.turns[0].body


def test_a_model_that_was_found_to_take_no_tools_is_shown_as_it_is_then_asked(game, server):
    server.play(error(400, {"error": {"message": "this model does not support tools"}}), stream("Aye."))
    native = body(shown(game))
    game.send("Well?")
    game.send("And now?")
    prompt = shown(game, "And then?")
    game.send("And then?")
    assert "tools" in native
    assert body(prompt) == server.turns[3].body


def test_the_tokens_of_a_text_contract_are_counted_in_the_prompt_and_in_its_budget(game, server):
    native = shown(game)
    game.put_backend(base_url=server.base_url, tool_channel=TEXT)
    text = shown(game)
    assert text.total.tokens == sum(message.tokens for message in text.messages)
    assert text.budget.fixed == text.total.tokens
    assert text.messages[0].tokens > native.messages[0].tokens + 50
    assert chat_pb2.PROMPT_SECTION_KIND_TOOLS not in [section.kind for section in text.sections]


def test_a_preview_has_the_window_that_a_turn_in_the_text_channel_would_have(game, server, shared_daemon):
    game.put_backend(base_url=server.base_url, tool_channel=TEXT, context_tokens=2_048)
    game.put_role()
    preview = Chat(shared_daemon.client).preview(game.actor)
    assert preview.history_budget == shown(game, "").budget.history


def test_the_prefix_of_the_text_channel_stays_whatever_one_turn_allows(game, server):
    game.put_backend(base_url=server.base_url, tool_channel=TEXT)
    kinds = [{}, {"tool_choice": NONE}, {"tool_choice": ANY}, {"allowed_tools": role_pb2.AllowedTools(names=["x"])}]
    prompts = [shown(game, **fields) for fields in kinds]
    assert len({prompt.messages[0].content for prompt in prompts}) == 1
    assert "No tool may be called" in prompts[1].messages[1].content


def test_a_games_tool_stands_in_the_text_contract_with_its_keys_sorted(game, server):
    game.put_backend(base_url=server.base_url, tool_channel=TEXT)
    turned = chat_pb2.GameTool(
        name="ring_bell",
        description="Rings the harbour bell.",
        parameters_json='{"additionalProperties":false,"properties":{"times":{"type":"integer"}},"type":"object"}',
    )
    one, two = (shown(game, tools=[tool]).messages[0].content for tool in (RING, turned))
    assert one == two
    assert '"additionalProperties": false, "properties"' in one


@pytest.mark.parametrize("channel", [NATIVE, TEXT])
def test_each_request_of_a_turn_is_estimated_as_it_was_sent(game, server, channel):
    """A server that counts as the estimate does is never taken to have cut the prompt."""
    game.put_backend(base_url=server.base_url, tool_channel=channel)
    game.put_role(max_roundtrips=1)
    big = chat_pb2.GameTool(name="chart", description="c" * 400, parameters_json=json.dumps({"title": "t" * 20_000}))
    call = calls(("chart", {})) if channel == NATIVE else stream('{"name": "chart", "arguments": {}}')

    def counted(request):
        tools = len(json.dumps(request.body.get("tools", ""))) if request.body.get("tools") else 0
        return usage((len(request.said) + tools) // 4)

    server.play(
        lambda request: Reply([*call.steps[:-1], end("stop", usage=counted(request))]),
        lambda request: Reply([delta(content="Done."), end(usage=counted(request))]),
    )
    talk = game.converse(big)
    talk.line("Show me!", tool_choice=ANY)
    turn = talk.turn(lambda call: "ok")
    assert len(server.turns) == 2
    assert "CONTEXT_TRUNCATED" not in turn.warnings


@pytest.mark.parametrize(
    "fields", [{"tool_name": "fly"}, {"tool_name": " memory"}, {"tool_name": "search_game_memory"}]
)
def test_a_tool_that_must_be_called_and_is_not_offered_is_refused_before_anything_is_stored(game, server, fields):
    fields = {"tool_choice": NAMED, **fields}
    assert failure(lambda: shown(game, **fields)).fields == ("input.tool_name",)
    turn = game.send("Well?", **fields)
    refused = failure(lambda: list(game.start("Well?", **fields)))
    assert (*refused.kind, refused.fields) == ("INVALID_ARGUMENT", "FIELD_INVALID", ("input.tool_name",))
    assert (turn.events, server.turns, game.messages(), game.transcript()) == ([], [], [], [])


@pytest.mark.parametrize(
    ("fields", "tools"),
    [
        ({"tool_name": "memory", "allowed_tools": role_pb2.AllowedTools(names=["ring_bell"])}, [RING]),
        ({"tool_name": "ring_bell", "allowed_tools": MEMORY_ONLY}, [RING]),
        ({"tool_name": "ring_bell"}, []),
        ({"tool_name": "memory", "allowed_tools": role_pb2.AllowedTools()}, []),
    ],
)
def test_a_conversation_goes_on_after_a_line_whose_tool_is_not_offered(game, server, fields, tools):
    talk = game.converse(*tools)
    talk.line("Well?", tool_choice=NAMED, **fields)
    (failed,) = talk.turn().all("turn_failed")
    assert failed.code == chat_pb2.TURN_FAILURE_CODE_INVALID_INPUT
    assert "input.tool_name" in failed.message
    assert (game.messages(), failure(lambda: shown(game, tools=tools, tool_choice=NAMED, **fields)).reason) == (
        [],
        "FIELD_INVALID",
    )
    talk.line("And now?")
    assert talk.turn().completed.text


def test_a_role_without_the_tool_cannot_be_made_to_call_it(game, server):
    game.put_role(memory_tool=False)
    assert failure(lambda: shown(game, tool_choice=NAMED, tool_name="memory")).fields == ("input.tool_name",)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ("not json", "SCHEMA_INVALID"),
        ("[]", "SCHEMA_INVALID"),
        ('"text"', "SCHEMA_INVALID"),
        ('{"type": "nonsense"}', "SCHEMA_INVALID"),
        ('{"properties": []}', "SCHEMA_INVALID"),
        ('{"required": "name"}', "SCHEMA_INVALID"),
        ('{"maximum": NaN}', "SCHEMA_INVALID"),
        ('{"title": "\\ud83d"}', "SCHEMA_INVALID"),
        ('{"title": "a", "title": "b"}', "SCHEMA_INVALID"),
        ('{"title": "' + "x" * 65_530 + '"}', "FIELD_TOO_LONG"),
    ],
)
def test_a_tools_schema_is_refused_alike_by_a_prompt_and_by_a_conversation(game, parameters, reason):
    tool = chat_pb2.GameTool(name="ring_bell", parameters_json=parameters)
    by_prompt = failure(lambda: shown(game, tools=[RING.__class__(name="ok"), tool]))
    by_turn = failure(lambda: game.converse(chat_pb2.GameTool(name="ok"), tool))
    assert by_prompt.kind == by_turn.kind == ("INVALID_ARGUMENT", reason)
    assert (by_prompt.fields, by_turn.fields) == (("tools[1].parameters_json",), ("open.tools[1].parameters_json",))


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"response_schema_json": "{"}, "input.response_schema_json"),
        ({"response_schema_json": '{"type": 7}'}, "input.response_schema_json"),
        ({"response_schema_json": '{"title": "\\ud83d"}'}, "input.response_schema_json"),
        ({"temperature": 2.5}, "input.temperature"),
        ({"timeout_ms": 0}, "input.timeout_ms"),
        ({"max_roundtrips": -1}, "input.max_roundtrips"),
        ({"tool_choice": NAMED}, "input.tool_name"),
        ({"tool_choice": 99}, "input.tool_choice"),
        ({"api_key": "ключ"}, "input.api_key"),
    ],
)
def test_a_field_that_a_turn_refuses_is_refused_by_a_prompt(game, fields, path):
    by_prompt, by_turn = failure(lambda: shown(game, **fields)), failure(lambda: list(game.start("Hi", **fields)))
    assert (by_prompt.kind, by_prompt.fields) == (by_turn.kind, by_turn.fields)
    assert by_prompt.fields == (path,)


def test_no_key_stands_in_the_body_that_is_shown(game, server):
    prompt = shown(game, api_key="very-secret")
    assert "very-secret" not in str(prompt)


@pytest.mark.parametrize("seed", range(4))
def test_over_a_long_talk_each_prompt_that_is_shown_is_the_one_that_is_sent(game, server, shared_daemon, seed):
    """With folding before the turn, edits of the document, failures and repeated lines."""
    choice = random.Random(seed)
    game.put_backend(
        base_url=server.base_url, tool_channel=(NATIVE, TEXT)[seed % 2], context_tokens=(900, 2_000)[seed // 2]
    )
    game.put_role(max_history_messages=choice.choice([3, 8]), summary={"background": False, "use_model": False})
    for number in range(16):
        if choice.random() < 0.4:
            shared_daemon.client.edit(game.actor, append(f"Fact {number}."))
        fields = {"world_state": f"Hour {number}."} if choice.random() < 0.5 else {"moment": MOMENT}
        line = choice.choice(["Well?", "x" * 300, "йцу " * 50])
        server.play(error(401, {}) if choice.random() < 0.3 else stream("word " * choice.choice([2, 60])))
        prompt = shown(game, line, **fields)
        turn = game.send(line, **fields)
        assert body(prompt) == server.turns[-1].body
        assert prompt.total == turn.started.prompt
        assert sorted(cut.what for cut in prompt.cuts) == sorted(cut.what for cut in turn.all("cut"))
        over = prompt.total.tokens + prompt.budget.completion_reserve - prompt.budget.window
        assert max(0, over) == sum(cut.dropped for cut in prompt.cuts if cut.what == "window")


def test_a_turn_that_folds_first_does_not_count_the_line_that_it_answers(game, server, shared_daemon):
    game.put_role(max_history_messages=4, summary={"background": False, "use_model": False})
    game.append(*((("user", "assistant")[n % 2], f"line {n}") for n in range(4)))
    game.send("Well?")
    assert [message["content"] for message in server.turns[0].messages[1:]] == [
        *(f"line {n}" for n in range(4)),
        "Well?",
    ]


def test_what_folding_before_a_turn_cuts_is_told_by_the_turn(game, server):
    game.put_role(max_history_messages=2, summary={"background": False, "use_model": False})
    game.append(*(("user", "y" * 400) for _ in range(6)))
    told = {cut.what for cut in game.send("Well?").completed.cuts}
    assert {"bullet", "history_window"} <= told


def test_a_newest_message_that_makes_the_prompt_larger_than_its_window_is_told(game, server):
    game.append(("user", "y" * 4_000))
    prompt = shown(game, context_tokens=1_000)
    (told,) = (cut for cut in prompt.cuts if cut.what == "window")
    assert told.dropped == prompt.total.tokens + prompt.budget.completion_reserve - 1_000 > 0


def test_a_repair_of_a_structured_answer_repeats_the_request_that_was_shown(game, server):
    server.play(stream("no json"), stream('{"mood": "calm"}'))
    prompt = shown(game, response_schema_json=SCHEMA)
    assert game.send("Well?", response_schema_json=SCHEMA).completed.response_json
    first, second = (request.body for request in server.turns)
    assert body(prompt) == first
    assert second["response_format"] == first["response_format"]
    assert second["messages"][: len(first["messages"])] == first["messages"]


def test_a_server_that_does_not_stream_is_shown_its_request_too(game, server):
    game.put_backend(base_url=server.base_url, streaming=False, extra_body_json='{"seed": 7, "temperature": null}')
    server.play(whole({"choices": [{"message": {"content": "Aye."}, "finish_reason": "stop"}]}))
    prompt = shown(game, temperature=1.5)
    game.send("Well?", temperature=1.5)
    assert body(prompt) == server.turns[0].body
