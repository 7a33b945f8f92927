"""One answer, put together from what servers send."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.chat.backends.wire import AnswerParts, Tokens, WireCall

GIVE = '{"item": "key", "n": 1}'
OPEN = '{"gate": "north"}'


def piece(index=None, *, call_id=None, name=None, arguments=None):
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    value = {k: v for k, v in (("index", index), ("id", call_id)) if v is not None}
    return value | {"function": function}


def answer(*pieces):
    parts = AnswerParts()
    for each in pieces:
        parts.take({"choices": [{"delta": {"tool_calls": [each]}}]})
    return parts.answer().calls


def test_text_and_reasoning_are_kept_apart():
    parts = AnswerParts()
    deltas = [
        {"role": "assistant", "content": None},
        {"reasoning_content": "He lies."},
        {"reasoning": "x"},
        {"content": "Hi"},
    ]
    assert [parts.take({"choices": [{"delta": each}]}) for each in deltas] == ["", "", "", "Hi"]


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (["a \ud83d", "\ude00 b"], ["a ", "\U0001f600 b"]),
        (["a \ud83d", "", "\ude00"], ["a ", "", "\U0001f600"]),
        (["a \ud83d b"], ["a \ufffd b"]),
        (["\ude00"], ["\ufffd"]),
        (["a\ud83d", "b"], ["a", "\ufffdb"]),
        (["a\ud83d"], ["a"]),
    ],
)
def test_halves_of_a_character_are_joined_and_never_told(pieces, told):
    parts = AnswerParts()
    assert [parts.take({"choices": [{"delta": {"content": each}}]}) for each in pieces] == told


def test_a_call_is_told_without_halves_of_characters():
    (call,) = answer(
        piece(0, call_id="\ud83d", name="gi\ude00ve", arguments='{"a": "\ud83d'), piece(0, arguments='\ude00"}')
    )
    assert call == WireCall("gi\ufffdve", '{"a": "\U0001f600"}', "\ufffd")


def test_a_call_comes_in_pieces():
    pieces = [piece(0, call_id="a", name="give", arguments=""), *(piece(0, arguments=char) for char in GIVE)]
    assert answer(*pieces) == (WireCall("give", GIVE, "a"),)


def test_calls_with_different_indexes_may_interleave():
    assert answer(
        piece(0, call_id="a", name="give", arguments=GIVE[:5]),
        piece(1, call_id="b", name="open", arguments=OPEN[:5]),
        piece(0, arguments=GIVE[5:]),
        piece(1, arguments=OPEN[5:]),
    ) == (WireCall("give", GIVE, "a"), WireCall("open", OPEN, "b"))


def test_two_calls_with_one_index_do_not_run_into_each_other():
    assert answer(
        piece(0, call_id="a", name="give", arguments=GIVE), piece(0, call_id="b", name="open", arguments=OPEN)
    ) == (WireCall("give", GIVE, "a"), WireCall("open", OPEN, "b"))


def test_two_calls_with_one_index_and_one_id_do_not_run_into_each_other():
    assert answer(
        piece(0, call_id="a", name="give", arguments=GIVE), piece(0, call_id="a", name="open", arguments=OPEN)
    ) == (WireCall("give", GIVE, "a"), WireCall("open", OPEN, "a"))


def test_calls_without_any_index_are_told_apart_by_their_ids():
    assert answer(piece(call_id="a", name="give", arguments=GIVE), piece(call_id="b", name="open", arguments=OPEN)) == (
        WireCall("give", GIVE, "a"),
        WireCall("open", OPEN, "b"),
    )


def test_a_name_and_an_id_that_are_repeated_with_every_piece_make_one_call():
    pieces = [piece(0, call_id="a", name="give", arguments=part) for part in (GIVE[:4], GIVE[4:9], GIVE[9:])]
    assert answer(*pieces) == (WireCall("give", GIVE, "a"),)


def test_arguments_that_are_an_object_become_text():
    (call,) = answer(piece(0, call_id="a", name="give", arguments=json.loads(GIVE)))
    assert json.loads(call.arguments) == json.loads(GIVE)


def test_the_older_form_with_one_function_is_a_call():
    parts = AnswerParts()
    parts.take({"choices": [{"message": {"content": None, "function_call": {"name": "give", "arguments": GIVE}}}]})
    assert parts.answer().calls == (WireCall("give", GIVE),)


@given(st.lists(st.text(max_size=8), max_size=8), st.lists(st.integers(1, 4), max_size=40))
def test_any_interleaving_of_calls_keeps_each_whole(values, order):
    texts = [json.dumps({"v": value}) for value in values]
    left = dict(enumerate(texts))
    pieces = [piece(index, call_id=f"c{index}", name=f"t{index}", arguments="") for index in left]
    while any(left.values()):
        for step in [*order, 3]:
            index = next((i for i in left if left[i] and i % 4 != step), next((i for i in left if left[i]), None))
            if index is not None:
                pieces.append(piece(index, arguments=left[index][:step]))
                left[index] = left[index][step:]
    assert [call.arguments for call in answer(*pieces)] == texts


def test_usage_finish_and_model_are_kept():
    parts = AnswerParts()
    parts.take({"model": "m", "choices": [{"delta": {}, "finish_reason": "length"}]})
    parts.take(
        {
            "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
        }
    )
    told = parts.answer()
    assert (told.finish, told.model, told.tokens) == ("length", "m", Tokens(9, 2, 4))


@pytest.mark.parametrize(
    "junk",
    [
        {},
        {"choices": None},
        {"choices": ["x"]},
        {"choices": [{"delta": "x"}]},
        {"usage": {"prompt_tokens": "9"}},
        {"choices": [{"delta": {"tool_calls": [None, "x", {"function": None}]}}]},
        {"choices": [{"delta": {"content": 7}}]},
    ],
)
def test_what_cannot_be_understood_is_passed_over(junk):
    parts = AnswerParts()
    assert parts.take(junk) == ""
    assert parts.answer().calls == ()
