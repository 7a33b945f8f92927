"""A daemon that is killed in the middle of a turn: the player's line is there once, never half an answer."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from turn_client import TurnClient, tool
from wire_server import Gate, Reply, calls, delta, end, stream

from sidecar.gen.lorekeeper.v1 import common_pb2

KILLS = 10
ACTORS = 2  # for each stage, so that ten turns die at once
ANSWER = "Good day, traveller, come in."
# Where a turn stands when the daemon is killed, and the event by which the test sees it.
STAGES = {
    "silent": "started",
    "first words": "text",
    "all words": "text",
    "tool": "tool_call",
    "after": "completed",
}


def script(stage: str, gate: Gate) -> Reply:
    """An answer that gets as far as the stage and no further."""
    words = ANSWER.split(" ")
    replies = {
        "silent": Reply([gate]),
        "first words": stream(words[0], gate),
        "all words": Reply([delta(content=ANSWER), gate, end()]),
        "tool": calls(("open_gate", {"gate": "north"})),
        "after": stream(ANSWER),
    }
    return replies[stage]


def play(game: TurnClient, stage: str, line: str) -> None:
    """Plays a turn up to the stage at which the daemon is to be killed."""
    talk = game.converse(tool("open_gate", mutating=True))
    talk.line(line)
    talk.until(STAGES[stage])


def actor_at(stage: str, number: int) -> common_pb2.Actor:
    return common_pb2.Actor(save_id="slot 1", actor_id=f"{stage} {number}")


@pytest.mark.slow
def test_a_hundred_killed_turns_leave_each_line_once_and_no_half_answer(daemon: Any, server: Any) -> None:
    server.standing = lambda request: script(request.messages[-1]["content"].partition(":")[0], server.gate())
    actors = [(stage, actor_at(stage, number)) for stage in STAGES for number in range(ACTORS)]
    for number in range(KILLS):
        for stage, actor in actors:
            play(TurnClient(daemon.client, actor, server), stage, f"{stage}: line {number}")
        daemon.kill()
        daemon.start()
    for stage, actor in actors:
        messages = TurnClient(daemon.client, actor).messages()
        lines = [content for role, content in messages if role == "user"]
        assert lines == [f"{stage}: line {number}" for number in range(KILLS)]
        answers = [content for role, content in messages if role == "assistant"]
        assert answers == ([ANSWER] * KILLS if stage == "after" else [])


def test_a_tool_of_the_game_that_ran_before_the_kill_is_in_the_transcript(daemon: Any, actor: Any, server: Any) -> None:
    game = TurnClient(daemon.client, actor, server)
    server.play(calls(("open_gate", {"gate": "north"})))
    play(game, "tool", "Open!")
    daemon.kill()
    rows = TurnClient(daemon.start().client, actor).transcript()
    assert rows == [("USER", "user", "Open!"), ("TOOL_CALL", "open_gate", '{"gate": "north"}')]


def test_a_line_that_is_sent_again_after_a_kill_is_stored_once(daemon: Any, actor: Any, server: Any) -> None:
    game = TurnClient(daemon.client, actor, server)
    server.play(Reply([server.gate()]), stream(ANSWER))
    play(game, "silent", "Hello")
    server.wait_for(1)  # a request that the kill kept back would leave the gate to the next turn
    daemon.kill()
    game = TurnClient(daemon.start().client, actor, server)
    turn = game.send("Hello")
    assert turn.started.resend
    assert game.messages() == [("user", "Hello"), ("assistant", ANSWER)]


def test_a_kill_fails_the_stream_that_the_game_reads(daemon: Any, actor: Any, server: Any) -> None:
    game = TurnClient(daemon.client, actor, server)
    server.play(stream("Good", server.gate()))
    told = game.start("Hello")
    assert next(told).event.HasField("started")
    daemon.process.kill()  # the process alone: daemon.kill() closes the client too, which ends the stream otherwise
    with pytest.raises(grpc.RpcError) as caught:
        list(told)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
