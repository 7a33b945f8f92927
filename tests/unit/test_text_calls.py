"""Tool calls that models write into their text, split at every character."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.chat.turns.text_calls import TextCalls
from sidecar.errors import InvalidInput
from sidecar.memory.canonical_json import parse

GIVE = '{"name": "give", "arguments": {"item": "a \\"} key", "n": 1}}'
GIVEN = [("give", {"item": 'a "} key', "n": 1})]
NAMES = ("give", "memory")


def found(text, *, directive="", step=None):
    calls = TextCalls(NAMES, directive=directive)
    pieces = [text] if step is None else [text[at : at + step] for at in range(0, len(text), step)]
    parts = [*(calls.feed(piece) for piece in pieces), calls.finish()]
    told = [(call.name, parsed(call.arguments)) for part in parts for call in part.calls]
    directives = [(call.name, parsed(call.arguments)) for part in parts for call in part.directives]
    return "".join(part.text for part in parts), told, directives


def parsed(text):
    try:
        return parse(text, "arguments")
    except InvalidInput:
        return "broken"


CALLS = {
    "prose": (f"Here you are. {GIVE} Take it.", "Here you are.  Take it.", GIVEN),
    "json fence": (f"Well.\n```json\n{GIVE}\n```", "Well.\n", GIVEN),
    "bare fence": (f"```\n{GIVE}\n```", "", GIVEN),
    "tagged": (f"<tool_call>\n{GIVE}\n</tool_call>", "", GIVEN),
    "two tagged": (f"<tool_call>{GIVE}</tool_call><tool_call>{GIVE}</tool_call>", "", GIVEN * 2),
    "tagged without an end": (f"<tool_call>\n{GIVE}", "", GIVEN),
    "list marker": (f"[TOOL_CALLS][{GIVE}]", "", GIVEN),
    "parameters": ('{"name": "give", "parameters": {"n": 2}}', "", [("give", {"n": 2})]),
    "arguments as text": ('{"name": "give", "arguments": "{\\"n\\": 2}"}', "", [("give", {"n": 2})]),
    "older flat form": (
        '{"tool": "memory", "action": "append", "content": "x"}',
        "",
        [("memory", {"action": "append", "content": "x"})],
    ),
    "function object": ('{"type":"function","function":{"name":"give","arguments":{}}}', "", [("give", {})]),
    "xml": (
        "<tool_call><function=give>\n<parameter=item>\na key\n</parameter>\n"
        "<parameter=n>2</parameter></function></tool_call>",
        "",
        [("give", {"item": "a key", "n": 2})],
    ),
    "function tag": ('<function=give>{"n": 3}</function>', "", [("give", {"n": 3})]),
    "without arguments": ('{"name": "give", "arguments": null}', "", [("give", {})]),
    "an argument twice": ('{"name": "give", "arguments": {"n": 1, "n": 2}}', "", [("give", "broken")]),
    "a comma too many": ('{"name": "give", "arguments": {"n": 1,}}', "", [("give", "broken")]),
    "a line break in a text": ('{"name": "give", "arguments": {"item": "a\nb"}}', "", [("give", "broken")]),
    "no good JSON in a fence": ('```json\n{"name": "give", "arguments": {n: 1}}\n```', "", [("give", "broken")]),
    "no good JSON in tags": ('<tool_call>{"name": "give", "arguments": {n: 1}}</tool_call>', "", [("give", "broken")]),
    "another case": ('{"name": "GIVE", "arguments": {}}', "", [("give", {})]),
    "unknown name in tags": (
        '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
        "",
        [("fly", {})],
    ),
    "broken off": ('{"name": "give", "arguments": {"item": "a k', "", [("give", "broken")]),
    "broken off in a fence": ('```json\n{"name": "give", "arguments": {"it', "", [("give", "broken")]),
}

TEXTS = {
    "unknown tool": '```json\n{"name": "fly", "arguments": {}}\n```\nLook!',
    "unknown tool in prose": 'Try {"name": "fly", "arguments": {}} now.',
    "other fence": f"```python\n{GIVE}\n```\nLike this.",
    "plain json": '{"mood": "calm", "name": "Mira"}',
    "a name alone": '{"name": "give"}',
    "braces": "She smiles :{ and leaves } {",
    "backticks": "`a` ``b`` and ```",
    "angles": "a < b, <tool and <function",
    "memory fence without leave": "```memory\nx\n```",
    "markers": "[TOOL] [TOOL_CALL",
}


@pytest.mark.parametrize("step", [None, 1, 3])
@pytest.mark.parametrize("form", CALLS)
def test_a_call_in_the_text_is_found_and_not_shown(form, step):
    text, shown, calls = CALLS[form]
    assert found(text, step=step)[:2] == (shown, calls)


@pytest.mark.parametrize("step", [None, 1, 3])
@pytest.mark.parametrize("form", TEXTS)
def test_what_is_no_call_is_shown_as_it_is(form, step):
    assert found(TEXTS[form], step=step)[:2] == (TEXTS[form], [])


@pytest.mark.parametrize("form", CALLS)
def test_a_call_is_found_wherever_the_text_is_split(form):
    text, shown, calls = CALLS[form]
    for at in range(len(text) + 1):
        told = TextCalls(NAMES)
        parts = [told.feed(text[:at]), told.feed(text[at:]), told.finish()]
        assert "".join(part.text for part in parts) == shown
        assert [(call.name, parsed(call.arguments)) for part in parts for call in part.calls] == calls


@given(st.text(alphabet='{}[]`"<>/=: \\name\ntool_ca', max_size=60), st.integers(1, 5))
def test_text_for_no_tool_is_never_lost_or_changed(text, step):
    told = TextCalls(["zzz"])
    parts = [*(told.feed(text[at : at + step]) for at in range(0, len(text), step)), told.finish()]
    shown = "".join(part.text for part in parts)
    assert shown == text or any(part.calls for part in parts)


def test_prose_is_passed_on_at_once():
    told = TextCalls(NAMES)
    assert [told.feed(piece).text for piece in ("Good ", "day", ".")] == ["Good ", "day", "."]


@pytest.mark.parametrize(
    ("fence", "default", "call"),
    [
        ("memory", "append", {"action": "append", "content": "Ada came."}),
        ("memory", "write", {"action": "write", "content": "Ada came."}),
        ("memory_append", "write", {"action": "append", "content": "Ada came."}),
        ("MEMORY_CLEAR", "append", {"action": "clear"}),
        ("memory_notes", "write", {"action": "write", "content": "Ada came."}),
        ("Memory_Append now, please", "write", {"action": "append", "content": "Ada came."}),
    ],
)
@pytest.mark.parametrize("step", [None, 1])
def test_a_directive_is_obeyed_where_the_role_allows_it(fence, default, call, step):
    shown, calls, directives = found(f"Well.\n```{fence}\nAda came.\n```", directive=default, step=step)
    assert (shown, calls, directives) == ("Well.\n", [], [("memory", call)])


@pytest.mark.parametrize("step", [None, 1])
def test_a_second_directive_of_an_answer_is_text(step):
    second = "\n```memory\nBo left.\n```"
    shown, _, directives = found(f"```memory\nAda came.\n```{second}", directive="append", step=step)
    assert (shown, len(directives)) == (second, 1)


def test_what_follows_the_only_directive_keeps_its_order_where_no_tool_is_offered():
    told = TextCalls((), directive="append")
    parts = [told.feed("```memory\nAda came.\n```x `"), told.feed("y` z"), told.finish()]
    assert "".join(part.text for part in parts) == "x `y` z"


@pytest.mark.parametrize("step", [None, 1])
@pytest.mark.parametrize("text", ["```memory Ada came.```\nx```", "```memory", "```memory Ada", "```memory\nno end"])
def test_a_memory_fence_without_a_first_line_or_an_end_is_text(text, step):
    assert found(text, directive="append", step=step) == (text, [], [])


@pytest.mark.parametrize("step", [None, 1])
def test_a_blank_memory_fence_changes_nothing_and_is_hidden_all_the_same(step):
    assert found("Hello ```memory\n \n```", directive="append", step=step) == ("Hello ", [], [])


@pytest.mark.parametrize("junk", ["{" * 100_000, '{"a":' * 20_000, "```memory" * 10_000, "[{" * 50_000])
def test_a_hostile_answer_is_no_directive(junk):
    assert found(junk, directive="append") == (junk, [], [])


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["```memory\n", "```", "{", '"tool":"memory"', "Ada\n", "`", "x"])), st.integers(1, 5))
def test_an_answer_without_a_directive_is_shown_as_it_is(pieces, step):
    text = "".join(pieces)
    shown, calls, directives = found(text, directive="append", step=step)
    assert shown == text or calls or directives or "```memory" in text


def test_a_long_call_takes_time_in_proportion_to_its_length():
    text = '{"name": "give", "arguments": {"item": "' + "x" * 100_000 + '"}}'
    assert len(found(text, step=4)[1]) == 1
