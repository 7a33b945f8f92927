"""Models whose chat template refuses the order of a prompt's roles, as many local ones do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_client import Chat
from turn_client import TurnClient
from wire_server import Reply, Request, calls, error, stream

from sidecar.gen.lorekeeper.v1 import chat_pb2, compaction_pb2

MODEL = compaction_pb2.COMPACTION_STRATEGY_MODEL
GEMMA = "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."
WORLD = {"world_state": "It is night.", "instructions": "Be kind."}


def refused(why: str) -> Reply:
    return error(500, {"error": {"code": 500, "message": f"\n----\n{why}", "type": "server_error"}})


def in_turns(request: Request) -> Reply:
    """As the templates of Gemma 3 and Mistral: a system message first, then user and assistant in turns."""
    said = [message for message in request.messages if message["role"] != "tool" and not message.get("tool_calls")]
    roles = [message["role"] for message in said if message is not said[0] or message["role"] != "system"]
    wanted = [("user", "assistant")[place % 2] for place in range(len(roles))]
    return stream("Well met.") if roles == wanted else refused(GEMMA)


def without_system(request: Request) -> Reply:
    """As the templates of earlier Gemmas."""
    if any(message["role"] == "system" for message in request.messages):
        return refused("Jinja Exception: System role not supported")
    return in_turns(request)


@pytest.fixture
def game(shared_daemon: Any, actor: Any, server: Any) -> TurnClient:
    server.standing = in_turns
    return TurnClient(shared_daemon.client, actor, server, max_retries=0)


def test_a_model_that_takes_roles_in_turns_hears_all_of_the_prompt(game, server):
    game.append(("user", "Who are you?"), ("user", "Hey!"), ("assistant", "Mira."), ("assistant", "The smith."))
    assert game.send("Hello", **WORLD).completed.text == "Well met."
    first, taken = server.turns
    assert [message["role"] for message in taken.messages] == ["system", "user", "assistant", "user"]
    assert len(first.messages) == 8
    assert all(message["content"] in taken.said for message in first.messages)


def test_what_a_template_takes_is_found_out_once(game, server):
    assert [game.send(line, **WORLD).completed.text for line in ("Hello", "Good night")] == ["Well met."] * 2
    assert len(server.turns) == 3


def test_a_character_may_speak_first_also_where_the_user_has_to_begin(game, server):
    game.append(("assistant", "Welcome, traveller!"))
    assert game.send("Hello").completed.text == "Well met."
    assert [message["role"] for message in server.turns[-1].messages] == ["system", "user", "assistant", "user"]


def test_a_line_that_failed_stands_in_no_later_lines_way(game, server):
    server.play(error(503, {"error": "busy"}))
    assert game.send("Hello").code == "BACKEND_UNAVAILABLE"
    assert game.send("Anybody?").completed.text == "Well met."
    assert server.turns[-1].messages[-1]["content"] == "Hello\n\nAnybody?"


def test_a_model_without_a_system_role_is_told_its_role_by_the_user(game, server):
    server.standing = without_system
    game.put_role(system_prompt="You are Mira.")
    assert game.send("Hello", **WORLD).completed.text == "Well met."
    (only,) = server.turns[-1].messages
    assert only["role"] == "user"
    assert only["content"].index("You are Mira.") < only["content"].index("It is night.")


def test_a_request_for_words_goes_with_the_result_of_the_last_tool(game, server):
    game.put_role(max_roundtrips=1)
    server.play(in_turns, calls(("memory", {"action": "read"})))
    assert game.send("Hello", **WORLD).completed.text == "Well met."
    assert server.turns[-1].messages[-1]["role"] == "tool"


def test_what_is_shown_is_what_is_sent(game, server):
    game.send("Hello", **WORLD)
    line = chat_pb2.TurnInput(text="Good night", backend_id="scripted", **WORLD)
    shown = game.stub.BuildPrompt(chat_pb2.BuildPromptRequest(actor=game.actor, input=line, include_wire_json=True))
    game.send("Good night", **WORLD)
    assert json.loads(shown.wire_json)["messages"] == server.turns[-1].messages


def test_an_order_that_no_form_satisfies_is_told(game, server):
    server.standing = refused(GEMMA)
    turn = game.send("Hello")
    assert (turn.code, len(server.turns)) == ("INVALID_REQUEST", 2)
    assert "template" in turn.failed.message


def test_a_summary_is_written_by_a_model_without_a_system_role(game, server, shared_daemon):
    server.standing = without_system
    chat = Chat(shared_daemon.client)
    chat.talk(game.actor, 40)
    done = chat.compact(game.actor, strategy=MODEL, backend_id="scripted")
    assert (done.strategy, done.summary.text) == (MODEL, "Well met.")
