"""Folding with a model: what it is asked, what is taken from its answer, and what happens when it fails."""

from __future__ import annotations

from concurrent.futures import CancelledError

import pytest
from compaction_samples import FlatCounter, dialogue, policy
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.compaction.cuts import CutKind
from sidecar.compaction.folding import fold_as_bullets, visible_text
from sidecar.compaction.marker import StoredSummary, bullet, marker_for, split_marker
from sidecar.compaction.messages import Message
from sidecar.compaction.rollup import roll_up
from sidecar.compaction.summariser import (
    LINES_HEADING,
    NO_PRIOR,
    PRIOR_HEADING,
    ROLE_ID,
    CompletionAnswer,
    Summariser,
    SummariserOptions,
    fold_with_model,
)
from sidecar.compaction.tokens import HeuristicCounter

EMPTY = StoredSummary()


class Model:
    """Answers with what it was given, in turn, the last answer again and again; remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, CompletionAnswer) else CompletionAnswer(answer)


def fold(model, messages, *, stored=EMPTY, cap=0, trace_id="", **options):
    summariser = Summariser(model, SummariserOptions(**options))
    return fold_with_model(
        stored, messages, summariser=summariser, cap=cap, counter=HeuristicCounter(), trace_id=trace_id
    )


def kinds(folded):
    return [cut.what for cut in folded.cuts]


def test_five_messages_in_a_budget_of_25_are_folded_by_one_call():
    model = Model("summary")
    snapshot = roll_up(
        dialogue(5),
        StoredSummary(),
        policy(25, wants_model=True),
        FlatCounter(),
        summariser=Summariser(model),
        trace_id="trace123",
    )
    (request,) = model.requests
    assert (request.role_id, request.trace_id) == (ROLE_ID, "trace123:compact")
    assert (request.temperature, request.max_output) == (0.15, 512)
    assert request.system == SummariserOptions().instructions
    assert (len(snapshot.recent), snapshot.summary) == (2, "summary")


def test_the_trace_of_a_call_without_one_is_t():
    model = Model("summary")
    fold(model, dialogue(1))
    assert model.requests[0].trace_id == "t:compact"


def test_the_payload_holds_the_prior_summary_then_a_line_a_message():
    model = Model("summary")
    fold(model, dialogue(2), stored=StoredSummary("the past\n[fold:v1:0123456789ab]"))
    lines = model.requests[0].user.splitlines()
    assert lines[:2] == [PRIOR_HEADING, "the past"]
    assert lines[lines.index(LINES_HEADING) + 1 :][:2] == ["- user: msg0", "- assistant: msg1"]


def test_without_a_prior_summary_the_payload_says_so():
    model = Model("summary")
    fold(model, dialogue(1))
    assert f"{PRIOR_HEADING}\n{NO_PRIOR}\n" in model.requests[0].user


def test_a_history_that_is_folded_already_makes_no_call():
    deterministic = roll_up(dialogue(5), StoredSummary(), policy(25), FlatCounter())
    model = Model("summary")
    roll_up(
        dialogue(5), deterministic.stored, policy(25, wants_model=True), FlatCounter(), summariser=Summariser(model)
    )
    assert model.requests == []


def test_a_blank_prefix_makes_no_call_and_is_folded():
    history = [Message("user", "  ", 1), Message("user", " ", 2), *dialogue(2, first=3)]
    model, stored = Model("summary"), StoredSummary()
    for _ in range(3):
        snapshot = roll_up(history, stored, policy(25, wants_model=True), FlatCounter(), summariser=Summariser(model))
        stored = snapshot.stored
    assert model.requests == []
    assert stored.folded_through == 2


def test_long_lines_are_clipped_and_told():
    model = Model("summary")
    folded = fold(model, [Message("user", "x" * 900, 1)])
    assert f"- user: {'x' * 800}…[+100 chars]" in model.requests[0].user
    assert kinds(folded) == [CutKind.SUMMARY_LINE]


def test_what_one_call_cannot_take_goes_into_further_calls():
    model = Model("one", "two", "three")
    history = dialogue(40, text="{:02d} " + "x" * 700)
    folded = fold(model, history)
    sent = "\n".join(request.user for request in model.requests)
    assert len(model.requests) == 3
    assert all(sent.count(message.content) == 1 for message in history)
    assert all(len(request.user) <= 12_000 for request in model.requests)
    assert visible_text(folded.summary) == "three"
    assert folded.summary.folded_through == 40


def test_each_further_call_carries_the_summary_of_the_one_before():
    model = Model("one", "two", "three")
    fold(model, dialogue(40, text="{:02d} " + "x" * 700))
    assert [request.user.splitlines()[1] for request in model.requests] == [NO_PRIOR, "one", "two"]


def test_what_is_left_after_the_last_allowed_call_becomes_bullets():
    history = dialogue(40, text="{:02d} " + "x" * 200)
    folded = fold(Model("one"), history, max_calls=1, max_payload_chars=4_000)
    lines = visible_text(folded.summary).splitlines()
    left = next(cut.dropped for cut in folded.cuts if cut.what is CutKind.DEFERRED_FOLD)
    assert lines == ["one", *(bullet(message) for message in history[-left:])]
    assert 0 < left < 40
    assert folded.summary.folded_through == 40


def test_a_first_line_too_long_for_a_call_is_sent_in_part_so_that_folding_goes_on():
    model = Model("one")
    folded = fold(model, [Message("user", "x" * 5_000, 1)], max_line_chars=-1, max_payload_chars=1_000)
    assert len(model.requests[0].user) <= 1_000
    assert CutKind.SUMMARY_LINE in kinds(folded)
    assert visible_text(folded.summary) == "one"


def test_a_summariser_with_a_small_window_is_given_small_payloads():
    model = Model("one")
    options = SummariserOptions(window=1_000, max_output=200)
    history = dialogue(40, text="{:02d} " + "x" * 100)
    fold_with_model(
        StoredSummary("past " * 500), history, summariser=Summariser(model, options), cap=0, counter=HeuristicCounter()
    )
    for request in model.requests:
        assert HeuristicCounter().count(request.system + request.user) + 200 <= 1_000


def test_a_prior_summary_too_long_for_the_summariser_is_cut_and_told():
    folded = fold(Model("one"), dialogue(1), stored=StoredSummary("past " * 500), window=1_000)
    assert CutKind.SUMMARY_PAYLOAD in kinds(folded)


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError("down"),
        TimeoutError(),
        CompletionAnswer("text", ok=False),
        "",
        "  \n",
        "[fold:v1:0123456789ab]",
        "<think>only thoughts</think>",
    ],
)
def test_a_summariser_that_gives_nothing_usable_is_replaced_by_bullets(failure):
    folded = fold(Model(failure), dialogue(3), stored=StoredSummary("past"))
    assert visible_text(folded.summary).splitlines() == ["past", *(bullet(message) for message in dialogue(3))]
    assert kinds(folded) == [CutKind.SUMMARISER]


def test_a_failure_after_a_first_call_keeps_what_that_call_folded():
    history = dialogue(40, text="{:02d} " + "x" * 700)
    folded = fold(Model("one", RuntimeError()), history)
    text = visible_text(folded.summary)
    assert text.startswith("one\n- ")
    assert all(text.count(f": {number:02d} ") == 1 for number in range(16, 40))


def test_cancelling_is_never_swallowed():
    with pytest.raises(CancelledError):
        fold(Model(CancelledError()), dialogue(3))


@pytest.mark.parametrize("length", [6_000, 1_000_000])
def test_a_long_answer_is_clipped_with_its_signs_counted_in(length):
    folded = fold(Model("x" * length), dialogue(12))
    assert len(folded.summary.text) <= 4_000
    assert "…[+" in visible_text(folded.summary)
    assert kinds(folded) == [CutKind.SUMMARY]


def test_an_answer_of_four_thousand_characters_is_taken_whole():
    assert visible_text(fold(Model("x" * 4_000), dialogue(3)).summary) == "x" * 4_000


def test_the_token_cap_holds_for_an_answer_too():
    folded = fold(Model("x" * 400 + "tail"), dialogue(3), cap=25)
    body, hashes = split_marker(folded.summary.text)
    assert body.startswith("…")
    assert body.endswith("tail")
    assert HeuristicCounter().count(body) <= 25
    assert len(hashes) == 3


def test_an_echoed_marker_is_not_taken_into_the_summary():
    folded = fold(Model("facts\n[fold:v1:0123456789ab]"), dialogue(3))
    assert folded.summary.text == f"facts\n{marker_for(dialogue(3))}"


def test_a_role_that_switches_to_a_model_folds_nothing_again():
    first = fold_as_bullets(StoredSummary(), dialogue(3), cap=0, counter=HeuristicCounter())
    model = Model("merged")
    roll_up(dialogue(5), first.summary, policy(25, wants_model=True), FlatCounter(), summariser=Summariser(model))
    assert model.requests == []


def test_a_role_that_wants_a_model_where_there_is_none_is_told():
    snapshot = roll_up(dialogue(5), StoredSummary(), policy(25, wants_model=True), FlatCounter())
    assert CutKind.SUMMARISER in {cut.what for cut in snapshot.cuts}


answers = st.one_of(st.just(RuntimeError()), st.text(max_size=300), st.just("x" * 9_000), st.just("[fold:v1:a]"))
lengths = st.lists(st.integers(0, 900), min_size=1, max_size=30)


@settings(max_examples=100)
@given(lengths, st.lists(answers, min_size=1, max_size=4), st.integers(700, 3_000))
def test_every_message_is_sent_once_or_stands_in_a_bullet(lengths, answers, payload):
    history = [Message("user", f"#{n:03d}#" + "x" * length, n) for n, length in enumerate(lengths, 1)]
    model = Model(*answers)
    folded = fold(model, history, max_payload_chars=payload, max_calls=3)
    refused = sum(1 for cut in folded.cuts if cut.what is CutKind.SUMMARISER)
    taken = model.requests[: len(model.requests) - refused]
    lines = "\n".join(request.user.partition(LINES_HEADING)[2] for request in taken)
    bullets = [line for line in visible_text(folded.summary).splitlines() if line.startswith("- user: #")]
    for message in history:
        mark = message.content[:5]
        assert lines.count(mark) + sum(mark in line for line in bullets) == 1
    assert all(len(request.user) <= payload for request in model.requests)
    assert folded.summary.folded_through == len(history)
