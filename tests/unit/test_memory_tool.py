"""The memory tool as a model sees it: its schema, what it makes of arguments, and its answers."""

from __future__ import annotations

import json

import pytest

from sidecar.errors import InvalidInput, NotFound, Reason
from sidecar.memory.document import Document, Done, EditFailed, Outcome, Version
from sidecar.memory.edits import Action, Edit, TextNotFound
from sidecar.memory.nearest import NearLine
from sidecar.memory.tool import MEMORY_TOOL, edit_answer, failed_answer, parse_call, read_answer

KEYS = ["Success", "Message", "Error", "Version", "MemoryLength", "Memory"]


def parsed(**arguments):
    return parse_call(json.dumps(arguments)).edit


def refused(arguments_json):
    with pytest.raises(InvalidInput) as caught:
        parse_call(arguments_json)
    return caught.value


def test_the_tool_is_a_function_named_memory_that_requires_an_action_alone():
    function = MEMORY_TOOL.function()
    assert (function["type"], function["function"]["name"]) == ("function", "memory")
    assert function["function"]["parameters"]["required"] == ["action"]
    assert list(function["function"]["parameters"]["properties"]) == [
        "action", "content", "old_text", "new_text", "anchor", "line", "replace_all",
    ]  # fmt: skip


def test_the_description_names_the_eight_actions_and_no_other():
    described = MEMORY_TOOL.parameters["properties"]["action"]
    assert "enum" not in described
    assert all(action in described["description"] for action in ("read", *Action))
    assert "store" not in described["description"]


def test_read_is_no_edit():
    assert parse_call('{"action": "read"}').edit is None


@pytest.mark.parametrize("action", ["append", " Append ", "APPEND\n"])
def test_the_action_is_taken_in_any_case_and_with_space_around(action):
    assert parsed(action=action, content="x") == Edit(Action.APPEND, content="x")


def test_every_parameter_reaches_the_edit():
    given = {"content": "c", "old_text": "o", "new_text": "n", "anchor": "a", "line": 3, "replace_all": True}
    assert parsed(action="insert", **given) == Edit(Action.INSERT, **given)


def test_null_is_the_same_as_absent():
    nothing = dict.fromkeys(["content", "old_text", "new_text", "anchor", "line", "replace_all"])
    assert parsed(action="clear", **nothing) == Edit(Action.CLEAR)


@pytest.mark.parametrize(("line", "meant"), [(2, 2), (2.0, 2), ("2", 2), (" 2 ", 2), ("-1", -1)])
def test_a_line_may_come_as_a_number_or_its_text(line, meant):
    assert parsed(action="insert", content="x", line=line).line == meant


@pytest.mark.parametrize("line", [2.5, "two", "", True, [2], "--5", "-", "²", "9" * 5_000, "1e3"])
def test_a_line_that_is_no_whole_number_is_refused(line):
    error = refused(json.dumps({"action": "insert", "content": "x", "line": line}))
    assert (error.reason, error.field) == (Reason.FIELD_INVALID, "line")


@pytest.mark.parametrize(("flag", "meant"), [(True, True), ("true", True), ("False", False), (None, False)])
def test_replace_all_may_come_as_a_text(flag, meant):
    assert parsed(action="delete", old_text="x", replace_all=flag).replace_all is meant


@pytest.mark.parametrize("flag", [1, "yes", [], {}])
def test_a_replace_all_that_is_no_switch_is_refused(flag):
    assert refused(json.dumps({"action": "delete", "old_text": "x", "replace_all": flag})).field == "replace_all"


@pytest.mark.parametrize("text", [1, True, ["x"], {"a": 1}])
def test_a_text_that_is_no_text_is_refused(text):
    assert refused(json.dumps({"action": "write", "content": text})).field == "content"


@pytest.mark.parametrize("arguments", ["", "{}", '{"action": ""}', '{"action": null}', '{"action": 5}'])
def test_a_call_without_an_action_is_refused(arguments):
    assert refused(arguments).reason == Reason.ACTION_REQUIRED


def test_an_unknown_action_is_refused_and_the_eight_are_named():
    error = refused('{"action": "store"}')
    assert error.reason == Reason.UNKNOWN_ACTION
    assert all(action in error.message for action in ("read", *Action))


@pytest.mark.parametrize(
    "arguments",
    [
        '{"action": "write", "content": "x',
        '{"action": "write", "content": "x", "content": "y"}',
        "[]",
        '"write"',
        "nonsense",
        "[" * 100_000,
    ],
)
def test_arguments_that_are_no_whole_json_object_are_refused(arguments):
    error = refused(arguments)
    assert (error.reason, error.field) == (Reason.FIELD_INVALID, "arguments_json")


def test_a_read_answers_with_the_whole_document():
    version = Version(4, 0, "write", "Known learner fact", "")
    answer = read_answer(Document("Known learner fact", (version,), exists=True))
    assert list(answer.payload) == KEYS
    assert (answer.succeeded, answer.payload["Success"]) == (True, True)
    assert answer.payload["Memory"] == "Known learner fact"
    assert (answer.payload["MemoryLength"], answer.payload["Version"]) == (18, 4)


def test_a_read_of_nothing_says_that_memory_is_empty():
    payload = read_answer(Document()).payload
    assert (payload["Success"], payload["Memory"], payload["Version"]) == (True, "", 0)
    assert "empty" in payload["Message"]


def test_a_change_is_told_as_done_for_the_role():
    payload = edit_answer(Outcome(True, 3, 12, (Done(True, "line added to memory"),)), "Merchant").payload
    assert list(payload) == KEYS
    assert payload["Message"].startswith("DONE: ")
    assert payload["Message"].endswith(" for Merchant.")
    assert (payload["Version"], payload["MemoryLength"], payload["Memory"]) == (3, 12, None)


def test_a_no_op_succeeds_with_the_present_version_and_length():
    answer = edit_answer(Outcome(False, 3, 12, (Done(False, "memory has this line already"),)), "Merchant")
    assert (answer.succeeded, answer.payload["Version"], answer.payload["MemoryLength"]) == (True, 3, 12)
    assert "DONE" not in answer.payload["Message"]


def test_a_failure_tells_reason_version_and_the_nearest_lines():
    document = Document("one\ntwo", (Version(2, 0, "write", "one\ntwo", ""),), exists=True)
    error = EditFailed(0, TextNotFound("not there", "old_text", [NearLine(2, "two")]))
    answer = failed_answer(error, document)
    assert answer.succeeded is False
    assert answer.payload["Error"] == "not there"
    assert (answer.payload["Reason"], answer.payload["NearestLines"]) == ("NOT_FOUND", ["two"])
    assert (answer.payload["Version"], answer.payload["MemoryLength"]) == (2, 7)


def test_a_failure_on_an_unreadable_document_tells_no_version():
    payload = failed_answer(NotFound("gone", reason=Reason.DOCUMENT_UNREADABLE), None).payload
    assert (payload["Success"], payload["Version"], payload["MemoryLength"]) == (False, 0, 0)


def test_an_answer_keeps_letters_as_they_are_and_names_what_is_null():
    text = read_answer(Document("日本語 😀", exists=True)).json()
    assert "日本語 😀" in text
    assert '"Error": null' in text
