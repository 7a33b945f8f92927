"""What a tool's answer is taken for, and what of it is kept."""

from __future__ import annotations

import pytest

from sidecar.chat.backends.wire import WireCall
from sidecar.chat.roles import ToolResults
from sidecar.chat.turns.exchange import Round, trimmed
from sidecar.chat.turns.results import ToolOutcome, history_block, shown_result, succeeded, told_error
from sidecar.compaction.cuts import CutKind


@pytest.mark.parametrize(
    "result",
    [
        '{"ok": true}',
        "{}",
        "[]",
        "Gate opened.",
        "",
        '{"error": ""}',
        '{"error": null, "ok": true}',
        '"x"',
        '"No error: all well."',
        '"{\\"ok\\": true}"',
        "7",
        '{"isError": false}',
    ],
)
def test_a_result_succeeded_unless_it_says_otherwise(result):
    assert succeeded(result)


@pytest.mark.parametrize(
    "result",
    [
        '{"error": "x"}',
        '{"Error": "x"}',
        '{"isError": true}',
        '{"ok": false}',
        '{"Success": false}',
        '{"succeeded": false}',
        "Failed to open",
        "  error: no key",
        "Exception in gate",
        "failure",
        '"Error: no key"',
        '" Failed to open"',
        '"{\\"ok\\": false}"',
    ],
)
def test_a_result_that_tells_of_a_failure_failed(result):
    assert not succeeded(result)


def test_a_long_result_is_shown_in_part_and_says_so():
    assert shown_result("x" * 11, 10) == ("x" * 10 + "\n...[truncated: 11 chars total -> 10 shown]", 1)
    assert shown_result("x" * 11, 0) == ("x" * 11, 0)


def outcome(name, result, *, ok=True, **more):
    return ToolOutcome("id", name, result, succeeded=ok, **more)


def block_of(outcomes, policy):
    return history_block(outcomes, policy)[0]


DONE = [outcome("give", '{"message": "Sword  given."}'), outcome("open", "stuck", ok=False)]


def test_the_history_keeps_a_line_for_each_call():
    assert block_of(DONE, ToolResults.COMPACT) == "## Tool Results\n- give: ok Sword given.\n- open: FAILED stuck"


def test_the_history_keeps_failures_alone_or_nothing_where_the_role_says_so():
    assert block_of(DONE, ToolResults.ERRORS_ONLY) == "## Tool Results\n- open: FAILED stuck"
    assert block_of(DONE, ToolResults.NONE) == ""
    assert block_of(DONE[:1], ToolResults.ERRORS_ONLY) == ""


def test_the_history_keeps_whole_results_where_the_role_says_so():
    block = block_of([outcome("read", "a\nb"), outcome("wait", "")], ToolResults.FULL)
    assert block == "## Tool Results\n- read: ok\n  Detail:\n  a\n  b\n- wait: ok\n  Detail:\n  (empty)"


def test_equal_entries_and_repeats_stand_once():
    calls = [outcome("give", "x"), outcome("give", "x"), outcome("give", "x", duplicate=True)]
    assert block_of(calls, ToolResults.COMPACT) == "## Tool Results\n- give: ok x"


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ('{"ok": false, "message": "asked", "error": "too  dark"}', "too dark"),
        ('{"Success": false, "Message": null, "Error": "no such text"}', "no such text"),
        ('{"error": {"code": 7, "message": "no key"}}', "no key"),
        ('{"error": {"code": 7}}', '{"code": 7}'),
        ('{"error": true, "message": "no key"}', "no key"),
        ('{"ok": false}', '{"ok": false}'),
        ('"Error: no\\nkey"', "Error: no key"),
        ("failed", "failed"),
        (r'{"error": "half \ud800 of it"}', "half ? of it"),
        (r'"\ud83d\ude00 \udc00"', "😀 ?"),
    ],
)
def test_the_error_of_a_result_is_told_in_its_own_words(result, error):
    assert told_error(result) == error


def test_a_long_line_is_clipped_and_says_so():
    block, cuts = history_block([outcome("read", "x" * 250)], ToolResults.COMPACT)
    assert [(cut.what, cut.kept, cut.dropped) for cut in cuts] == [(CutKind.TOOL_RESULT, len(block), 10)]
    assert block.endswith("x" * 240 + "…[+10 chars]")


def test_a_long_detail_keeps_head_and_tail():
    block, cuts = history_block([outcome("read", "a" * 1_500 + "b" * 1_500)], ToolResults.FULL)
    assert [cut.dropped for cut in cuts] == [1_000]
    assert "...[truncated 1000 chars]..." in block


def rounds(*sizes):
    return [Round("", tuple(WireCall("x", "{}", str(n)) for n in range(size)), ("r",) * size) for size in sizes]


@pytest.mark.parametrize(
    ("sizes", "most", "kept", "gone"),
    [((1, 1, 1), 2, (1, 1), 1), ((3, 3), 4, (3,), 3), ((9,), 4, (9,), 0), ((1, 1), 0, (1, 1), 0), ((), 4, (), 0)],
)
def test_older_rounds_go_whole_and_the_last_one_stays(sizes, most, kept, gone):
    left, dropped = trimmed(rounds(*sizes), most)
    assert (tuple(len(one.results) for one in left), dropped) == (kept, gone)


def test_a_round_as_text_repeats_the_calls_and_their_results():
    said, told = Round("Well.", (WireCall("give", '{"n": 1}', "a"),), ("ok",)).messages(native=False)
    assert said.content == 'Well.\n{"name": "give", "arguments": {"n": 1}}'
    assert told.content == "Result of give: ok"
