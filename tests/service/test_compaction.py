"""Compaction over the socket: what is folded, kept, told, and what happens to broken summaries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from chat_client import SUMMARY, Chat, cut, parts
from client import failure
from turn_client import TurnClient
from wire_server import stream

from sidecar.gen.lorekeeper.v1 import common_pb2, compaction_pb2, memory_pb2, role_pb2

MESSAGES = compaction_pb2.COMPACTION_TRIGGER_MESSAGES
TOKENS = compaction_pb2.COMPACTION_TRIGGER_TOKENS
DETERMINISTIC = compaction_pb2.COMPACTION_STRATEGY_DETERMINISTIC
MODEL = compaction_pb2.COMPACTION_STRATEGY_MODEL


def held(role, content, *, calls=(), answers=""):
    return compaction_pb2.CompactMessage(role=role, content=content, tool_call_ids=calls, answers_call_id=answers)


def held_talk(count):
    return [held(("user", "assistant")[n % 2], f"line {n}") for n in range(count)]


def test_a_history_that_fits_is_left_alone(chat, actor):
    chat.talk(actor, 7)
    chat.put_summary(actor, "existing summary")
    answer = chat.compact(actor)
    assert (answer.compacted, answer.folded, answer.trigger) == (False, 0, 0)
    assert (answer.summary.text, answer.summary.version) == ("existing summary", 1)
    assert answer.window.sent == 7


def test_folding_goes_on_where_it_ended(chat, actor):
    chat.talk(actor, 40)
    first = chat.compact(actor)
    assert chat.compact(actor).compacted is False
    chat.talk(actor, 20, first=40)
    second = chat.compact(actor)
    lines = second.summary.text.splitlines()
    assert (first.trigger, second.trigger) == (MESSAGES, MESSAGES)
    assert first.folded + second.folded == 60 - second.window.sent
    assert [lines.count(f"- {('user', 'assistant')[n % 2]}: line {n}") for n in range(60 - second.window.sent)] == [
        1
    ] * (60 - second.window.sent)


def test_a_token_budget_folds_too(chat, actor):
    chat.talk(actor, 10, text="x" * 400 + " {}")
    answer = chat.compact(actor, history_tokens=250)
    assert (answer.trigger, answer.window.sent) == (TOKENS, 2)
    assert answer.after.tokens < answer.before.tokens


def test_the_window_that_is_told_is_the_window_that_is_sent(chat, actor):
    chat.talk(actor, 45)
    preview = chat.preview(actor, include_messages=True)
    prompt = chat.prompt(actor, "Hi")
    assert preview.would_fold == chat.compact(actor).folded
    assert [message.content for message in preview.messages] == [
        message.content for message in prompt.messages if message.content.startswith("line")
    ]
    assert preview.window.sent == prompt.window.sent == len(preview.messages)


def test_a_role_without_summaries_folds_nothing_and_has_no_reason_to(chat, actor):
    chat.put_role(actor.actor_id, summary={"enabled": False})
    nobody = common_pb2.Actor(save_id=actor.save_id, role_id=actor.actor_id)
    chat.talk(nobody, 40)
    for answer in (chat.compact(nobody), chat.preview(nobody)):
        assert (answer.trigger, answer.window.folded) == (0, 0)
        assert answer.window.left_out == 40 - answer.window.sent > 0


def test_a_preview_writes_nothing(chat, actor):
    chat.talk(actor, 45)
    assert chat.preview(actor).would_fold > 0
    assert chat.summary(actor).version == 0


def test_a_forced_compaction_leaves_the_last_exchange(chat, actor):
    chat.talk(actor, 10)
    answer = chat.compact(actor, force=True)
    assert (answer.folded, answer.window.sent) == (8, 2)
    assert answer.trigger == compaction_pb2.COMPACTION_TRIGGER_FORCED


def test_a_forced_compaction_keeps_as_many_as_the_call_says(chat, actor):
    chat.talk(actor, 10)
    assert chat.compact(actor, force=True, max_messages=4).window.sent == 4


def test_compacting_again_and_again_gives_the_same_summary(chat, actor):
    chat.talk(actor, 60)
    chat.compact(actor)
    before = chat.summary(actor)
    for _ in range(10):
        chat.compact(actor)
    assert chat.summary(actor) == before


def test_many_compactions_at_once_fold_each_message_once(chat, actor):
    chat.talk(actor, 60)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: chat.compact(actor), range(8)))
    lines = chat.summary(actor).text.splitlines()
    assert sum(answer.compacted for answer in answers) == 1
    assert len(lines) == len(set(lines)) == 1 + max(answer.folded for answer in answers)


def test_where_no_model_can_write_summaries_that_is_told(chat, actor):
    chat.talk(actor, 45)
    answer = chat.compact(actor, strategy=MODEL)
    assert (answer.strategy, answer.failure) == (DETERMINISTIC, compaction_pb2.COMPACTION_FAILURE_SUMMARY_FAILED)
    assert cut(answer, "summariser").dropped == answer.folded


@pytest.mark.parametrize("fields", [{}, {"strategy": MODEL}, {"strategy": DETERMINISTIC}, {"messages": held_talk(4)}])
def test_a_backend_that_is_not_known_is_refused_however_the_summary_is_written(chat, actor, fields):
    chat.talk(actor, 40)
    refused = failure(lambda: chat.compact(actor, backend_id="nowhere", **fields))
    assert (*refused.kind, refused.fields) == ("NOT_FOUND", "BACKEND_NOT_FOUND", ("backend_id",))
    assert chat.summary(actor).version == 0


def test_a_compaction_by_rule_asks_for_no_model(chat, actor):
    chat.talk(actor, 45)
    answer = chat.compact(actor, strategy=DETERMINISTIC)
    assert (answer.failure, answer.attempts, cut(answer, "summariser")) == (0, 0, None)


def test_the_summary_keeps_to_the_roles_cap(chat, actor):
    chat.put_role("Scribe", summary=role_pb2.SummaryOptions(max_summary_tokens=18))
    scribe = common_pb2.Actor(role_id="Scribe", actor_id=actor.actor_id)
    chat.talk(scribe, 40, text="a line of about fifty characters for the test {}")
    answer = chat.compact(scribe)
    assert answer.summary.text.startswith("…")
    assert answer.summary.count.tokens <= 18
    assert answer.summary.has_fold_marker
    assert cut(answer, "summary").unit == "tokens"


def test_no_marker_is_ever_shown(chat, actor):
    chat.talk(actor, 45)
    assert "[fold:" not in chat.compact(actor).summary.text
    assert "[fold:" not in chat.summary(actor).text
    assert "[fold:" not in str(chat.prompt(actor, "Hi"))


def test_a_summary_survives_a_restart_and_folding_goes_on(daemon, actor):
    chat = Chat(daemon.client)
    chat.talk(actor, 45, persist=True)
    chat.compact(actor)
    before = chat.summary(actor)
    again = Chat(daemon.restart().client)
    assert again.summary(actor) == before
    assert again.compact(actor).compacted is False


def test_a_put_summary_keeps_what_was_folded_folded(chat, actor):
    chat.talk(actor, 45)
    folded = chat.compact(actor).folded
    put = chat.put_summary(actor, "They met at the harbour.").summary
    assert (put.version, put.has_fold_marker) == (2, True)
    assert parts(chat.prompt(actor, "Hi"), SUMMARY)[0].count("They met at the harbour.") == 1
    assert chat.compact(actor).window.folded == folded


def test_a_put_summary_without_its_marker_folds_all_again(chat, actor):
    chat.talk(actor, 45)
    folded = chat.compact(actor).folded
    assert not chat.put_summary(actor, "New start.", drop_fold_marker=True).summary.has_fold_marker
    assert chat.preview(actor).would_fold == folded


def test_a_stale_version_changes_nothing(chat, actor):
    chat.put_summary(actor, "one")
    failed = failure(lambda: chat.put_summary(actor, "two", expected_version=0))
    assert (failed.kind, failed.metadata["current_version"]) == (("ABORTED", "VERSION_MISMATCH"), "1")
    assert chat.summary(actor).text == "one"


def test_a_retried_put_hears_the_same_and_changes_nothing(daemon, actor):
    chat = Chat(daemon.client)
    first = chat.put_summary(actor, "one", idempotency_key="k")
    chat.put_summary(actor, "two")
    retried = Chat(daemon.restart().client).put_summary(actor, "one", idempotency_key="k")
    assert (retried.summary.version, retried.summary.text) == (first.summary.version, "one")
    assert Chat(daemon.client).summary(actor).text == "two"


def test_compactions_with_one_key_at_once_hear_the_same(chat, actor):
    chat.talk(actor, 200)
    with ThreadPoolExecutor(6) as callers:
        first, *others = callers.map(lambda _: chat.compact(actor, idempotency_key="k"), range(6))
    assert first.folded > 0
    assert all(other == first for other in others)


@pytest.mark.parametrize("first", ["one", ""])
def test_a_put_that_is_retried_brings_nothing_back_and_removes_nothing(daemon, actor, first):
    chat = Chat(daemon.client)
    chat.put_summary(actor, "zero")
    chat.put_summary(actor, first, idempotency_key="k")
    chat.clear_summary(actor)
    if not first:
        chat.put_summary(actor, "two")
    chat.put_summary(actor, first, idempotency_key="k")
    Chat(daemon.restart().client).put_summary(actor, first, idempotency_key="k")
    assert Chat(daemon.client).summary(actor).text == ("" if first else "two")


def test_a_put_that_is_retried_after_the_history_was_cleared_brings_nothing_back(chat, actor):
    chat.put_summary(actor, "one", idempotency_key="k")
    chat.clear(actor)
    chat.put_summary(actor, "one", idempotency_key="k")
    assert chat.summary(actor).version == 0


def test_a_retried_compaction_tells_nothing_of_an_actor_that_was_erased(chat, actor, shared_daemon):
    chat.talk(actor, 45)
    assert chat.compact(actor, idempotency_key="k").summary.text
    shared_daemon.client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=actor))
    assert chat.compact(actor, idempotency_key="k").summary.text == ""


def test_a_retried_compaction_hears_the_same(chat, actor):
    chat.talk(actor, 45)
    first = chat.compact(actor, idempotency_key="k")
    assert first.compacted
    assert chat.compact(actor, idempotency_key="k") == first


def test_a_cleared_summary_is_made_anew_from_the_history(chat, actor):
    chat.talk(actor, 45)
    first = chat.compact(actor)
    assert chat.clear_summary(actor).existed
    assert not chat.clear_summary(actor).existed
    assert chat.compact(actor).summary.text == first.summary.text


def test_a_retried_clear_hears_the_same(chat, actor):
    chat.put_summary(actor, "one")
    assert chat.clear_summary(actor, idempotency_key="k").existed
    chat.put_summary(actor, "two")
    assert chat.clear_summary(actor, idempotency_key="k").existed
    assert chat.summary(actor).text == "two"


def test_a_retried_clear_removes_nothing_that_came_after_a_kill(daemon, actor):
    chat = Chat(daemon.client)
    chat.put_summary(actor, "one")
    chat.clear_summary(actor, idempotency_key="k")
    chat.put_summary(actor, "two")
    daemon.kill()
    chat = Chat(daemon.start().client)
    assert chat.clear_summary(actor, idempotency_key="k").existed
    assert chat.summary(actor).text == "two"


def test_a_blank_summary_is_none(chat, actor):
    chat.put_summary(actor, "one")
    chat.put_summary(actor, "  ")
    assert chat.summary(actor).version == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format":1}', b'{"Summary":7}', b"\xff"])
def test_a_summary_that_cannot_be_read_is_told_and_left_alone(daemon, actor, content):
    chat = Chat(daemon.client)
    chat.talk(actor, 45, persist=True)
    chat.compact(actor)
    assert daemon.stop() == 0
    (file,) = (daemon.folder / "saves").rglob("summary.json")
    file.write_bytes(content)
    chat = Chat(daemon.start().client)
    for call in (
        lambda: chat.summary(actor),
        lambda: chat.compact(actor),
        lambda: chat.prompt(actor, "Hi"),
        lambda: chat.put_summary(actor, "new"),
    ):
        assert failure(call).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert file.read_bytes() == content
    assert len(chat.texts(actor)) == 45
    assert chat.clear_summary(actor).existed
    assert chat.compact(actor).compacted


def test_a_role_without_summaries_needs_none_that_can_be_read(daemon, actor):
    chat = Chat(daemon.client)
    chat.put_summary(actor, "They met.")
    assert daemon.stop() == 0
    (file,) = (daemon.folder / "saves").rglob("summary.json")
    file.write_bytes(b"{")
    chat = Chat(daemon.start().client)
    chat.put_role(actor.role_id, summary={"enabled": False})
    assert chat.prompt(actor, "Hi").messages


def test_a_role_without_the_memory_tool_needs_no_document_that_can_be_read(daemon, actor, server):
    """Neither its turns nor its compactions: both store what they made."""
    game = TurnClient(daemon.client, actor)
    daemon.client.write(game.actor, "Likes fish.")
    assert daemon.stop() == 0
    (file,) = (daemon.folder / "saves").rglob("document.json")
    file.write_bytes(b"{")
    game, chat = TurnClient(daemon.start().client, actor, server), Chat(daemon.client)
    server.standing = stream("Hello.")
    game.put_role(memory_tool=False)
    assert (game.send("Hi").completed.text, game.messages()[-1]) == ("Hello.", ("assistant", "Hello."))
    chat.talk(game.actor, 50)
    assert chat.compact(game.actor, strategy=DETERMINISTIC).compacted


def test_a_broken_history_is_the_loss_of_one_actor_alone(daemon, actor):
    chat, other = Chat(daemon.client), common_pb2.Actor(actor_id="other")
    for who in (actor, other):
        chat.talk(who, 5, persist=True)
    assert daemon.stop() == 0
    file = next(f for f in (daemon.folder / "saves").rglob("history.jsonl"))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0], b"garbage\n", *lines[2:]]))
    before = file.read_bytes()
    chat = Chat(daemon.start().client)
    lost = [who for who in (actor, other) if not _readable(chat, who)]
    assert len(lost) == 1
    assert failure(lambda: chat.talk(lost[0], 1)).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert file.read_bytes() == before
    chat.clear(lost[0])
    assert chat.texts(lost[0]) == []


def _readable(chat, actor):
    try:
        return bool(chat.messages(actor))
    except Exception:
        return False


def test_a_torn_last_line_is_cut_off_and_told(daemon, actor):
    chat = Chat(daemon.client)
    chat.append(actor, ("user", "one"), persist=True)
    chat.append(actor, ("user", "two"), persist=True)
    assert daemon.stop() == 0
    (file,) = (daemon.folder / "saves").rglob("history.jsonl")
    file.write_bytes(file.read_bytes()[:-9])
    chat = Chat(daemon.start().client)
    assert chat.texts(actor) == ["one"]
    chat.append(actor, ("user", "three"), persist=True)
    assert len(file.read_bytes().splitlines()) == 2
    assert "journal_torn" in daemon.stderr


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"history_tokens": 31}, "history_tokens"),
        ({"max_messages": 0}, "max_messages"),
        ({"messages": held_talk(3), "target_messages": 0}, "target_messages"),
        ({"messages": held_talk(3), "max_attempts": 11}, "max_attempts"),
        ({"messages": [held("user", "x")] * 2_001}, "messages"),
    ],
)
def test_a_number_out_of_range_is_named(chat, actor, fields, path):
    assert failure(lambda: chat.compact(actor, **fields)).fields == (path,)


def test_a_summary_that_is_put_has_a_longest_length(chat, actor):
    assert failure(lambda: chat.put_summary(actor, "x" * 200_001)).fields == ("text",)


def test_a_conversation_that_the_game_holds_is_answered_and_not_stored(chat, actor):
    answer = chat.compact(actor, messages=held_talk(20), target_messages=6)
    assert (answer.compacted, answer.messages[0].role) == (True, "user")
    assert [message.content for message in answer.messages[1:]] == [f"line {n}" for n in range(16, 20)]
    assert answer.messages[0].content.count("line") == 16 == answer.cut_index
    assert (chat.messages(actor), chat.summary(actor).version) == ([], 0)


def test_a_held_conversation_within_its_target_stays_as_it_is(chat, actor):
    messages = held_talk(5)
    answer = chat.compact(actor, messages=messages, target_messages=5)
    assert (answer.compacted, list(answer.messages)) == (False, messages)


def test_a_prior_summary_is_carried_on(chat, actor):
    answer = chat.compact(actor, messages=held_talk(20), target_messages=6, prior_summary="They met.")
    assert answer.messages[0].content.startswith("They met.\n- user: line 0")


def test_a_held_summary_is_told_apart_and_is_carried_on_without_being_folded_again(chat, actor):
    first = chat.compact(actor, messages=held_talk(20), target_messages=6)
    assert (first.messages[0].summary, first.messages[0].summarised_messages) == (True, 16)
    longer = [*first.messages, *held_talk(30)[20:]]
    again = chat.compact(actor, messages=longer, target_messages=6).messages[0]
    assert (again.summary, again.summarised_messages) == (True, 26)
    assert again.content.startswith(f"{first.messages[0].content}\n- user: line 16\n")
    assert [again.content.count(f": line {number}\n") for number in range(25)] == [1] * 25


def test_a_bound_that_is_broken_is_named_with_its_value(chat, actor):
    told = failure(lambda: chat.compact(actor, history_tokens=31))
    assert (told.fields, told.metadata) == (("history_tokens",), {"limit": "history_tokens", "value": "32"})
    told = failure(lambda: chat.compact(actor, messages=held_talk(2), max_attempts=11))
    assert (told.fields, told.metadata) == (("max_attempts",), {"limit": "max_attempts", "value": "10"})


def test_tool_calls_must_pair_with_their_answers(chat, actor):
    for messages in (
        [held("assistant", "", calls=["a"])],
        [held("tool", "x", answers="a")],
        [held("assistant", "", calls=["a", "a"]), held("tool", "x", answers="a")],
    ):
        assert failure(lambda messages=messages: chat.compact(actor, messages=messages)).reason == "FIELD_INVALID"


def test_tokens_are_counted_and_the_counter_is_told(chat):
    answer = chat.count("abcd" * 10, "", "ж" * 10)
    assert list(answer.tokens) == [10, 0, 4]
    assert (answer.total.tokens, answer.total.counter) == (14, common_pb2.TOKEN_COUNTER_CALIBRATED)
    assert answer.scale == 1.0
    assert list(chat.count("ж" * 10, counter=common_pb2.TOKEN_COUNTER_HEURISTIC).tokens) == [3]


def test_an_exact_count_without_a_tokenizer_is_refused(chat):
    failed = failure(lambda: chat.count("x", counter=common_pb2.TOKEN_COUNTER_EXACT))
    assert failed.kind == ("FAILED_PRECONDITION", "TOKENIZER_UNUSABLE")


def test_nothing_and_too_much_cannot_be_counted(chat):
    assert failure(lambda: chat.count()).reason == "FIELD_REQUIRED"
    assert failure(lambda: chat.count(*["x"] * 4_097)).reason == "TOO_MANY_ITEMS"
    assert failure(lambda: chat.count("x" * 4_000_001)).reason == "FIELD_TOO_LONG"


def test_a_tokenizer_that_cannot_be_used_is_told_and_an_estimate_counts(start_daemon, tmp_path, actor):
    file = tmp_path / "tokenizer.json"
    file.write_bytes(b"{}")
    chat = Chat(start_daemon("--set", f"compaction.tokenizer_path={file}").client)
    prompt = chat.prompt(actor, "Hi")
    assert prompt.total.counter == common_pb2.TOKEN_COUNTER_CALIBRATED
    assert cut(prompt, "tokenizer")
