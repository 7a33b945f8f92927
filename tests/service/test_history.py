"""Histories and transcripts over the socket: what is kept, for how long, and what is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from chat_client import Chat, cut
from client import failure

from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, memory_pb2

USER, CALL = chat_pb2.TRANSCRIPT_KIND_USER, chat_pb2.TRANSCRIPT_KIND_TOOL_CALL
RESULT = chat_pb2.TRANSCRIPT_KIND_TOOL_RESULT


def entry(kind=CALL, key="give", content="{}", **more):
    return chat_pb2.TranscriptEntry(kind=kind, key=key, content=content, **more)


def test_messages_are_read_oldest_first(chat, actor):
    chat.talk(actor, 5)
    assert chat.texts(actor) == [f"line {n}" for n in range(5)]


def test_a_page_holds_the_newest_messages_and_leads_to_older_ones(chat, actor):
    chat.talk(actor, 5)
    request = chat_pb2.ListMessagesRequest(actor=actor, page_size=2)
    newest = chat.stub.ListMessages(request)
    older = chat.stub.ListMessages(
        chat_pb2.ListMessagesRequest(actor=actor, page_size=2, page_token=newest.next_page_token)
    )
    oldest = chat.stub.ListMessages(
        chat_pb2.ListMessagesRequest(actor=actor, page_size=2, page_token=older.next_page_token)
    )
    pages = [[message.content for message in page.messages] for page in (newest, older, oldest)]
    assert pages == [["line 3", "line 4"], ["line 1", "line 2"], ["line 0"]]
    assert (newest.total, oldest.next_page_token) == (5, "")


def test_nothing_was_said_yet(chat, actor):
    assert chat.messages(actor) == []


def test_blank_messages_are_passed_over(chat, actor):
    answer = chat.append(actor, ("user", "  "), ("user", "hello"), ("assistant", "\n"))
    assert (answer.appended, answer.messages, chat.texts(actor)) == (1, 1, ["hello"])


def test_only_blank_messages_leave_no_trace(daemon, actor):
    assert Chat(daemon.client).append(actor, ("user", " "), persist=True).appended == 0
    assert list((daemon.folder / "saves").rglob("*.jsonl")) == []


def test_a_message_keeps_what_was_told_of_it(chat, actor):
    moment = common_pb2.Moment(timeline_id="world", tick=12, calendar_json='{"day":3}')
    message = chat_pb2.NewMessage(role="user", content="hi", input_id="in-1", speaker="Ada", moment=moment)
    chat.stub.AppendMessages(chat_pb2.AppendMessagesRequest(actor=actor, messages=[message]))
    (stored,) = chat.messages(actor)
    assert (stored.role, stored.input_id, stored.speaker, stored.moment) == ("user", "in-1", "Ada", moment)


def test_every_message_is_a_transcript_row_of_the_same_second(chat, actor):
    chat.append(actor, ("Assistant", "hello"), ("narrator", "dusk falls"))
    rows = chat.entries(actor)
    assert [row.kind for row in rows] == [chat_pb2.TRANSCRIPT_KIND_ASSISTANT, USER]
    assert [row.time for row in rows] == [message.time for message in chat.messages(actor)]
    assert all(row.message and row.time.nanos == 0 for row in rows)


def test_transcript_rows_keep_their_call_ids_and_are_no_messages(chat, actor):
    chat.record(actor, entry(call_id="c1"), entry(kind=RESULT, content="ok", call_id="c1"))
    assert [(row.kind, row.key, row.call_id) for row in chat.entries(actor)] == [
        (CALL, "give", "c1"),
        (RESULT, "give", "c1"),
    ]
    assert chat.messages(actor) == []


def test_two_windows_lie_over_one_list(start_daemon, actor):
    chat = Chat(start_daemon("--set", "chat.max_messages=2", "--set", "chat.max_transcript_rows=3").client)
    chat.append(actor, ("user", "chat_a"), ("assistant", "chat_b"))
    for number in range(6):
        chat.record(actor, entry(key=f"tool_{number}"))
    assert chat.texts(actor) == ["chat_a", "chat_b"]
    assert [row.key for row in chat.entries(actor)] == ["tool_3", "tool_4", "tool_5"]


def test_a_trim_is_told_with_what_went_and_what_stays(start_daemon, actor):
    chat = Chat(start_daemon("--set", "chat.max_messages=2", "--set", "chat.max_transcript_rows=3").client)
    chat.append(actor, ("user", "one"), ("assistant", "two"))
    answer = chat.append(actor, ("user", "three"))
    told = cut(answer, "history_cap")
    assert (answer.evicted, told.dropped, told.kept, told.unit) == (1, 1, 2, "messages")
    assert cut(answer, "transcript_cap") is None


@pytest.mark.parametrize(
    ("archive", "summary", "told"),
    [
        (True, True, "summary and"),
        (True, False, "held by the archive"),
        (False, True, "summary:"),
        (False, False, "gone"),
    ],
)
def test_it_is_told_where_messages_are_that_left_the_history(start_daemon, actor, archive, summary, told):
    chat = Chat(start_daemon("--set", "chat.max_messages=2").client)
    chat.put_role(actor.role_id, archive=archive, summary={"enabled": summary})
    assert told in cut(chat.talk(actor, 3, persist=True), "history_cap").detail


def test_a_first_trim_is_told_as_a_diagnostic_without_any_text(start_daemon, actor):
    daemon = start_daemon("--set", "chat.max_messages=2")
    chat = Chat(daemon.client)
    for number in range(5):
        chat.append(actor, ("user", f"secret {number}"))
    assert daemon.stop() == 0
    assert daemon.stderr.count("history_capped") == 1
    assert "secret" not in daemon.stderr


def test_what_leaves_the_history_is_in_the_summary_first(start_daemon, actor):
    chat = Chat(start_daemon("--set", "chat.max_messages=4").client)
    chat.put_role("Merchant", max_history_messages=2)
    for number in range(10):
        chat.append(actor, ("user", f"promise {number}"))
    kept, summary = chat.texts(actor), chat.summary(actor).text
    assert kept == [f"promise {number}" for number in range(6, 10)]
    assert all(f"- user: promise {number}" in summary for number in range(6))


def test_twenty_appends_make_no_memory_document(daemon, actor):
    chat = Chat(daemon.client)
    for number in range(20):
        chat.append(actor, ("user", f"line {number}"), persist=True)
    (file,) = (daemon.folder / "saves").rglob("history.jsonl")
    lines = file.read_text("utf-8").splitlines()
    assert [sum(f'"line {n}"' in line for line in lines) for n in range(20)] == [1] * 20
    assert list((daemon.folder / "saves").rglob("document.json")) == []


def test_a_persisted_history_is_there_after_a_restart(daemon, actor):
    chat = Chat(daemon.client)
    for _ in range(13):
        chat.talk(actor, 10, persist=True)
    before = chat.messages(actor)
    again = Chat(daemon.restart().client)
    assert again.messages(actor) == before
    assert len(again.entries(actor)) == 130


def test_a_role_decides_whether_its_history_survives(daemon):
    chat = Chat(daemon.client)
    kept, lost = (common_pb2.Actor(role_id=role) for role in ("SmartChat", "AINpc"))
    for actor in (kept, lost):
        chat.append(actor, ("user", "hello"))
    again = Chat(daemon.restart().client)
    assert (again.texts(kept), again.texts(lost)) == (["hello"], [])


def test_what_is_kept_for_this_process_never_reaches_the_disk(daemon, actor):
    chat = Chat(daemon.client)
    chat.append(actor, ("user", "before"), persist=True)
    chat.append(actor, ("user", "the secret word"), persist=False)
    chat.talk(actor, 60, persist=True)
    chat.compact(actor)
    chat.compact(actor, force=True)
    assert chat.texts(actor)[:3] == ["before", "the secret word", "line 0"]
    assert "secret" in chat.summary(actor).text
    files = [file.read_bytes() for file in daemon.folder.rglob("*") if file.is_file()]
    assert not any(b"secret" in content for content in files)
    again = Chat(daemon.restart().client)
    assert "the secret word" not in again.texts(actor)
    assert "secret" not in again.summary(actor).text


def test_a_history_of_this_process_makes_no_files(daemon, actor):
    Chat(daemon.client).append(actor, ("user", "hello"), persist=False)
    assert list(daemon.folder.rglob("a-*")) == []


def test_clearing_takes_the_summary_along_and_leaves_the_document(chat, actor, shared_daemon):
    shared_daemon.client.write(actor, "Ada likes fish.")
    chat.talk(actor, 40, persist=True)
    chat.compact(actor)
    answer = chat.clear(actor)
    assert (answer.messages, answer.entries, answer.summary_cleared) == (40, 40, True)
    assert (chat.messages(actor), chat.summary(actor).version) == ([], 0)
    assert shared_daemon.client.text(actor) == "Ada likes fish."


def test_a_cleared_history_goes_on_and_its_places_are_not_used_again(chat, actor):
    before = chat.append(actor, ("user", "one"), persist=True).last_order
    chat.clear(actor)
    assert chat.append(actor, ("user", "two"), persist=True).last_order > before
    assert chat.texts(actor) == ["two"]


def test_nothing_of_a_cleared_history_is_left_on_the_disk(daemon, actor):
    chat = Chat(daemon.client)
    chat.talk(actor, 300, text="the old story {}", persist=True)
    chat.compact(actor)
    chat.clear(actor, clear_archive=True)
    files = [file.read_bytes() for file in (daemon.folder / "saves").rglob("*") if file.is_file()]
    assert not any(b"old story" in content for content in files)
    assert Chat(daemon.restart().client).messages(actor) == []


def test_folded_messages_stay_in_the_archive_until_it_is_cleared_too(chat, actor):
    chat.talk(actor, 40, persist=True)
    chat.compact(actor)
    assert chat.clear(actor).archived == 0
    assert chat.clear(actor, clear_archive=True).archived > 0


def test_sixteen_appends_at_once_all_survive(daemon, actor):
    chat = Chat(daemon.client)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: chat.append(actor, ("user", f"line {n}"), persist=True), range(16)))
    before = chat.texts(actor)
    assert sorted(before) == sorted(f"line {n}" for n in range(16))
    assert Chat(daemon.restart().client).texts(actor) == before


def test_a_retry_with_the_same_key_adds_nothing_and_hears_the_same(daemon, actor):
    chat = Chat(daemon.client)
    first = chat.append(actor, ("user", "hello"), persist=True, idempotency_key="k1")
    assert chat.append(actor, ("user", "hello"), persist=True, idempotency_key="k1") == first
    again = Chat(daemon.restart().client)
    retried = again.append(actor, ("user", "hello"), persist=True, idempotency_key="k1")
    assert (retried.last_order, retried.appended) == (first.last_order, 1)
    assert again.texts(actor) == ["hello"]


def test_a_key_of_another_request_is_refused(chat, actor):
    chat.append(actor, ("user", "hello"), idempotency_key="k1")
    failed = failure(lambda: chat.append(actor, ("user", "bye"), idempotency_key="k1"))
    assert failed.kind == ("ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")
    assert chat.texts(actor) == ["hello"]


def test_a_retried_clear_removes_nothing_that_came_after(daemon, actor):
    chat = Chat(daemon.client)
    chat.append(actor, ("user", "old"), persist=True)
    first = chat.clear(actor, idempotency_key="c1")
    chat.append(actor, ("user", "new"), persist=True)
    again = Chat(daemon.restart().client)
    assert again.clear(actor, idempotency_key="c1").messages == first.messages == 1
    assert again.texts(actor) == ["new"]


def test_a_retried_clear_of_nothing_removes_nothing_that_came_after_a_kill(daemon, actor):
    chat = Chat(daemon.client)
    chat.clear(actor, idempotency_key="new game")
    chat.talk(actor, 2, persist=True)
    daemon.kill()
    chat = Chat(daemon.start().client)
    assert chat.clear(actor, idempotency_key="new game").messages == 0
    assert len(chat.texts(actor)) == 2


@pytest.mark.parametrize(
    ("message", "reason", "field"),
    [
        (chat_pb2.NewMessage(content="x"), "FIELD_REQUIRED", "messages[0].role"),
        (chat_pb2.NewMessage(role="user", content="x" * 1_000_001), "FIELD_TOO_LONG", "messages[0].content"),
        (chat_pb2.NewMessage(role="user", content="x", input_id="y" * 513), "FIELD_TOO_LONG", "messages[0].input_id"),
        (
            chat_pb2.NewMessage(role="user", content="x", moment=common_pb2.Moment(tick=1)),
            "FIELD_REQUIRED",
            "messages[0].moment.timeline_id",
        ),
    ],
)
def test_a_bad_message_is_refused_and_nothing_is_added(chat, actor, message, reason, field):
    request = chat_pb2.AppendMessagesRequest(
        actor=actor, messages=[message, chat_pb2.NewMessage(role="user", content="fine")]
    )
    failed = failure(lambda: chat.stub.AppendMessages(request))
    assert (failed.code.name, failed.reason, failed.fields) == ("INVALID_ARGUMENT", reason, (field,))
    assert chat.messages(actor) == []


def test_an_append_has_one_to_five_hundred_messages(chat, actor):
    assert failure(lambda: chat.append(actor)).kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")
    assert failure(lambda: chat.talk(actor, 501)).kind == ("INVALID_ARGUMENT", "TOO_MANY_ITEMS")


def test_a_transcript_row_must_say_what_it_tells(chat, actor):
    failed = failure(lambda: chat.record(actor, entry(kind=chat_pb2.TRANSCRIPT_KIND_UNSPECIFIED)))
    assert (failed.reason, failed.fields) == ("FIELD_INVALID", ("entries[0].kind",))


@pytest.mark.parametrize("token", ["nonsense", "YWZ0ZXI6MQ==", "€"])
def test_a_page_token_that_no_page_gave_is_refused(chat, actor, token):
    assert failure(lambda: chat.messages(actor, page_token=token)).reason == "PAGE_TOKEN_INVALID"


@pytest.mark.parametrize("size", [-1, 501])
def test_a_page_size_out_of_range_is_refused(chat, actor, size):
    assert failure(lambda: chat.messages(actor, page_size=size)).fields == ("page_size",)


def test_huge_messages_come_in_pages_that_a_client_can_receive(chat, actor):
    for number in range(6):
        chat.append(actor, ("user", f"{number}" + "ж" * 600_000))
    newest = chat.stub.ListMessages(chat_pb2.ListMessagesRequest(actor=actor))
    assert newest.ByteSize() < 4_000_000
    assert newest.messages[-1].content.startswith("5")
    assert newest.next_page_token


def test_the_messages_of_this_process_have_a_bound(start_daemon, actor):
    chat = Chat(start_daemon("--set", "chat.max_session_chars=1000").client)
    chat.append(actor, ("user", "x" * 500), persist=False)
    failed = failure(lambda: chat.append(actor, ("user", "x" * 500), persist=False))
    assert failed.kind == ("RESOURCE_EXHAUSTED", "SESSION_FULL")
    chat.append(actor, ("user", "x" * 5_000), persist=True)


def test_erasing_an_actor_erases_its_conversation(daemon, actor):
    chat = Chat(daemon.client)
    chat.talk(actor, 40, persist=True)
    chat.compact(actor)
    erased = daemon.client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=actor)).erased
    assert erased.summaries == 1
    assert erased.messages > 40
    assert (chat.messages(actor), chat.summary(actor).version) == ([], 0)


def test_in_session_mode_nothing_of_a_conversation_touches_the_disk(start_daemon, actor):
    daemon = start_daemon("--set", "storage.mode=session")
    chat = Chat(daemon.client)
    chat.talk(actor, 60, text="the secret {}", persist=True)
    assert chat.compact(actor).compacted
    assert chat.texts(actor)[0] == "the secret 0"
    assert not any(b"secret" in file.read_bytes() for file in daemon.folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("before", [0, 1, 2])
def test_more_messages_at_once_than_a_history_holds_are_folded_and_none_is_lost(start_daemon, actor, before):
    daemon = start_daemon("--set", "chat.max_messages=2", "--set", "chat.max_transcript_rows=3")
    chat = Chat(daemon.client)
    chat.talk(actor, before, persist=True) if before else None
    answer = chat.talk(actor, 5, first=before, persist=True, idempotency_key="k")
    assert (answer.appended, answer.messages, answer.evicted) == (5, 2, 3 + before)
    chat = Chat(daemon.restart().client)
    assert chat.texts(actor) == [f"line {number}" for number in (before + 3, before + 4)]
    said = chat.summary(actor).text
    assert [said.count(f": line {number}") for number in range(before + 5)] == [1] * (before + 3) + [0, 0]
    assert chat.talk(actor, 5, first=before, persist=True, idempotency_key="k").evicted == 3 + before
    assert chat.clear(actor, clear_archive=True).archived == before + 3


def test_a_page_may_be_larger_than_what_is_kept(start_daemon, actor):
    chat = Chat(start_daemon("--set", "chat.max_messages=2", "--set", "chat.max_transcript_rows=3").client)
    chat.talk(actor, 2)
    assert len(chat.messages(actor, page_size=500)) == len(chat.entries(actor, page_size=2_000)) == 2
    assert failure(lambda: chat.messages(actor, page_size=501)).fields == ("page_size",)


def test_too_many_messages_at_once_name_the_limit(chat, actor):
    told = failure(lambda: chat.talk(actor, 501))
    assert (told.kind, told.fields) == (("INVALID_ARGUMENT", "TOO_MANY_ITEMS"), ("messages",))
    assert told.metadata == {"limit": "chat.max_batch", "value": "500"}


def test_what_folding_before_a_loss_cuts_is_told_also_to_a_retry(start_daemon, actor):
    daemon = start_daemon("--set", "chat.max_messages=60")
    chat, npc = Chat(daemon.client), common_pb2.Actor(save_id=actor.save_id, role_id="Chronicler")
    chat.put_role("Chronicler", persist_history=True, summary={"max_summary_tokens": 200})
    chat.talk(npc, 60, text="x" * 400 + " {}")
    first = chat.talk(npc, 20, first=60, text="y" * 400 + " {}", idempotency_key="k")
    assert {cut.what: cut.dropped > 0 for cut in first.cuts} == {"history_cap": True, "bullet": True, "summary": True}
    daemon.restart()
    again = Chat(daemon.client).talk(npc, 20, first=60, text="y" * 400 + " {}", idempotency_key="k")
    assert list(again.cuts) == list(first.cuts)
