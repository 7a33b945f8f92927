"""Conversations that the game holds: where they may be cut, and what keeps to the target."""

from __future__ import annotations

import pytest
from compaction_samples import CharCounter, FlatCounter
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.compaction.folding import Failure
from sidecar.compaction.held import HeldMessage, Target, compact_held, cut_index, require_pairs
from sidecar.compaction.messages import Message
from sidecar.compaction.summariser import CompletionAnswer, Summariser
from sidecar.compaction.tokens import HeuristicCounter
from sidecar.errors import InvalidInput


def user(text="u"):
    return HeldMessage(Message("user", text))


def npc(text="a", *calls):
    return HeldMessage(Message("assistant", text), calls)


def tool(call, text="t"):
    return HeldMessage(Message("tool", text), answers=call)


FLAT = FlatCounter()


def compact(held, *, counter=FLAT, summariser=None, prior="", force=False, **target):
    return compact_held(held, prior, Target(**target), counter, summariser=summariser, force=force)


def test_what_keeps_to_its_target_is_not_touched_and_no_model_is_asked():
    def complete(request):
        raise AssertionError("no model is needed")

    result = compact([user(), npc()] * 3, summariser=Summariser(complete), messages=6, tokens=60)
    assert (result.cut, result.summary) == (0, "")


def test_the_cut_stands_before_a_message_of_the_user():
    messages = [user(), npc(), npc(), user(), npc(), npc()]
    assert cut_index(messages, Target(messages=4), FlatCounter()) == 3


def test_the_cut_never_parts_a_call_from_its_answer():
    messages = [user(), npc("a", "c1"), user("while it runs"), tool("c1"), user(), npc()]
    assert cut_index(messages, Target(messages=5), FlatCounter()) == 4


def test_where_no_cut_leaves_room_all_is_folded():
    messages = [user(), npc(), npc(), npc()]
    result = compact(messages, messages=2)
    assert (result.cut, result.failure) == (4, "")


def test_half_of_the_token_target_is_left_to_the_summary():
    messages = [user(), npc()] * 10
    assert cut_index(messages, Target(tokens=100), FlatCounter()) == 16


def test_a_summary_by_rule_is_cut_to_what_the_target_leaves():
    messages = [HeldMessage(Message("user", "x" * 100)) for _ in range(10)]
    result = compact(messages, counter=CharCounter(), tokens=450)
    kept = 100 * (10 - result.cut)
    assert kept + len(result.summary) <= 450
    assert result.cuts


def test_a_model_is_asked_again_while_its_summary_misses_the_target():
    answers = iter([CompletionAnswer("x" * 500), CompletionAnswer("x" * 500), CompletionAnswer("short")])
    messages = [HeldMessage(Message("user", "y" * 100)) for _ in range(10)]
    result = compact(messages, counter=CharCounter(), summariser=Summariser(lambda r: next(answers)), tokens=450)
    assert (result.summary, result.use.calls, result.failure) == ("short", 3, "")


def test_a_model_that_never_keeps_to_the_target_is_cut_to_it():
    messages = [HeldMessage(Message("user", "y" * 100)) for _ in range(10)]
    endless = Summariser(lambda request: CompletionAnswer("x" * 900))
    result = compact(messages, counter=CharCounter(), summariser=endless, tokens=450, attempts=2)
    assert result.use.calls == 2
    assert 100 * (10 - result.cut) + len(result.summary) <= 450


def test_no_attempt_is_made_beyond_the_usage_that_is_allowed():
    messages = [HeldMessage(Message("user", "y" * 100)) for _ in range(10)]
    hungry = Summariser(lambda request: CompletionAnswer("x" * 900, prompt_tokens=100, completion_tokens=10))
    result = compact(messages, counter=CharCounter(), summariser=hungry, tokens=450, attempts=5, usage=200)
    assert (result.use.calls, result.failure) == (2, "usage_limit_exceeded")


def test_a_model_that_fails_is_replaced_by_bullets_and_told():
    def complete(request):
        raise TimeoutError

    result = compact([user("hello"), npc()] * 5, summariser=Summariser(complete), messages=4)
    assert result.failure == Failure.TIMEOUT.value
    assert "- user: hello" in result.summary


def test_force_folds_what_would_fit():
    assert compact([user(), npc()] * 3, force=True).cut > 0


@pytest.mark.parametrize(
    "messages",
    [
        [npc("a", "c1")],
        [tool("c1")],
        [npc("a", "c1"), tool("c1"), tool("c1")],
        [npc("a", "c1"), tool("c1"), npc("a", "c1"), tool("c1")],
        [npc("a", "")],
    ],
)
def test_calls_and_answers_that_do_not_pair_are_refused(messages):
    with pytest.raises(InvalidInput):
        require_pairs(messages)


turns = st.lists(st.sampled_from(["talk", "tool", "two tools"]), min_size=1, max_size=15)


@settings(max_examples=100)
@given(turns, st.integers(1, 30))
def test_what_stays_is_whole_turns_and_everything_else_is_in_the_summary(kinds, wanted):
    messages = []
    for number, kind in enumerate(kinds):
        messages.append(user(f"#{number}#"))
        calls = [f"c{number}.{n}" for n in range({"talk": 0, "tool": 1, "two tools": 2}[kind])]
        messages.append(npc("a", *calls))
        messages += [tool(call) for call in calls]
    result = compact(messages, counter=HeuristicCounter(), messages=wanted)
    kept = messages[result.cut :]
    require_pairs(kept)
    assert not kept or kept[0].message.role == "user"
    for number in range(len(kinds)):
        mark = f"#{number}#"
        assert any(mark in held.message.content for held in kept) != (mark in result.summary)
    if result.cut:
        assert len(kept) + 1 <= max(wanted, 1)
