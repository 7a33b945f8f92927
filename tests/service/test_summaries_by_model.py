"""A model that writes summaries over real HTTP: callers that go away hang up on it, and its silence is a failure."""

from __future__ import annotations

import time

import grpc
import pytest
from chat_client import Chat, cut
from client import failure
from turn_client import TurnClient
from wire_server import Reply, WireServer, delta, end, error, stream, whole

from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, compaction_pb2

MODEL = compaction_pb2.COMPACTION_STRATEGY_MODEL
DETERMINISTIC = compaction_pb2.COMPACTION_STRATEGY_DETERMINISTIC
TIMEOUT = compaction_pb2.COMPACTION_FAILURE_SUMMARY_TIMEOUT
FAILED = compaction_pb2.COMPACTION_FAILURE_SUMMARY_FAILED
SILENT = Reply([], hold=True)
BABBLING = Reply([delta(content="- they met ")], hold=True)


@pytest.fixture
def writer():
    """The server of the model that writes summaries."""
    with WireServer() as server:
        yield server


@pytest.fixture
def game(shared_daemon, actor, server, writer):
    game = TurnClient(shared_daemon.client, actor, server)
    game.put_backend("writer", base_url=writer.base_url)
    game.put_role(max_history_messages=4, summary={"background": False, "backend_id": "writer"})
    return game


def held(count):
    return [compaction_pb2.CompactMessage(role=("user", "assistant")[n % 2], content=f"line {n}") for n in range(count)]


def compacting(chat, game, **fields):
    """A call of Compact that is under way."""
    request = compaction_pb2.CompactRequest(actor=game.actor, strategy=MODEL, backend_id="writer", **fields)
    return chat.compaction.Compact.future(request)


@pytest.mark.parametrize("reply", [SILENT, BABBLING])
@pytest.mark.parametrize("fields", [{}, {"messages": held(9), "target_messages": 4}])
def test_a_compaction_that_is_cancelled_hangs_up_on_the_model(chat, game, writer, reply, fields):
    writer.standing = reply
    chat.talk(game.actor, 20)
    call = compacting(chat, game, **fields)
    (request,) = writer.wait_for(1)
    call.cancel()
    assert request.gone.wait(1.0)
    assert chat.summary(game.actor).version == 0


def test_a_request_for_a_summary_tells_whose_it_is(chat, game, writer):
    writer.standing = stream("- they talked")
    chat.talk(game.actor, 20)
    compacting(chat, game).result()
    assert writer.turns[0].headers["x-coreai-role"] == "__CoreAI_ContextCompaction"


def test_a_compaction_whose_time_is_over_hangs_up_on_the_model(chat, game, writer):
    writer.standing = SILENT
    chat.talk(game.actor, 20)
    with pytest.raises(grpc.RpcError) as caught:
        chat.compaction.Compact(compaction_pb2.CompactRequest(actor=game.actor, strategy=MODEL), timeout=0.5)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert writer.turns[0].gone.wait(1.0)


def test_nothing_more_is_asked_of_the_model_after_a_cancel_between_its_calls(chat, game, writer):
    """Long lines need several calls; the second is under way when the caller goes away."""
    writer.play(stream("- they talked"), SILENT)
    writer.standing = stream("- they talked")
    chat.talk(game.actor, 30, text="y" * 795 + " {}")
    call = compacting(chat, game)
    second = writer.wait_for(2)[1]
    call.cancel()
    assert second.gone.wait(1.0)
    assert chat.compact(game.actor, strategy=DETERMINISTIC).compacted
    assert len(writer.turns) == 2


def test_a_compaction_can_be_made_at_once_after_one_that_was_cancelled(chat, game, writer):
    writer.play(SILENT)
    writer.standing = stream("- they talked")
    chat.talk(game.actor, 20)
    call = compacting(chat, game)
    writer.wait_for(1)
    call.cancel()
    began = time.monotonic()
    answer = chat.compact(game.actor, strategy=MODEL)
    assert (answer.summary.text, answer.strategy) == ("- they talked", MODEL)
    assert time.monotonic() - began < 10


def test_a_turn_that_is_cancelled_while_it_folds_hangs_up_on_the_model(game, chat, writer):
    writer.standing = SILENT
    chat.talk(game.actor, 20)
    call = game.start("Hello")
    (request,) = writer.wait_for(1)
    call.cancel()
    assert request.gone.wait(1.0)


@pytest.mark.parametrize("limits", [{"total_timeout_ms": 300}, {"idle_timeout_ms": 300}])
@pytest.mark.parametrize("reply", [SILENT, BABBLING])
@pytest.mark.parametrize("fields", [{}, {"messages": held(9), "target_messages": 4, "max_attempts": 1}])
def test_a_model_that_falls_silent_is_a_failure_that_is_told_and_lines_by_rule_take_its_place(
    chat, game, writer, limits, reply, fields
):
    game.put_backend("writer", base_url=writer.base_url, **limits)
    writer.standing = reply
    chat.talk(game.actor, 20)
    answer = chat.compact(game.actor, strategy=MODEL, **fields)
    assert (answer.compacted, answer.strategy, answer.failure) == (True, DETERMINISTIC, TIMEOUT)
    assert "- user: line 0" in answer.summary.text
    assert cut(answer, "summariser").dropped > 0
    assert writer.turns[0].gone.wait(5.0)


def test_a_server_that_nobody_answers_at_is_a_failure_that_is_told(chat, game):
    game.put_backend("writer", base_url="http://127.0.0.1:9/v1")
    chat.talk(game.actor, 20)
    answer = chat.compact(game.actor, strategy=MODEL)
    assert (answer.strategy, answer.failure) == (DETERMINISTIC, FAILED)


def test_a_turn_goes_on_where_its_summary_takes_too_long(game, chat, server, writer):
    game.put_backend("writer", base_url=writer.base_url, total_timeout_ms=300)
    writer.standing = SILENT
    chat.talk(game.actor, 20)
    turn = game.send("Hello")
    assert turn.completed.text
    (warning,) = turn.all("warning")
    assert warning.code == chat_pb2.TURN_WARNING_CODE_SUMMARY_FALLBACK
    assert warning.details["failure"] == "timeout"


def test_a_daemon_that_is_to_end_does_not_wait_for_a_summary(start_daemon, actor, server, writer):
    daemon = start_daemon()
    game = TurnClient(daemon.client, actor, server)
    game.put_backend("writer", base_url=writer.base_url)
    game.put_role(max_history_messages=4, summary={"background": True, "backend_id": "writer"})
    writer.standing = SILENT
    Chat(daemon.client).talk(game.actor, 20)
    game.send("Hello")
    writer.wait_for(1)
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 10


def test_an_answer_without_an_end_of_a_refusing_server_is_no_internal_error(chat, game, writer):
    writer.standing = error(503, {"error": {"message": "busy"}})
    chat.talk(game.actor, 20)
    assert chat.compact(game.actor, strategy=MODEL).failure == FAILED


def told_window(tokens):
    """What a vLLM tells of its models."""
    model = {"id": "scripted", "object": "model", "owned_by": "vllm", "max_model_len": tokens}
    return whole({"object": "list", "data": [model]})


@pytest.mark.parametrize("fields", [{}, {"messages": held(60), "target_messages": 4}])
def test_a_summariser_is_sent_what_the_window_holds_that_its_server_tells(chat, game, writer, fields):
    writer.models, writer.standing = told_window(1_100), stream("- they talked")
    game.put_backend("writer", base_url=writer.base_url, context_tokens=0)
    chat.talk(game.actor, 30, text="y" * 790 + " {}")
    assert chat.compact(game.actor, strategy=MODEL, backend_id="writer", **fields).strategy == MODEL
    assert max(len(request.said) for request in writer.turns) < 4 * 1_100


def test_a_turn_that_folds_first_sends_its_summariser_what_its_window_holds(chat, game, writer):
    writer.models, writer.standing = told_window(1_100), stream("- they talked")
    game.put_backend("writer", base_url=writer.base_url, context_tokens=0)
    chat.talk(game.actor, 30, text="y" * 790 + " {}")
    assert game.send("Hello").completed.text
    assert writer.turns
    assert max(len(request.said) for request in writer.turns) < 4 * 1_100


def test_the_window_that_a_server_tells_holds_before_its_first_turn_too(chat, game, server):
    server.models = told_window(1_100)
    game.put_backend(base_url=server.base_url, context_tokens=0)
    before = chat.preview(game.actor).history_budget
    assert before == chat.prompt(game.actor).budget.history < 1_100


def test_the_window_that_an_overflow_of_the_summariser_tells_holds_for_the_next_summary(chat, game, writer):
    told = {"code": 400, "type": "exceed_context_size_error", "message": "too long", "n_ctx": 1_100}
    writer.play(error(400, {"error": told}))
    writer.standing = stream("- they talked")
    chat.talk(game.actor, 30, text="y" * 790 + " {}")
    assert chat.compact(game.actor, strategy=MODEL, max_messages=16).failure == FAILED
    assert chat.compact(game.actor, strategy=MODEL, max_messages=2).strategy == MODEL
    assert max(len(request.said) for request in writer.turns[1:]) < 4 * 1_100 < len(writer.turns[0].said)


def test_half_a_character_in_a_summary_is_no_internal_error(chat, game, writer):
    writer.standing = Reply([b'data: {"choices":[{"delta":{"content":"They met \\ud83d."}}]}\n\n', end()])
    chat.talk(game.actor, 20)
    assert chat.compact(game.actor, strategy=MODEL).summary.text == "They met \ufffd."


def test_no_reasoning_stands_in_a_summary(chat, game, writer):
    writer.standing = stream("<thought>Ada lies.</thought>", "- Ada came")
    chat.talk(game.actor, 20)
    assert chat.compact(game.actor, strategy=MODEL).summary.text == "- Ada came"


def test_a_writer_that_says_our_own_word_for_nothing_has_written_no_summary(chat, game, writer):
    writer.standing = stream(" (none)\n")
    chat.talk(game.actor, 20)
    done = chat.compact(game.actor, strategy=MODEL)
    assert done.failure == compaction_pb2.COMPACTION_FAILURE_SUMMARY_BLANK
    assert "line 0" in done.summary.text


def test_a_compaction_too_many_names_the_limit_of_compactions(start_daemon, actor, server, writer):
    daemon = start_daemon("--set", "compaction.max_waiting_compactions=1")
    game = TurnClient(daemon.client, actor, server)
    game.put_backend("writer", base_url=writer.base_url)
    writer.standing = SILENT
    chat, other = Chat(daemon.client), common_pb2.Actor(actor_id="other")
    for who in (game.actor, other):
        chat.talk(who, 40)
    call = compacting(chat, game)
    writer.wait_for(1)
    refused = failure(lambda: chat.compact(other, strategy=MODEL, backend_id="writer"))
    assert (refused.kind, refused.metadata["limit"]) == (
        ("RESOURCE_EXHAUSTED", "TOO_MANY_CALLS"),
        "compaction.max_waiting_compactions",
    )
    call.cancel()
    assert writer.turns[0].gone.wait(1.0)


@pytest.mark.parametrize("key", ["ключ", "two\nlines"])
def test_a_key_that_cannot_stand_in_a_requests_head_is_refused(chat, game, key):
    refused = failure(lambda: chat.compact(game.actor, strategy=MODEL, backend_id="writer", api_key=key))
    assert (*refused.kind, refused.fields) == ("INVALID_ARGUMENT", "FIELD_INVALID", ("api_key",))
    probe = chat_pb2.ProbeBackendRequest(backend_id="writer", api_key=key)
    assert failure(lambda: game.stub.ProbeBackend(probe)).fields == ("api_key",)


def test_a_summary_is_read_also_where_the_backends_cannot_be(daemon, actor):
    chat = Chat(daemon.client)
    chat.put_summary(actor, "They met.")
    assert daemon.stop() == 0
    (daemon.folder / "backends.json").write_bytes(b"{")
    chat = Chat(daemon.start().client)
    assert chat.compaction.GetSummary(compaction_pb2.GetSummaryRequest(actor=actor)).status
    assert failure(lambda: chat.preview(actor)).kind == ("DATA_LOSS", "STORAGE_CORRUPT")


def test_a_turn_is_answered_where_too_many_summaries_are_being_written(start_daemon, actor, server, writer):
    daemon = start_daemon("--set", "compaction.max_waiting_compactions=1")
    game = TurnClient(daemon.client, actor, server)
    game.put_backend("writer", base_url=writer.base_url)
    game.put_role(max_history_messages=4, summary={"background": False, "backend_id": "writer"})
    writer.standing = SILENT
    chat, other = Chat(daemon.client), common_pb2.Actor(actor_id="other")
    chat.talk(other, 40)
    chat.talk(game.actor, 20)
    call = chat.compaction.Compact.future(
        compaction_pb2.CompactRequest(actor=other, strategy=MODEL, backend_id="writer")
    )
    writer.wait_for(1)
    turn = game.send("Hello")
    assert turn.completed.text
    assert "summariser" in [each.what for each in turn.all("cut")]
    assert "- user: line 0" in server.turns[0].said
    call.cancel()
