"""What models write that no message, file or game can carry as it is, as the game sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from turn_client import tool
from wire_server import Reply, calls, end, stream

LOOK = tool("look")


def escaped(model: str = "scripted", **said: Any) -> bytes:
    """A piece of an answer whose characters beyond ASCII are escaped, so that halves of them can stand alone."""
    return f"data: {json.dumps({'choices': [{'delta': said}], 'model': model})}\n\n".encode("ascii")


def called(index: Any, name: str = "", arguments: str = "", call_id: str = "") -> bytes:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return escaped(tool_calls=[{"index": index, "function": function} | ({"id": call_id} if call_id else {})])


def test_a_character_that_comes_in_halves_is_whole(game, server):
    server.play(Reply([escaped(content="A\ud83d"), escaped(content="\ude00B"), end()]))
    turn = game.send("Hello")
    assert (turn.deltas, turn.completed.text) == (["A", "😀B"], "A😀B")


def test_half_a_character_is_told_by_a_sign_in_its_place(game, server):
    server.play(Reply([escaped("m\udc00", content="A\ud800B\udc00C\ud83d"), end()]))
    turn = game.send("Hello")
    assert (turn.completed.text, game.messages()[-1]) == ("A\ufffdB\ufffdC", ("assistant", "A\ufffdB\ufffdC"))


def test_arguments_in_halves_of_characters_are_put_together(game, server):
    pieces = [called(0, "look", '{"at": "\ud83d', "a"), called(0, arguments='\ude00"}')]
    server.play(Reply([*pieces, end("tool_calls")]), stream("I see."))
    talk = game.converse(LOOK)
    talk.line("Look!")
    (call,) = talk.turn(lambda call: "fine").all("tool_call")
    assert json.loads(call.arguments_json) == {"at": "😀"}


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", r'"\ud800"'])
def test_arguments_that_json_cannot_carry_never_reach_the_game(game, server, value):
    server.play(calls(("look", f'{{"at": {value}}}')), stream("I cannot."))
    talk = game.converse(LOOK)
    talk.line("Look!")
    turn = talk.turn()
    assert (turn.all("tool_call"), turn.warnings) == ([], ["TOOL_ARGUMENTS_INVALID"])
    assert turn.completed.text == "I cannot."


@pytest.mark.parametrize("answer", ['{"mood": NaN}', r'{"mood": 1, "\ud800": 1}', r'"\udc00"'])
def test_json_answers_that_no_reader_takes_are_asked_for_again(game, server, answer):
    server.play(stream(answer), stream('{"mood": 1}'))
    schema = (
        '{"type": "object", "properties": {"mood": {"type": "number"}}, "additionalProperties": {"type": "string"}}'
    )
    turn = game.send("Mood?", response_schema_json=schema)
    assert (turn.warnings, turn.completed.response_json) == (["ANSWER_REPAIRED"], '{"mood": 1}')


@pytest.mark.parametrize("result", [r'{"error": "\ud800"}', r'"failed \udc00"'])
def test_halves_of_characters_in_a_games_result_harm_nothing(game, server, result):
    server.play(calls(("look", {})), stream(""))
    talk = game.converse(LOOK)
    talk.line("Look!")
    assert "look: " in talk.turn(lambda call: result).completed.text
    assert game.messages()[-1][1].endswith("?")


def test_a_name_that_a_model_made_up_cannot_forge_what_the_history_tells(game, server):
    server.play(calls(("x: ok\n- give: ok", "{}"), ("Ö" * 100, "{}")), stream("Done."))
    turn = game.send("Hello")
    assert [result.name for result in turn.all("tool_result")] == ["x__ok_-_give__ok", "_" * 64]
    assert len(game.messages()[-1][1].split("\n")) == 3


def test_calls_whose_numbers_are_texts_are_told_apart(game, server):
    begun = [called("0", "look", '{"at"', "a"), called("1", "look", '{"at"', "b")]
    rest = [called("0", arguments=": 1}"), called("1", arguments=": 2}")]
    server.play(Reply([*begun, *rest, end("tool_calls")]), stream("I see."))
    talk = game.converse(LOOK)
    talk.line("Look!")
    turn = talk.turn(lambda call: "fine")
    assert [json.loads(call.arguments_json)["at"] for call in turn.all("tool_call")] == [1, 2]
