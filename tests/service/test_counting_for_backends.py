"""What is shown, folded and counted for a backend keeps to its own window and tokenizer, as its turns do."""

from __future__ import annotations

import pytest
from client import failure
from tiny_models import tokenizer_json
from wire_server import stream

from sidecar.gen.lorekeeper.v1 import common_pb2, compaction_pb2

MODEL = compaction_pb2.COMPACTION_STRATEGY_MODEL
BY_RULE = compaction_pb2.COMPACTION_STRATEGY_DETERMINISTIC
EXACT, ESTIMATE = common_pb2.TOKEN_COUNTER_EXACT, common_pb2.TOKEN_COUNTER_CALIBRATED


@pytest.mark.embeds
def test_a_backends_own_tokenizer_counts_what_is_shown_of_its_prompts(chat, game, server, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json())
    game.put_backend(base_url=server.base_url, tokenizer_path=str(tmp_path / "tokenizer.json"))
    game.put_role()
    assert chat.prompt(game.actor, "Hello").total.counter == EXACT
    assert chat.preview(game.actor).window.history.counter == EXACT
    assert chat.compact(game.actor).before.counter == EXACT


@pytest.mark.embeds
def test_tokens_are_counted_by_the_tokenizer_of_the_backend_or_the_role_that_is_named(chat, game, server, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json())
    game.put_backend(base_url=server.base_url, tokenizer_path=str(tmp_path / "tokenizer.json"))
    game.put_role()
    assert chat.count("Hello", backend_id="scripted", counter=EXACT).total.counter == EXACT
    assert chat.count("Hello", role_id=game.actor.role_id).total.counter == EXACT
    assert chat.count("Hello").total.counter == ESTIMATE


@pytest.mark.embeds
def test_a_conversation_that_the_game_holds_keeps_to_its_target_as_its_roles_backend_counts(
    chat, game, server, tmp_path
):
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json())
    game.put_backend(base_url=server.base_url, tokenizer_path=str(tmp_path / "tokenizer.json"))
    game.put_role()
    held = [compaction_pb2.CompactMessage(role="user", content=f"x1 y2 z3 {n}") for n in range(20)]
    answer = chat.compact(game.actor, messages=held, target_tokens=60, strategy=BY_RULE)
    left = chat.count(*(message.content for message in answer.messages), role_id=game.actor.role_id).total
    assert (answer.after, answer.after.counter, answer.failure) == (left, EXACT, 0)
    assert left.tokens <= 60


def test_tokens_are_not_counted_for_a_backend_that_nobody_has_put(chat):
    assert failure(lambda: chat.count("x", backend_id="nobody")).kind == ("NOT_FOUND", "BACKEND_NOT_FOUND")


@pytest.mark.parametrize("own", [0, 2_048, 16_384])
def test_a_preview_has_the_window_that_a_turn_would_have(chat, game, server, own):
    game.put_backend(base_url=server.base_url, context_tokens=4_096, max_output_tokens=300)
    game.put_role(context_tokens=own)
    budget, preview = chat.prompt(game.actor).budget, chat.preview(game.actor)
    assert budget.window == min(own or 4_096, 4_096)
    assert (preview.history_budget, preview.summary_budget) == (budget.history, budget.summary)


def test_a_history_is_folded_also_where_the_backend_of_its_role_is_gone(chat, game):
    game.put_role(backend_id="gone")
    chat.talk(game.actor, 40)
    assert chat.compact(game.actor).compacted


def test_a_summariser_is_sent_no_more_than_its_own_window_holds(chat, game, server):
    game.put_backend("small", base_url=server.base_url, context_tokens=1_024)
    server.standing = stream("- they talked")
    chat.talk(game.actor, 20, text="y" * 795 + " {}")
    answer = chat.compact(game.actor, strategy=MODEL, backend_id="small", max_messages=2)
    assert (answer.failure, answer.folded) == (0, 18)
    assert max(len(request.said) for request in server.turns) < 4 * 1_024


def test_a_key_for_one_compaction_goes_to_its_backend(chat, game, server):
    server.standing = stream("- they talked")
    game.put_backend(base_url=server.base_url)
    chat.talk(game.actor, 10)
    chat.compact(game.actor, strategy=MODEL, backend_id="scripted", api_key="just once", max_messages=2)
    assert server.turns[-1].headers["authorization"] == "Bearer just once"
