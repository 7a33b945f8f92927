"""The memory tool over the socket, as a game passes on a model's calls, and the same edits through EditDocument."""

from __future__ import annotations

import json

import pytest
from client import append, clear, delete, failure, insert, rename, str_replace, write

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2

# document before, arguments of the tool, the same as an edit, document after
EDITS = [
    ("old", {"action": "write", "content": "Test memory content"}, write("Test memory content"), "Test memory content"),
    ("", {"action": "append", "content": "a"}, append("a"), "a"),
    ("a", {"action": "append", "content": "b"}, append("b"), "a\nb"),
    ("a\n", {"action": "append", "content": "b"}, append("b"), "a\n\nb"),
    ("a", {"action": "clear"}, clear(), ""),
    (
        "Quest: old\nQuest: old",
        {"action": "str_replace", "old_text": "old", "new_text": "new"},
        str_replace("old", "new"),
        "Quest: new\nQuest: old",
    ),
    (
        "a a",
        {"action": "str_replace", "old_text": "a", "new_text": "", "replace_all": True},
        str_replace("a", "", replace_all=True),
        " ",
    ),
    (
        "Keep\nDelete me\nKeep\nDelete me",
        {"action": "delete", "old_text": "Delete me\n"},
        delete("Delete me\n"),
        "Keep\nKeep\nDelete me",
    ),
    (
        "Profile: calm\nProfile: duplicate",
        {"action": "rename", "old_text": "Profile", "new_text": "Identity"},
        rename("Profile", "Identity"),
        "Identity: calm\nProfile: duplicate",
    ),
    ("- Crafts: x", {"action": "rename", "old_text": "Crafts:", "new_text": "T"}, rename("Crafts:", "T"), "- T: x"),
    ("a\nb", {"action": "insert", "content": "X", "line": 2}, insert("X", line=2), "a\nX\nb"),
    ("a\nb", {"action": "insert", "content": "X", "line": 99}, insert("X", line=99), "a\nb\nX"),
    ("a\nb", {"action": "insert", "content": "X", "anchor": "a"}, insert("X", anchor="a"), "a\nX\nb"),
    ("a", {"action": "insert", "content": "X"}, insert("X"), "a\nX"),
    ("日本", {"action": "append", "content": "😀é"}, append("😀é"), "日本\n😀é"),
]

NO_OPS = [
    ("a\nb", {"action": "append", "content": " b "}, append(" b ")),
    ("", {"action": "clear"}, clear()),
    ("a", {"action": "write", "content": "a"}, write("a")),
    ("ab", {"action": "str_replace", "old_text": "a", "new_text": "a"}, str_replace("a", "a")),
]

REFUSED = [
    ({"action": "store", "content": "x"}, "UNKNOWN_ACTION"),
    ({"content": "x"}, "ACTION_REQUIRED"),
    ({"action": "write", "content": ""}, "CONTENT_REQUIRED"),
    ({"action": "append"}, "CONTENT_REQUIRED"),
    ({"action": "insert", "content": "x", "line": 0}, "LINE_NOT_POSITIVE"),
    ({"action": "insert", "content": "x", "anchor": "absent"}, "NOT_FOUND"),
    ({"action": "str_replace", "new_text": "x"}, "OLD_TEXT_REQUIRED"),
    ({"action": "str_replace", "old_text": "one"}, "NEW_TEXT_REQUIRED"),
    ({"action": "str_replace", "old_text": "absent", "new_text": "x"}, "NOT_FOUND"),
    ({"action": "delete", "old_text": "absent"}, "NOT_FOUND"),
    ({"action": "delete"}, "OLD_TEXT_REQUIRED"),
    ({"action": "rename", "old_text": "absent", "new_text": "x"}, "NOT_FOUND"),
    ({"action": "rename", "old_text": "one", "new_text": " "}, "LABEL_BLANK"),
    ({"action": "write", "content": "a", "new_text": "b"}, "CONFLICTING_TEXT"),
    ({"action": "read", "content": "a", "new_text": "b"}, "CONFLICTING_TEXT"),
    ({"action": "write", "content": "a\u0000b"}, "FIELD_INVALID"),
    ({"action": "write", "content": "x" * 200_001}, "DOCUMENT_TOO_LARGE"),
    ({"action": "insert", "content": "x", "line": "many"}, "FIELD_INVALID"),
]


def given(client, actor, text):
    if text:
        client.write(actor, text)


@pytest.mark.parametrize(("before", "arguments", "edit", "after"), EDITS)
def test_a_call_of_the_tool_makes_exactly_this_of_the_document(client, actor, before, arguments, edit, after):
    given(client, actor, before)
    answer = client.call_tool(actor, arguments)
    assert (client.text(actor), answer["Success"], answer["Error"], answer["Memory"]) == (after, True, None, None)
    assert answer["Message"].startswith("DONE: ")
    assert answer["Message"].endswith(" for Merchant.")
    assert (answer["Version"], answer["MemoryLength"]) == (1 + bool(before), len(after))


@pytest.mark.parametrize(("before", "arguments", "edit", "after"), EDITS)
def test_an_edit_makes_the_same_of_the_document(client, actor, before, arguments, edit, after):
    given(client, actor, before)
    response = client.edit(actor, edit)
    assert client.text(actor) == after
    assert (response.changed, response.version, response.length) == (True, 1 + bool(before), len(after))
    assert [outcome.changed for outcome in response.outcomes] == [True]


@pytest.mark.parametrize(("before", "arguments", "edit"), NO_OPS)
def test_an_edit_that_changes_nothing_succeeds_and_adds_no_version(client, actor, before, arguments, edit):
    given(client, actor, before)
    version = int(bool(before))
    answer = client.call_tool(actor, arguments)
    response = client.edit(actor, edit)
    assert (answer["Success"], answer["Version"], answer["MemoryLength"]) == (True, version, len(before))
    assert (response.changed, response.version, response.length) == (False, version, len(before))
    assert client.read(actor).versions_kept == version


@pytest.mark.parametrize(("arguments", "reason"), REFUSED)
def test_a_wrong_call_is_an_answer_with_reason_version_and_length_and_changes_nothing(client, actor, arguments, reason):
    client.write(actor, "one: 1")
    answer = client.call_tool(actor, arguments)
    assert (answer["Success"], answer["Reason"], answer["Message"]) == (False, reason, None)
    assert (answer["Version"], answer["MemoryLength"]) == (1, 6)
    assert answer["Error"]
    assert (client.text(actor), client.read(actor).version) == ("one: 1", 1)


def test_a_failed_call_tells_the_nearest_lines(client, actor):
    client.write(actor, "The inn is The Owl.\nThe smith is Bran.")
    answer = client.call_tool(actor, {"action": "delete", "old_text": "The smith is bran."})
    assert answer["NearestLines"][0] == "The smith is Bran."


def test_a_read_returns_the_whole_document_and_stores_nothing(client, actor):
    client.write(actor, "Known learner fact")
    answer = client.call_tool(actor, {"action": "read"})
    assert (answer["Memory"], answer["MemoryLength"], answer["Version"]) == ("Known learner fact", 18, 1)
    assert client.read(actor).versions_kept == 1


def test_a_read_of_an_actor_without_a_document_succeeds_and_creates_none(client, actor):
    answer = client.call_tool(actor, {"action": "read"})
    assert (answer["Success"], answer["Memory"], answer["Version"]) == (True, "", 0)
    assert client.read(actor).status == common_pb2.LOAD_STATUS_NOT_FOUND


def test_a_failed_edit_of_a_new_actor_creates_no_document(client, actor):
    client.call_tool(actor, {"action": "delete", "old_text": "x"})
    assert client.read(actor).status == common_pb2.LOAD_STATUS_NOT_FOUND


def test_a_clear_keeps_the_versions_so_that_it_can_be_undone(client, actor):
    client.write(actor, "secret")
    client.call_tool(actor, {"action": "clear"})
    assert client.text(actor) == ""
    assert client.read(actor).status == common_pb2.LOAD_STATUS_LOADED
    assert len(client.versions(actor).versions) == 2


def test_an_append_that_was_told_is_there_for_a_fresh_daemon(daemon, actor):
    daemon.client.call_tool(actor, {"action": "append", "content": "remember"})
    daemon.kill()
    daemon.restart()
    assert daemon.client.text(actor) == "remember"


def test_lone_surrogates_of_a_models_json_are_refused(client, actor):
    request = memory_pb2.CallToolRequest(
        actor=actor, name="memory", arguments_json='{"action":"write","content":"\\ud800"}', idempotency_key="k"
    )
    response = client.memory.CallTool(request)
    assert (response.succeeded, response.reason) == (False, "FIELD_INVALID")


@pytest.mark.parametrize("arguments", ['{"action":"write","content":"x', "[]", "null", "x", "[" * 50_000])
def test_arguments_that_are_no_whole_object_are_never_run(client, actor, arguments):
    response = client.memory.CallTool(memory_pb2.CallToolRequest(actor=actor, name="memory", arguments_json=arguments))
    assert (response.succeeded, response.reason) == (False, "FIELD_INVALID")


def test_arguments_beyond_their_limit_are_refused(client, actor):
    request = memory_pb2.CallToolRequest(actor=actor, name="memory", arguments_json=" " * 1_000_001)
    told = failure(lambda: client.memory.CallTool(request))
    assert told.kind == ("INVALID_ARGUMENT", "FIELD_TOO_LONG")
    assert told.fields == ("arguments_json",)


@pytest.mark.parametrize("name", ["memory", "Memory", " MEMORY "])
def test_a_tool_name_in_another_case_is_the_same_tool(client, actor, name):
    request = memory_pb2.CallToolRequest(actor=actor, name=name, arguments_json='{"action":"read"}')
    assert client.memory.CallTool(request).succeeded


def test_an_unknown_tool_is_an_answer_that_names_those_there_are(client, actor):
    response = client.memory.CallTool(memory_pb2.CallToolRequest(actor=actor, name="magic", arguments_json="{}"))
    assert (response.succeeded, response.reason) == (False, "TOOL_UNKNOWN")
    assert "memory" in json.loads(response.result_json)["Error"]


def test_a_stale_expected_version_of_the_game_ends_the_call_as_aborted(client, actor):
    client.write(actor, "one")
    told = failure(lambda: client.call_tool(actor, {"action": "append", "content": "x"}, expected_version=7))
    assert told.kind == ("ABORTED", "VERSION_MISMATCH")
    assert told.metadata["current_version"] == "1"
    assert client.text(actor) == "one"


def test_a_key_of_the_game_that_was_used_for_another_call_already_exists(client, actor):
    client.call_tool(actor, {"action": "append", "content": "x"}, idempotency_key="k")
    told = failure(lambda: client.call_tool(actor, {"action": "append", "content": "y"}, idempotency_key="k"))
    assert told.kind == ("ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")


def test_a_repeated_call_with_its_key_changes_nothing_more(client, actor):
    first = client.call_tool(actor, {"action": "insert", "content": "x"}, idempotency_key="k")
    assert client.call_tool(actor, {"action": "insert", "content": "x"}, idempotency_key="k") == first
    assert client.text(actor) == "x"


def test_the_answer_tells_the_documents_version(client, actor):
    request = memory_pb2.CallToolRequest(actor=actor, name="memory", arguments_json='{"action":"append","content":"x"}')
    response = client.memory.CallTool(request)
    assert (response.document_version, response.reason, response.save.epoch) == (1, "", 0)
    assert response.save.revision > 0


@pytest.mark.parametrize(
    ("role", "offered"),
    [("Merchant", True), ("Creator", True), ("", True), ("Innkeeper", True), ("SmartChat", True), ("PlainChat", False)],
)
def test_the_role_decides_whether_the_tool_is_offered(client, actor, role, offered):
    actor.role_id = role
    tools = client.memory.ListTools(memory_pb2.ListToolsRequest(actor=actor))
    names = ["memory", "remember_game_memory", "search_game_memory"]
    assert [tool.name for tool in tools.tools] == (names if offered else [])
    assert bool(tools.text_contract) is offered
    response = client.memory.CallTool(
        memory_pb2.CallToolRequest(actor=actor, name="memory", arguments_json='{"action":"read"}')
    )
    assert (response.succeeded, response.reason) == (offered, "" if offered else "TOOL_UNKNOWN")


def test_the_tool_comes_in_the_form_that_chat_completions_take(client, actor):
    tool = client.memory.ListTools(memory_pb2.ListToolsRequest(actor=actor)).tools[0]
    function = json.loads(tool.function_json)
    assert (function["type"], function["function"]["name"], tool.mutating) == ("function", "memory", True)
    assert function["function"]["parameters"] == json.loads(tool.parameters_json)
    assert function["function"]["description"] == tool.description
