"""Memory edits that a model without tool calls writes into its answer."""

from __future__ import annotations

import json

import pytest

from sidecar.memory.directives import parse_directives
from sidecar.memory.edits import Action, Edit


def parsed(answer):
    found = parse_directives(answer)
    return found.visible, found.call.edit if found.call else None


@pytest.mark.parametrize(
    ("block", "edit"),
    [
        ("```memory\nAda\n```", Edit(Action.WRITE, content="Ada")),
        ("```MEMORY\n  Ada \n```", Edit(Action.WRITE, content="Ada")),
        ("```memory_notes\nAda\n```", Edit(Action.WRITE, content="Ada")),
        ("```memory_append\nAda\n```", Edit(Action.APPEND, content="Ada")),
        ("```Memory_Append now\nAda```", Edit(Action.APPEND, content="Ada")),
        ("```memory_clear\n```", Edit(Action.CLEAR)),
    ],
)
def test_a_fenced_block_is_an_edit_and_leaves_the_visible_answer(block, edit):
    assert parsed(f"Hello.\n{block}\nBye.") == ("Hello.\n\nBye.", edit)


@pytest.mark.parametrize("answer", ["```memory", "```memory\nno end", "```python\nmemory\n```", "memory", ""])
def test_a_text_without_a_whole_directive_is_left_as_it_is(answer):
    assert parsed(answer) == (answer, None)


def test_a_blank_block_changes_nothing_and_is_hidden_all_the_same():
    assert parsed("Hello ```memory\n \n```") == ("Hello", None)


def test_only_the_first_block_is_taken():
    visible, edit = parsed("```memory\none\n``` and ```memory\ntwo\n```")
    assert edit == Edit(Action.WRITE, content="one")
    assert "two" in visible


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "memory", "action": "append", "content": "Ada {brave}"},
        {"tool": "memory", "arguments": {"action": "append", "content": "Ada {brave}"}},
        {"name": "memory", "arguments": {"action": "append", "content": "Ada {brave}"}},
    ],
)
def test_a_json_call_in_prose_is_an_edit(call):
    answer = f"Of course. {json.dumps(call)} Done."
    assert parsed(answer) == ("Of course.  Done.", Edit(Action.APPEND, content="Ada {brave}"))


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "other", "arguments": {"action": "clear"}}',
        '{"name": "memory"}',
        '{"name": "memory", "arguments": {"action": "store"}}',
        '{"name": "memory", "arguments": {"action": "clear"}',
        'Like this: ```json\n{"name": "memory", "arguments": {"action": "clear"}}\n```',
        "{not json} at all",
    ],
)
def test_what_is_no_call_of_the_memory_tool_is_left_alone(answer):
    assert parsed(answer) == (answer, None)


def test_a_call_after_an_example_in_a_fence_is_found():
    answer = '```json\n{"name": "memory", "arguments": {"action": "read"}}\n``` {"tool": "memory", "action": "clear"}'
    assert parsed(answer)[1] == Edit(Action.CLEAR)


@pytest.mark.parametrize("junk", ["{" * 100_000, '{"a":' * 20_000, "```memory" * 10_000, "[{" * 50_000])
def test_a_hostile_answer_is_no_directive(junk):
    assert parsed(junk) == (junk, None)
