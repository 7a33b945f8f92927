"""Documents over the socket: versions, reverts, resets, batches, keys, pages, and what is refused."""

from __future__ import annotations

import pytest
from client import append, delete, failure, insert, rename, str_replace, write

from sidecar.gen.lorekeeper.v1 import chat_pb2, chat_pb2_grpc, common_pb2, memory_pb2, role_pb2


def revert(client, actor, version, **more):
    return client.memory.RevertDocument(memory_pb2.RevertDocumentRequest(actor=actor, version=version, **more))


def reset(client, actor, **more):
    return client.memory.ResetDocument(memory_pb2.ResetDocumentRequest(actor=actor, **more))


def at_version(client, actor, version):
    return client.memory.GetDocument(memory_pb2.GetDocumentRequest(actor=actor, version=version))


def test_an_actor_without_a_document_has_an_empty_one_that_is_not_found(client, actor):
    document = client.read(actor)
    assert (document.text, document.version, document.length, document.versions_kept) == ("", 0, 0, 0)
    assert document.status == common_pb2.LOAD_STATUS_NOT_FOUND
    assert not document.HasField("updated")


def test_a_document_has_text_version_length_and_time(client, actor):
    client.write(actor, "日本語 😀")
    document = client.read(actor)
    assert (document.text, document.version, document.length) == ("日本語 😀", 1, 5)
    assert document.status == common_pb2.LOAD_STATUS_LOADED
    assert document.updated.seconds > 1_700_000_000


def test_versions_are_listed_oldest_first_with_action_note_and_length(client, actor):
    client.write(actor, "Test memory content")
    client.edit(actor, str_replace("memory ", ""))
    client.edit(actor, append("x"), append("y"))
    listed = client.versions(actor).versions
    assert [(one.version, one.note, one.length) for one in listed] == [
        (1, "chars 0->19 (+19)", 19),
        (2, "chars 19->12 (-7)", 12),
        (3, "chars 12->16 (+4)", 16),
    ]
    assert [one.action for one in listed] == [
        memory_pb2.DOCUMENT_ACTION_WRITE,
        memory_pb2.DOCUMENT_ACTION_STR_REPLACE,
        memory_pb2.DOCUMENT_ACTION_BATCH,
    ]
    assert not listed[0].HasField("content")


def test_an_older_version_can_be_read(client, actor):
    client.write(actor, "one")
    client.write(actor, "two")
    assert (at_version(client, actor, 1).text, at_version(client, actor, 2).text) == ("one", "two")
    assert [one.content for one in client.versions(actor, include_content=True).versions] == ["one", "two"]


def test_thirty_versions_are_kept_and_numbers_go_on(client, actor):
    for number in range(1, 36):
        client.write(actor, str(number))
    assert [one.version for one in client.versions(actor).versions] == list(range(6, 36))
    assert failure(lambda: at_version(client, actor, 5)).kind == ("NOT_FOUND", "VERSION_NOT_FOUND")


def test_versions_come_in_pages(client, actor):
    for number in range(1, 6):
        client.write(actor, str(number))
    seen, token = [], ""
    while True:
        page = client.versions(actor, page_size=2, page_token=token)
        seen.append([one.version for one in page.versions])
        token = page.next_page_token
        if not token:
            break
    assert seen == [[1, 2], [3, 4], [5]]


@pytest.mark.parametrize(("size", "token", "reason", "field"), [
    (-1, "", "FIELD_INVALID", "page_size"),
    (1_001, "", "FIELD_INVALID", "page_size"),
    (0, "no token", "PAGE_TOKEN_INVALID", "page_token"),
    (0, "é", "PAGE_TOKEN_INVALID", "page_token"),
    (0, "////", "PAGE_TOKEN_INVALID", "page_token"),
])  # fmt: skip
def test_a_page_that_cannot_be_is_refused(client, actor, size, token, reason, field):
    told = failure(lambda: client.versions(actor, page_size=size, page_token=token))
    assert (*told.kind, told.fields) == ("INVALID_ARGUMENT", reason, (field,))


def test_a_page_of_versions_with_content_stays_below_what_clients_take(start_daemon, actor):
    daemon = start_daemon()
    for number in range(8):
        daemon.client.write(actor, str(number) + "😀" * 199_000)
    seen, token = [], ""
    while True:
        page = daemon.client.versions(actor, include_content=True, page_token=token)
        assert page.ByteSize() < 4 * 1024 * 1024
        seen += [one.version for one in page.versions]
        token = page.next_page_token
        if not token:
            break
    assert seen == list(range(1, 9))


def test_a_revert_is_a_new_version_with_the_old_text(client, actor):
    client.write(actor, "one")
    client.write(actor, "two")
    response = revert(client, actor, 1)
    assert (response.version, response.length, response.changed) == (3, 3, True)
    newest = client.versions(actor).versions[-1]
    assert (client.text(actor), newest.action) == ("one", memory_pb2.DOCUMENT_ACTION_REVERT)
    assert newest.note == "Reverted to version 1."


def test_a_revert_to_a_version_that_is_not_kept_is_not_found(client, actor):
    client.write(actor, "one")
    assert failure(lambda: revert(client, actor, 9)).kind == ("NOT_FOUND", "VERSION_NOT_FOUND")
    assert client.read(actor).version == 1


def test_a_reset_forgets_document_and_versions_and_numbers_begin_again(client, actor):
    client.write(actor, "one")
    assert reset(client, actor).existed is True
    assert client.read(actor).status == common_pb2.LOAD_STATUS_NOT_FOUND
    assert client.versions(actor).versions == []
    assert reset(client, actor).existed is False
    assert client.write(actor, "two").version == 1


def test_the_revision_rises_with_every_change_and_with_nothing_else(client, actor):
    actor.save_id = actor.actor_id
    assert client.read(actor).save.revision == 0
    first = client.write(actor, "one").save.revision
    assert client.write(actor, "one").save.revision == first
    assert client.read(actor).save.revision == first
    assert client.write(actor, "two").save.revision == first + 1
    assert reset(client, actor).save.revision == first + 2


EXPECTING = {
    "edit": lambda client, actor, **more: client.write(actor, "new", **more),
    "revert": lambda client, actor, **more: revert(client, actor, 1, **more),
    "reset": reset,
}


@pytest.mark.parametrize("call", EXPECTING.values(), ids=EXPECTING)
def test_a_stale_expected_version_is_aborted_and_changes_nothing(client, actor, call):
    client.write(actor, "one")
    client.write(actor, "two")
    told = failure(lambda: call(client, actor, expected_version=1))
    assert (*told.kind, told.metadata["current_version"]) == ("ABORTED", "VERSION_MISMATCH", "2")
    assert (client.text(actor), client.read(actor).version) == ("two", 2)


@pytest.mark.parametrize("call", EXPECTING.values(), ids=EXPECTING)
def test_the_right_expected_version_lets_the_call_pass(client, actor, call):
    client.write(actor, "one")
    client.write(actor, "two")
    call(client, actor, expected_version=2)
    assert client.text(actor) != "two"


def test_an_expected_version_of_zero_means_that_there_is_no_document_yet(client, actor):
    assert client.write(actor, "one", expected_version=0).version == 1
    assert failure(lambda: client.write(actor, "two", expected_version=0)).code.name == "ABORTED"


@pytest.mark.parametrize("call", [
    lambda client, actor, **more: client.edit(actor, insert("x"), **more),
    lambda client, actor, **more: revert(client, actor, 1, **more),
    reset,
], ids=["edit", "revert", "reset"])  # fmt: skip
def test_a_repeat_with_its_key_hears_the_first_answer_also_after_a_kill(daemon, actor, call):
    daemon.client.write(actor, "one")
    daemon.client.write(actor, "two")
    first = call(daemon.client, actor, idempotency_key="key", expected_version=2)
    text = daemon.client.text(actor)
    daemon.kill()
    daemon.restart()
    again = call(daemon.client, actor, idempotency_key="key", expected_version=2)
    again.save.CopyFrom(first.save)
    assert (again, daemon.client.text(actor)) == (first, text)


def test_a_key_for_another_request_already_exists_and_changes_nothing(client, actor):
    client.write(actor, "one", idempotency_key="key")
    for call in (
        lambda: client.write(actor, "two", idempotency_key="key"),
        lambda: revert(client, actor, 1, idempotency_key="key"),
        lambda: reset(client, actor, idempotency_key="key"),
    ):
        assert failure(call).kind == ("ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")
    assert client.text(actor) == "one"


def test_a_key_belongs_to_its_actor(client, actor):
    other = common_pb2.Actor(save_id=actor.save_id, actor_id=actor.actor_id + " other")
    client.write(actor, "one", idempotency_key="key")
    assert client.write(other, "two", idempotency_key="key").version == 1


def test_a_key_of_any_letters_may_have_512_of_them_and_not_more(client, actor):
    client.write(actor, "one", idempotency_key="\x00é😀" + "k" * 509)
    told = failure(lambda: client.write(actor, "two", idempotency_key="k" * 513))
    assert (*told.kind, told.fields) == ("INVALID_ARGUMENT", "FIELD_TOO_LONG", ("idempotency_key",))


def test_a_batch_is_all_or_nothing_and_tells_which_edit_failed_and_what_stands_near(client, actor):
    client.write(actor, "The inn is The Owl.\nThe smith is Bran.")
    told = failure(lambda: client.edit(actor, append("new"), delete("The smith is bran"), append("newer")))
    assert told.kind == ("NOT_FOUND", "NOT_FOUND")
    assert told.fields == ("edits[1].delete.old_text",)
    assert (told.edit.edit_index, told.edit.reason, told.edit.current_version) == (1, "NOT_FOUND", 1)
    assert told.edit.length == len("The inn is The Owl.\nThe smith is Bran.")
    assert (told.edit.nearest_lines[0], told.edit.nearest_line_numbers[0]) == ("The smith is Bran.", 2)
    assert client.text(actor) == "The inn is The Owl.\nThe smith is Bran."


def test_an_edit_of_a_batch_may_look_for_what_an_earlier_one_wrote(client, actor):
    assert client.edit(actor, append("one"), str_replace("one", "two"), append("three")).version == 1
    assert client.text(actor) == "two\nthree"


def test_the_details_of_a_failure_fit_into_headers_whatever_the_lines_are(client, actor):
    line = "😀" * 5_000
    client.write(actor, "\n".join([line] * 5))
    told = failure(lambda: client.edit(actor, delete("😀" * 5_001)))
    assert len(told.edit.nearest_lines) == 3
    assert told.edit.nearest_lines[0].endswith("chars]")


WRONG = [
    ([], "FIELD_REQUIRED", "edits"),
    ([memory_pb2.Edit()], "ACTION_REQUIRED", "edits[0]"),
    ([append("a"), write("")], "CONTENT_REQUIRED", "edits[1].write.content"),
    ([append("")], "CONTENT_REQUIRED", "edits[0].append.content"),
    ([insert("")], "CONTENT_REQUIRED", "edits[0].insert.content"),
    ([insert("x", line=0)], "LINE_NOT_POSITIVE", "edits[0].insert.line"),
    ([insert("x", line=-(2**31))], "LINE_NOT_POSITIVE", "edits[0].insert.line"),
    ([str_replace("", "x")], "OLD_TEXT_REQUIRED", "edits[0].str_replace.old_text"),
    ([delete("")], "OLD_TEXT_REQUIRED", "edits[0].delete.old_text"),
    ([rename("", "x")], "OLD_TEXT_REQUIRED", "edits[0].rename.old_label"),
    ([rename("one", "")], "NEW_TEXT_REQUIRED", "edits[0].rename.new_label"),
    ([rename("one", " : ")], "LABEL_BLANK", "edits[0].rename.new_label"),
    ([write("nul \0")], "FIELD_INVALID", "edits[0].write.content"),
    ([append("bell \a")], "FIELD_INVALID", "edits[0].append.content"),
    ([str_replace("one", "\x1b[0m")], "FIELD_INVALID", "edits[0].str_replace.new_text"),
    ([append("a")] * 10_000, "TOO_MANY_ITEMS", "edits"),
]


@pytest.mark.parametrize(("edits", "reason", "field"), WRONG, ids=[f"{row[1]} {row[2]}" for row in WRONG])
def test_a_wrong_edit_is_refused_with_the_path_of_its_field_and_changes_nothing(client, actor, edits, reason, field):
    client.write(actor, "one: 1")
    told = failure(lambda: client.edit(actor, *edits))
    assert (*told.kind, told.domain, told.fields) == ("INVALID_ARGUMENT", reason, "lorekeeper", (field,))
    assert told.message
    assert (client.text(actor), client.read(actor).version) == ("one: 1", 1)


def test_a_limit_that_is_hit_is_named_with_its_value(client, actor):
    told = failure(lambda: client.edit(actor, *[append("a")] * 257))
    assert told.metadata == {"limit": "memory.max_edits", "value": "256"}


@pytest.mark.parametrize("length", [200_001, 20_000_000])
def test_a_document_that_is_too_long_is_refused(client, actor, length):
    client.write(actor, "one")
    told = failure(lambda: client.write(actor, "x" * length))
    assert told.kind == ("RESOURCE_EXHAUSTED", "DOCUMENT_TOO_LARGE")
    assert told.metadata["limit"] == "memory.max_document_chars"
    assert client.text(actor) == "one"


def test_a_message_beyond_the_limit_is_refused_and_the_connection_goes_on(client, actor):
    assert failure(lambda: client.write(actor, "x" * 34_000_000)).code.name == "RESOURCE_EXHAUSTED"
    assert client.write(actor, "one").version == 1


def test_no_error_repeats_what_was_in_the_document_or_in_the_call(client, actor):
    client.write(actor, "the treasure is under the oak: 1")
    for edit in (delete("pirate"), rename("pirate", "x"), insert("x", anchor="pirate"), write("pirate \0")):
        told = failure(lambda edit=edit: client.edit(actor, edit))
        assert "treasure" not in told.message + str(told.metadata)
        assert "pirate" not in told.message + str(told.metadata)


def test_different_parts_of_an_address_are_different_memories(client, actor):
    parts = ({}, {"role_id": "Creator"}, {"player_id": "p"}, {"topic_id": "t"}, {"tenant_id": "n"}, {"save_id": "s"})
    actors = []
    for number, part in enumerate(parts):
        address = common_pb2.Actor()
        address.CopyFrom(actor)
        address.MergeFrom(common_pb2.Actor(**part))
        client.write(address, str(number))
        actors.append(address)
    assert [client.text(address) for address in actors] == [str(number) for number in range(len(parts))]


def test_the_actor_local_and_no_actor_are_one_memory(client, actor):
    client.write(common_pb2.Actor(save_id=actor.actor_id, actor_id="local"), "one")
    assert client.text(common_pb2.Actor(save_id=actor.actor_id)) == "one"
    client.append(common_pb2.Actor(save_id=actor.actor_id), "two")
    assert client.text(common_pb2.Actor(save_id=actor.actor_id, actor_id="local")) == "one\ntwo"


def test_a_role_says_how_many_versions_its_documents_keep(client, actor):
    role = role_pb2.Role(role_id="Forgetful", max_document_versions=2)
    chat_pb2_grpc.ChatServiceStub(client.channel).PutRole(chat_pb2.PutRoleRequest(role=role))
    forgetful = common_pb2.Actor(save_id=actor.save_id, actor_id=actor.actor_id, role_id="Forgetful")
    for who in (forgetful, actor):
        for number in range(4):
            client.write(who, f"text {number}")
    assert [one.version for one in client.versions(forgetful).versions] == [3, 4]
    assert [one.version for one in client.versions(actor).versions] == [1, 2, 3, 4]
