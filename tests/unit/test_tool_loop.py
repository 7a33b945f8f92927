"""The tool loop's rules: what runs, what is refused, when it ends."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.chat.backends.wire import WireCall
from sidecar.chat.prompt import Declaration
from sidecar.chat.turns.arguments import Schema
from sidecar.chat.turns.batch import run_batch
from sidecar.chat.turns.conversation import CallIds
from sidecar.chat.turns.loop import Final, LoopRules, Planned, ToolLoop
from sidecar.chat.turns.results import ToolOutcome
from sidecar.chat.turns.tools import Origin, TurnTool
from sidecar.compaction.cuts import CutKind

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def tool(name, *, schema=None, **more):
    return TurnTool(Declaration(name, "", "{}"), schema or {"type": "object"}, **more)


TOOLS = {
    each.name: each
    for each in (
        tool("look"),
        tool("open", mutating=True),
        tool("count", schema=SCHEMA),
        tool("roll", repeatable=True),
        tool("memory", origin=Origin.DAEMON, mutating=True),
    )
}


def loop(**rules):
    return ToolLoop(TOOLS, LoopRules(**rules), CallIds())


def call(name, **arguments):
    return WireCall(name, json.dumps(arguments))


def round_of(turn, *calls, ok=True):
    """Plays a round in which everything that runs ends alike; the plan and the verdict."""
    planned = turn.plan(calls)
    outcomes = [one.answer or ToolOutcome(one.call_id, one.name, "r", succeeded=ok) for one in planned]
    return planned, turn.settle(planned, outcomes)


def runs(planned):
    return [one.answer is None for one in planned]


def test_a_name_that_differs_in_case_alone_is_repaired():
    (planned,) = loop().plan([call("LOOK")])
    assert (planned.name, planned.repaired, planned.answer) == ("look", True, None)


def test_an_unknown_name_is_answered_with_those_that_there_are():
    (planned,) = loop().plan([call("fly")])
    assert planned.answer.reason == "UNKNOWN_TOOL"
    assert "look, open" in planned.answer.result


@pytest.mark.parametrize(
    "arguments", ['{"n": 1', "[]", "null", '"x"', "{}", '{"n": null}', '{"n": "1"}', "{" * 100_000]
)
def test_arguments_that_cannot_be_used_are_refused(arguments):
    (planned,) = loop().plan([WireCall("count", arguments)])
    assert planned.answer.reason == "ARGUMENTS_INVALID"


def test_a_refusal_names_what_is_missing_and_the_schema():
    (planned,) = loop().plan([WireCall("count", "{}")])
    assert "missing: n" in planned.answer.result
    assert '\\"required\\": [\\"n\\"]' in planned.answer.result


def test_a_refusal_that_leaves_out_some_of_a_long_schema_says_how_much():
    wide = tool("wide", schema={"type": "object", "properties": {"n": {"description": "x" * 1_500}}, "required": ["n"]})
    (planned,) = ToolLoop({"wide": wide}, LoopRules(), CallIds()).plan([call("wide")])
    assert planned.answer.result.endswith(f'…[+{planned.cut.dropped} chars]"}}')
    assert (planned.cut.what, planned.cut.kept) == (CutKind.TOOL_SCHEMA, 1_200)


def test_a_call_that_is_refused_is_repeated_to_the_model_as_it_was():
    (planned,) = loop().plan([call("count", n="many")])
    assert (planned.wire().arguments, planned.tool.origin) == ('{"n": "many"}', Origin.GAME)


def test_errors_beyond_the_first_eight_are_not_passed_over_in_silence():
    errors = Schema({"items": {"type": "string"}}).errors(list(range(9)))
    assert (len(errors), errors[-1]) == (9, "and more of the kind")


def test_a_rule_that_is_too_long_to_be_told_says_so():
    (error,) = Schema({"enum": ["x" * 300]}).errors(1)
    assert error.endswith("…[+104 chars]")


def test_no_arguments_are_an_empty_object():
    (planned,) = loop().plan([WireCall("look", "")])
    assert (planned.answer, planned.arguments_json) == (None, "{}")


def test_a_call_that_succeeded_is_not_run_again_whatever_the_order_of_its_arguments():
    turn = loop()
    round_of(turn, call("look", a=1, b=2))
    planned, _ = round_of(turn, call("look", b=2, a=1))
    assert json.loads(planned[0].answer.result)["duplicate"] is True


def test_a_call_that_failed_may_be_tried_again():
    turn = loop()
    round_of(turn, call("look"), ok=False)
    assert runs(round_of(turn, call("look"))[0]) == [True]


def test_the_same_call_twice_in_one_batch_runs_twice():
    assert runs(loop().plan([call("look"), call("look")])) == [True, True]


def test_reading_again_after_something_changed_is_no_duplicate():
    turn = loop()
    read, write = call("memory", action="read"), call("memory", action="append", content="x")
    for each in (read, write):
        round_of(turn, each)
    assert runs(round_of(turn, read, write)[0]) == [True, False]


def test_a_repeatable_tool_and_a_role_without_suppression_run_again():
    turn, free = loop(), loop(suppress_duplicates=False)
    for each, name in ((turn, "roll"), (free, "open")):
        round_of(each, call(name))
        assert runs(round_of(each, call(name))[0]) == [True]


def test_too_many_rounds_take_the_tools_away():
    turn = loop(max_roundtrips=2)
    assert [round_of(turn, call("look", n=n))[1] for n in range(2)] == [None, Final.ROUNDTRIP_LIMIT]


def test_no_bound_of_the_role_is_still_bounded_by_the_daemon():
    turn = loop(max_roundtrips=0, hard_rounds=50)
    ends = [round_of(turn, call("look", n=n))[1] for n in range(50)]
    assert ends == [None] * 49 + [Final.ROUNDTRIP_LIMIT]


def test_only_rounds_in_which_every_call_failed_count_as_failed():
    turn = loop()
    assert round_of(turn, call("look"), ok=False)[1] is None
    assert round_of(turn, call("look"), ok=False)[1] is None
    planned = turn.plan([call("look"), call("fly")])
    mixed = [ToolOutcome(planned[0].call_id, "look", "r", succeeded=True), planned[1].answer]
    assert turn.settle(planned, mixed) is None
    assert [round_of(turn, call("fly"))[1] for _ in range(3)] == [None, None, Final.FAILED_ROUNDS]


def test_a_round_of_echoes_alone_neither_fails_nor_resets():
    turn = loop(max_failed_rounds=2)
    round_of(turn, call("look"))
    assert round_of(turn, call("fly"))[1] is None
    assert round_of(turn, call("look"))[1] is None
    assert round_of(turn, call("fly"))[1] is Final.FAILED_ROUNDS


def test_calls_beyond_the_most_of_one_answer_are_refused():
    planned = loop(max_calls=2).plan([call("look", n=n) for n in range(3)])
    assert [one.answer.reason if one.answer else "" for one in planned] == ["", "", "TOO_MANY_CALLS"]


def test_nothing_runs_while_a_tool_is_still_at_work():
    turn = loop()
    turn.block()
    assert turn.plan([call("look")])[0].answer.reason == "BUSY"


@given(st.lists(st.sampled_from(["a", "a", "b", "", "call00001", "x" * 200, "c\n"]), max_size=30))
def test_ids_of_calls_are_unique_and_the_models_own_where_they_can_be(wanted):
    ids = CallIds()
    given_ids = [ids(each) for each in wanted]
    assert len(set(given_ids)) == len(given_ids)
    if wanted and wanted[0] in ("a", "b"):
        assert given_ids[0] == wanted[0]


def test_ids_that_are_made_here_are_nine_letters_and_digits():
    made = CallIds()("")
    assert len(made) == 9
    assert made.isalnum()


@given(st.lists(st.booleans(), max_size=12), st.integers(1, 5))
def test_a_batch_keeps_its_order_its_bound_and_never_two_changes_at_once(mutating, parallel):
    planned = [Planned(str(place), "x", tool=tool("x", mutating=each)) for place, each in enumerate(mutating)]
    running, most, changing, order = set(), 0, 0, []

    async def run(one, place):
        nonlocal most, changing
        running.add(place)
        most = max(most, len(running))
        changing = max(changing, sum(mutating[each] for each in running))
        await asyncio.sleep(0)
        running.discard(place)
        if mutating[place]:
            order.append(place)
        return ToolOutcome(one.call_id, "x", "", succeeded=True)

    outcomes = asyncio.run(run_batch(planned, run, parallel=parallel))
    assert [one.call_id for one in outcomes] == [one.call_id for one in planned]
    assert most <= parallel
    assert changing <= 1
    assert order == sorted(order)
