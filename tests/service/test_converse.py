"""A conversation in which the game offers tools and answers their calls."""

from __future__ import annotations

import json

import grpc
import pytest
from turn_client import TurnClient, tool
from wire_server import WAIT_SECONDS, Reply, calls, delta, end, error, event, stream

from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2, memory_pb2, role_pb2, save_pb2

GATE = '{"type": "object", "properties": {"gate": {"type": "string"}, "n": {"type": "integer"}}, "required": ["gate"]}'
OPEN = tool("open_gate", parameters=GATE, mutating=True)
LOOK = tool("look")


def gate(name="north", **more):
    return ("open_gate", {"gate": name, **more})


def test_it_opens_with_the_daemons_own_tools(game):
    opened = game.converse(OPEN).opened
    names = [each.name for each in opened.conversation_opened.tools]
    assert names == ["memory", "remember_game_memory", "search_game_memory"]
    assert (opened.sequence, opened.turn_id) == (1, "")


def test_the_game_is_asked_and_its_answer_goes_to_the_model(game, server):
    server.play(calls(gate()), stream("It is open."))
    talk = game.converse(OPEN, LOOK)
    talk.line("Open the north gate.", input_id="line-1")
    turn = talk.turn(lambda call: '{"ok": true, "state": "open"}')
    call = turn.all("tool_call")[0]
    assert (call.name, json.loads(call.arguments_json), call.origin) == (
        "open_gate",
        {"gate": "north"},
        chat_pb2.TOOL_ORIGIN_GAME,
    )
    assert (call.timeout_ms, call.mutating) == (30_000, True)
    assert turn.completed.text == "It is open."
    assert server.turns[1].messages[-1]["content"] == '{"ok": true, "state": "open"}'
    names = [each["function"]["name"] for each in server.turns[0].body["tools"]]
    assert names == ["look", "memory", "open_gate"]


def test_the_next_line_may_be_said_while_the_stream_stays_open(game, server):
    server.play(stream("One."), stream("Two."))
    talk = game.converse()
    talk.line("First")
    talk.line("Second")
    assert [talk.turn().completed.text for _ in range(2)] == ["One.", "Two."]
    talk.done()
    assert talk.over()
    assert talk.sequences == list(range(1, len(talk.sequences) + 1))


def test_a_failed_turn_is_an_event_and_the_conversation_goes_on(game, server):
    server.play(error(401, {"error": "no"}), stream("Hi"))
    talk = game.converse()
    talk.line("Hello")
    assert talk.turn().code == "AUTH_EXPIRED"
    talk.line("Hello")
    assert talk.turn().completed.text == "Hi"


def test_a_line_that_is_wrong_fails_alone(game):
    talk = game.converse()
    talk.line(" ")
    assert talk.turn().code == "INVALID_INPUT"
    talk.line("Hello")
    assert talk.turn().completed.text == "You said: Hello"


def test_a_backend_that_is_not_there_fails_the_turn_and_the_line_is_kept(game):
    talk = game.converse()
    talk.line("Hello", backend_id="nowhere")
    turn = talk.turn()
    assert (turn.code, turn.failed.reason) == ("INVALID_INPUT", "BACKEND_NOT_FOUND")
    assert game.messages() == [("user", "Hello")]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"gate": "nor',
        "[1]",
        "{}",
        '{"gate": null}',
        '{"gate": 7}',
        '{"gate": "north", "n": "x"}',
        '{"gate": "north", "gate": "south"}',
    ],
)
def test_arguments_that_cannot_be_used_never_reach_the_game(game, server, arguments):
    server.play(calls(("open_gate", arguments)), calls(gate()), stream("Done."))
    talk = game.converse(OPEN)
    talk.line("Open!")
    turn = talk.turn(lambda call: '{"ok": true}')
    assert [json.loads(call.arguments_json) for call in turn.all("tool_call")] == [{"gate": "north"}]
    assert turn.warnings == ["TOOL_ARGUMENTS_INVALID"]
    assert turn.all("tool_result")[0].reason == "ARGUMENTS_INVALID"


def test_optional_arguments_that_are_null_are_left_out(game, server):
    server.play(calls(gate(n=None)), stream("Done."))
    talk = game.converse(OPEN)
    talk.line("Open!")
    assert json.loads(talk.turn(lambda call: "ok").all("tool_call")[0].arguments_json) == {"gate": "north"}


def test_a_tools_name_in_another_case_is_repaired(game, server):
    server.play(calls(("Open_Gate", {"gate": "north"})), stream("Done."))
    talk = game.converse(OPEN)
    talk.line("Open!")
    turn = talk.turn(lambda call: "ok")
    assert (turn.warnings, turn.all("tool_call")[0].name) == (["TOOL_NAME_REPAIRED"], "open_gate")


def test_an_unknown_tool_is_answered_with_those_that_there_are(game, server):
    server.play(calls(("fly", {})), stream("I cannot."))
    talk = game.converse(OPEN)
    talk.line("Fly!")
    turn = talk.turn()
    assert (turn.all("tool_call"), turn.all("tool_result")[0].reason) == ([], "UNKNOWN_TOOL")
    assert "memory, open_gate" in server.turns[1].messages[-1]["content"]


def test_calls_that_change_something_run_one_after_another_and_others_side_by_side(game, server):
    server.play(calls(gate("a"), ("look", {"at": 1}), gate("b"), ("look", {"at": 2})), stream("Done."))
    talk = game.converse(OPEN, LOOK)
    talk.line("Do it all.")
    first = [talk.until("tool_call").tool_call for _ in range(3)]
    assert sorted(call.name for call in first) == ["look", "look", "open_gate"]
    opening = next(call for call in first if call.name == "open_gate")
    talk.answer(opening.call_id)
    second = talk.until("tool_call").tool_call
    assert json.loads(second.arguments_json) == {"gate": "b"}
    for call in [*first, second]:
        if call is not opening:
            talk.answer(call.call_id, f'"{call.call_id}"')
    talk.turn()
    told = [message["tool_call_id"] for message in server.turns[1].messages if message["role"] == "tool"]
    assert told == [call["id"] for call in server.turns[1].messages[-5]["tool_calls"]]


def test_a_call_that_succeeded_is_not_run_again_unless_something_changed(game, server):
    look, opening = ("look", {"at": "gate"}), gate()
    server.play(calls(look), calls(look), calls(opening), calls(opening), calls(look), stream("Done."))
    talk = game.converse(OPEN, LOOK)
    talk.line("Look, open, look.")
    turn = talk.turn(lambda call: "fine")
    assert [call.name for call in turn.all("tool_call")] == ["look", "open_gate", "look"]
    assert [result.duplicate for result in turn.all("tool_result")] == [False, True, False, True, False]


def test_a_repeatable_tool_is_run_again(game, server):
    server.play(calls(("roll", {})), calls(("roll", {})), stream("Six."))
    talk = game.converse(tool("roll", repeatable=True))
    talk.line("Roll twice.")
    assert len(talk.turn(lambda call: "6").all("tool_call")) == 2


def test_calls_with_the_same_id_get_ids_of_their_own(game, server):
    pieces = [
        delta(tool_calls=[{"index": i, "id": "same", "function": {"name": "look", "arguments": f'{{"at": {i}}}'}}])
        for i in range(2)
    ]
    server.play(Reply([*pieces, end("tool_calls")]), stream("Done."))
    talk = game.converse(LOOK)
    talk.line("Look!")
    ids = [call.call_id for call in talk.turn(lambda call: "ok").all("tool_call")]
    assert len(set(ids)) == 2


def test_the_rounds_are_bounded_and_the_model_is_asked_for_words(game, server):
    server.play(calls(("look", {"at": 1})), calls(("look", {"at": 2})), stream("Two looks."))
    talk = game.converse(LOOK)
    talk.line("Look!", max_roundtrips=2)
    turn = talk.turn(lambda call: "nothing")
    assert (turn.warnings, turn.completed.text, turn.completed.roundtrips) == (["ROUNDTRIP_LIMIT"], "Two looks.", 3)
    assert "tools" not in server.turns[2].body


def test_rounds_in_which_everything_fails_end_in_words(game, server):
    server.play(*(calls(("look", {"at": n})) for n in range(3)), stream(""))
    talk = game.converse(LOOK)
    talk.line("Look!")
    turn = talk.turn(lambda call: '{"ok": false, "error": "too dark"}')
    assert turn.warnings == ["FAILED_ROUNDS"]
    excuse = "I could not finish this request: 3 tool calls in a row failed, look the last. too dark"
    assert (turn.completed.text, game.messages()[1]) == (excuse, ("assistant", excuse))


def test_a_last_round_that_brings_no_words_names_the_last_tool(game, server):
    server.play(calls(("look", {"at": 1})), calls(("look", {"at": 2})), stream(""))
    talk = game.converse(LOOK)
    talk.line("Look!", max_roundtrips=2)
    turn = talk.turn(lambda call: "a door")
    assert turn.completed.text == "I could not finish this request: it took 2 rounds of tool calls, look the last."


def test_an_error_that_is_too_long_to_be_said_is_cut_and_told(game, server):
    server.play(calls(("look", {})), stream(""))
    talk = game.converse(LOOK)
    talk.line("Look!")
    turn = talk.turn(lambda call: json.dumps({"error": "d" * 220}))
    assert turn.completed.text == f"Tool call failed: look: {'d' * 200}…[+20 chars]"
    assert [(cut.what, cut.kept, cut.dropped) for cut in turn.completed.cuts] == [("tool_result", 200, 20)]


def test_a_failure_in_quotes_is_a_failure(game, server):
    server.play(calls(("look", {})), stream("Too dark."))
    talk = game.converse(LOOK)
    talk.line("Look!")
    turn = talk.turn(lambda call: '"Error: it is too dark"')
    assert [result.succeeded for result in turn.all("tool_result")] == [False]
    assert game.messages()[-1] == ("tool", "## Tool Results\n- look: FAILED Error: it is too dark")


def test_a_model_that_knows_only_text_calls_in_its_words_and_hears_the_result(game, server):
    game.put_backend(base_url=server.base_url, tool_channel=backend_pb2.TOOL_CHANNEL_TEXT)
    called = '{"name": "open_gate", "arguments": {"gate": "west"}}'
    server.play(stream("Sure. ", *called), stream("It is open."))
    talk = game.converse(OPEN)
    talk.line("Open the west gate!")
    turn = talk.turn(lambda call: '"creaking"')
    assert [message["content"] for message in server.turns[1].messages[-2:]] == [
        f"Sure.\n{called}",
        'Result of open_gate: "creaking"',
    ]
    assert turn.completed.text == "Sure.\n\nIt is open."
    assert game.messages()[-1] == ("tool", "## Tool Results\n- open_gate: ok creaking")


def test_a_turn_in_which_only_tools_spoke_says_so(game, server):
    server.play(calls(gate()), Reply([end()]))
    talk = game.converse(OPEN)
    talk.line("Open!")
    done = talk.turn(lambda call: "ok").completed
    assert (done.text, done.finish_reason) == ("Tool call completed: open_gate.", chat_pb2.FINISH_REASON_TOOLS_ONLY)


def test_a_game_that_never_answers_does_not_hold_the_turn(game, server):
    server.play(calls(("look", {})), stream("I see nothing."))
    talk = game.converse(tool("look", timeout_ms=50))
    talk.line("Look!")
    turn = talk.turn()
    result = turn.all("tool_result")[0]
    assert (result.succeeded, result.reason, turn.completed.text) == (False, "TIMEOUT", "I see nothing.")


def test_answers_that_nobody_asked_for_are_told_and_passed_over(game, server):
    server.play(calls(("look", {})), stream("Done."))
    talk = game.converse(LOOK)
    talk.answer("unknown")
    assert talk.next().warning.code == chat_pb2.TURN_WARNING_CODE_UNEXPECTED_TOOL_RESULT
    talk.line("Look!")
    call = talk.until("tool_call").tool_call
    talk.answer(call.call_id, "first")
    talk.answer(call.call_id, "second")
    turn = talk.turn()
    assert server.turns[1].messages[-1]["content"] == "first"
    assert turn.warnings == ["UNEXPECTED_TOOL_RESULT"]


def test_an_answer_of_five_megabytes_is_refused_and_the_turn_goes_on(game, server):
    server.play(calls(("look", {})), stream("Too much to see."))
    talk = game.converse(LOOK)
    talk.line("Look!")
    turn = talk.turn(lambda call: "x" * 5_000_000)
    assert (turn.all("tool_result")[0].reason, turn.completed.text) == ("RESULT_TOO_LONG", "Too much to see.")


def test_a_long_answer_is_cut_for_the_model_and_told(game, server):
    server.play(calls(("look", {})), stream("Much to see."))
    talk = game.converse(LOOK)
    talk.line("Look!")
    turn = talk.turn(lambda call: "x" * 9_000)
    assert server.turns[1].messages[-1]["content"].endswith("\n...[truncated: 9000 chars total -> 8000 shown]")
    for_model, in_history = turn.all("cut")
    assert (for_model.what, for_model.kept, for_model.dropped) == ("tool_result", 8_000, 1_000)
    assert (in_history.what, in_history.dropped) == ("tool_result", 8_760)


def test_an_empty_answer_is_told_as_such(game, server):
    server.play(calls(("look", {})), stream("Nothing."))
    talk = game.converse(LOOK)
    talk.line("Look!")
    talk.turn(lambda call: "")
    assert server.turns[1].messages[-1]["content"] == '{"ok": true, "empty": true}'


def test_a_turn_is_cancelled_while_the_model_speaks(game, server):
    server.play(stream("Well", server.gate(), "never"), stream("Yes?"))
    talk = game.converse()
    talk.line("Hello")
    turn_id = talk.until("text").turn_id
    talk.say(cancel=chat_pb2.CancelTurn(turn_id=turn_id))
    assert talk.turn().code == "CANCELLED"
    assert server.turns[0].gone.wait(WAIT_SECONDS)
    assert game.messages() == [("user", "Hello")]
    talk.line("Again")
    assert talk.turn().completed.text == "Yes?"


def test_a_turn_is_cancelled_while_the_game_works_and_the_transcript_tells_of_it(game, server):
    server.play(calls(gate()))
    talk = game.converse(OPEN)
    talk.line("Open!")
    talk.until("tool_call")
    talk.say(cancel=chat_pb2.CancelTurn())
    assert talk.turn().code == "CANCELLED"
    assert [row[:2] for row in game.transcript()] == [
        ("USER", "user"),
        ("TOOL_CALL", "open_gate"),
        ("TOOL_RESULT", "open_gate"),
    ]
    assert "may have run" in game.transcript()[-1][2]


def test_a_failure_after_a_tool_ran_names_the_tool(game, server):
    server.play(calls(gate()), error(500, {"error": "down"}))
    talk = game.converse(OPEN)
    talk.line("Open!")
    turn = talk.turn(lambda call: "opened")
    assert (turn.code, list(turn.failed.executed_tools)) == ("BACKEND_UNAVAILABLE", ["open_gate"])
    assert [row[:2] for row in game.transcript()] == [
        ("USER", "user"),
        ("TOOL_CALL", "open_gate"),
        ("TOOL_RESULT", "open_gate"),
    ]
    assert game.messages() == [("user", "Open!")]


def test_waiting_lines_are_dropped_when_asked_and_stored_all_the_same(game, server):
    server.play(stream("Well", server.gate()))
    talk = game.converse()
    talk.line("First", input_id="1")
    talk.until("text")
    talk.line("Second", input_id="2")
    talk.line("Third", input_id="3")
    talk.say(cancel=chat_pb2.CancelTurn(drop_waiting=True))
    ended = [talk.until("turn_failed") for _ in range(3)]
    assert sorted(each.input_id for each in ended) == ["1", "2", "3"]
    talk.done()
    assert talk.over()
    assert sorted(game.messages()) == [("user", "First"), ("user", "Second"), ("user", "Third")]


def test_too_many_waiting_lines_are_refused(game, server):
    server.play(stream("Well", server.gate()))
    talk = game.converse()
    talk.line("First")
    talk.until("text")
    for number in range(17):
        talk.line(f"Line {number}")
    refused = talk.until("turn_failed").turn_failed
    assert refused.code == chat_pb2.TURN_FAILURE_CODE_LIMIT_REACHED
    assert "turns.max_waiting_lines" in refused.message
    talk.call.cancel()


def test_a_game_that_hangs_up_ends_the_turn_and_its_line_is_kept(game, server):
    server.play(stream("Well", server.gate()))
    talk = game.converse()
    talk.line("Hello")
    talk.until("text")
    talk.call.cancel()
    assert server.turns[0].gone.wait(WAIT_SECONDS)
    assert game.messages() == [("user", "Hello")]


def test_a_cancel_and_a_hang_up_at_once_leave_no_request_to_the_model_open(game, server):
    server.play(stream("Well", server.gate()))
    talk = game.converse()
    talk.line("Hello")
    talk.until("text")
    talk.say(cancel=chat_pb2.CancelTurn())
    talk.call.cancel()
    assert server.turns[0].gone.wait(WAIT_SECONDS)
    assert game.messages() == [("user", "Hello")]


def test_a_game_that_has_said_its_last_word_hears_the_turn_to_its_end(game, server):
    server.play(calls(gate()), stream("Nobody opened it."))
    talk = game.converse(OPEN)
    talk.line("Open!")
    talk.until("tool_call")
    talk.done()
    turn = talk.turn()
    assert (turn.all("tool_result")[0].reason, turn.completed.text) == ("GAME_GONE", "Nobody opened it.")
    assert talk.over()


def test_new_tools_hold_from_the_next_turn_on(game, server):
    server.play(stream("One."), stream("Two."))
    talk = game.converse(OPEN)
    talk.line("First")
    talk.turn()
    talk.say(tools=chat_pb2.GameTools(tools=[LOOK]))
    talk.line("Second")
    talk.turn()
    names = [[each["function"]["name"] for each in request.body["tools"]] for request in server.turns]
    assert names == [["memory", "open_gate"], ["look", "memory"]]


@pytest.mark.parametrize(
    ("values", "names", "choice"),
    [
        ({}, ["look", "memory", "open_gate"], "auto"),
        ({"allowed_tools": role_pb2.AllowedTools(names=["look"])}, ["look"], "auto"),
        ({"tool_choice": chat_pb2.TOOL_CHOICE_NONE}, [], None),
        ({"tool_choice": chat_pb2.TOOL_CHOICE_ANY}, ["look", "memory", "open_gate"], "required"),
        (
            {"tool_choice": chat_pb2.TOOL_CHOICE_NAMED, "tool_name": "look"},
            ["look", "memory", "open_gate"],
            {"type": "function", "function": {"name": "look"}},
        ),
    ],
)
def test_which_tools_may_be_called_is_chosen_for_each_line(game, server, values, names, choice):
    talk = game.converse(OPEN, LOOK)
    talk.line("Hello", **values)
    talk.turn()
    body = server.turns[0].body
    assert [each["function"]["name"] for each in body.get("tools", [])] == names
    assert body.get("tool_choice") == choice


def test_a_forced_choice_holds_for_the_first_answer_only(game, server):
    server.play(calls(("look", {})), stream("Dark."))
    talk = game.converse(LOOK)
    talk.line("Look!", tool_choice=chat_pb2.TOOL_CHOICE_ANY)
    talk.turn(lambda call: "dark")
    assert [request.body["tool_choice"] for request in server.turns] == ["required", "auto"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"tool_choice": chat_pb2.TOOL_CHOICE_ANY}, "you must call one of your tools"),
        ({"tool_choice": chat_pb2.TOOL_CHOICE_NAMED, "tool_name": "look"}, "you must call look"),
        ({}, ""),
    ],
)
def test_a_model_that_knows_only_text_is_told_what_it_must_call_beside_the_line(game, server, values, told):
    game.put_backend(base_url=server.base_url, tool_channel=backend_pb2.TOOL_CHANNEL_TEXT)
    server.play(stream('{"name": "look", "arguments": {}}'), stream("Dark."))
    talk = game.converse(LOOK)
    talk.line("Look!", **values)
    talk.turn(lambda call: "dark")
    first, second = server.turns
    assert first.messages[0] == second.messages[0]
    assert [told in first.said, "This time you must" in second.said] == [True, False]
    assert ("This time you must" in first.said) == bool(told)
    assert first.messages[-1]["content"] == "Look!"


@pytest.mark.parametrize(
    ("offered", "field"),
    [
        (chat_pb2.GameTool(name="memory"), "open.tools[0].name"),
        (chat_pb2.GameTool(name="two words"), "open.tools[0].name"),
        (chat_pb2.GameTool(name="x", parameters_json="{"), "open.tools[0].parameters_json"),
        (chat_pb2.GameTool(name="x", parameters_json='{"type": "nonsense"}'), "open.tools[0].parameters_json"),
    ],
)
def test_a_tool_that_cannot_be_offered_is_named(game, offered, field):
    with pytest.raises(grpc.RpcError) as caught:
        game.converse(offered)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert field in caught.value.details()


def test_it_must_begin_with_open(game):
    talk = game.converse()
    talk.say(open=chat_pb2.ConverseOpen(actor=game.actor))
    with pytest.raises(grpc.RpcError) as caught:
        talk.next()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_an_error_in_an_open_stream_is_told_after_what_was_said(game, server):
    server.play(Reply([delta(content="Well"), event({"error": {"message": "overloaded", "code": 503}})]))
    talk = game.converse()
    talk.line("Hello")
    turn = talk.turn()
    assert (turn.deltas, turn.code) == (["Well"], "BACKEND_UNAVAILABLE")
    assert game.messages() == [("user", "Hello")]


def gone(daemon, game, how):
    """The save is restored, or the actor erased, in the middle of a turn."""
    if how == "restored":
        kept = daemon.client.saves.ListCheckpoints(save_pb2.ListCheckpointsRequest(save_id=game.actor.save_id))
        daemon.client.saves.RestoreCheckpoint(
            save_pb2.RestoreCheckpointRequest(
                save_id=game.actor.save_id, checkpoint_id=kept.checkpoints[0].checkpoint_id
            )
        )
    else:
        daemon.client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=game.actor))


@pytest.mark.parametrize("how", ["restored", "erased"])
def test_a_turn_writes_nothing_once_its_save_was_restored_or_its_actor_erased(daemon, actor, server, how):
    game = TurnClient(daemon.client, actor, server)
    daemon.client.write(game.actor, "Before.")
    daemon.client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=actor.save_id))
    server.play(calls(gate(), ("memory", {"action": "append", "content": "The gate is open."})))
    talk = game.converse(OPEN)
    talk.line("Open the north gate.")
    called = talk.until("tool_call").tool_call
    gone(daemon, game, how)
    talk.answer(called.call_id)
    assert talk.turn().code == "SAVE_CHANGED"
    assert daemon.client.text(game.actor) == ("Before." if how == "restored" else "")
    assert (game.messages(), game.transcript()) == ([], [])


def test_an_answer_is_not_stored_for_an_actor_that_was_erased_meanwhile(daemon, actor, server):
    game = TurnClient(daemon.client, actor, server)
    waiting = server.gate()
    server.play(stream("Hello", waiting, " Ada."))
    talk = game.converse()
    talk.line("I am Ada.")
    talk.until("text")
    gone(daemon, game, "erased")
    waiting.open()
    assert talk.turn().code == "SAVE_CHANGED"
    assert game.messages() == []
    talk.line("Who am I?")
    assert talk.turn().completed.text == "You said: Who am I?"


def test_a_line_that_waited_is_not_stored_for_an_actor_that_was_erased_meanwhile(daemon, actor, server):
    game = TurnClient(daemon.client, actor, server)
    server.play(stream("Hello", server.gate(), " Ada."))
    talk = game.converse()
    talk.line("I am Ada.")
    talk.until("text")
    talk.line("And I like fish.")
    talk.say(cancel=chat_pb2.CancelTurn(turn_id="another"))
    talk.answer("no call")
    talk.until("warning")
    gone(daemon, game, "erased")
    talk.say(cancel=chat_pb2.CancelTurn(drop_waiting=True))
    assert [talk.until("turn_failed").WhichOneof("event") for _ in range(2)] == ["turn_failed"] * 2
    assert game.messages() == []
