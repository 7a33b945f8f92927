"""Folding without a model: bullets, the marker, caps, and that nothing is folded twice."""

from __future__ import annotations

import pytest
from compaction_samples import FlatCounter, dialogue, policy
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.compaction.cuts import CutKind
from sidecar.compaction.folding import TITLE, fold_as_bullets, visible_text
from sidecar.compaction.marker import StoredSummary, bullet, split_marker
from sidecar.compaction.messages import Message
from sidecar.compaction.rollup import roll_up
from sidecar.compaction.tokens import HeuristicCounter


def test_a_history_that_fits_is_sent_whole_and_its_summary_left_alone():
    stored = StoredSummary("existing summary")
    snapshot = roll_up(dialogue(7), stored, policy(100), FlatCounter())
    assert (snapshot.compacted, len(snapshot.recent), snapshot.folded) == (False, 7, ())
    assert (snapshot.summary, snapshot.stored) == ("existing summary", stored)


def test_folding_the_same_history_twice_and_then_a_longer_one_repeats_no_message():
    stored, saves = StoredSummary(), 0
    for count in (5, 5, 7):
        snapshot = roll_up(dialogue(count), stored, policy(25), FlatCounter())
        saves += bool(snapshot.folded)
        stored = snapshot.stored
    lines = visible_text(stored).splitlines()
    assert [lines.count(bullet(message)) for message in dialogue(5)] == [1] * 5
    assert saves == 2


def test_the_marker_alone_is_enough_to_repeat_no_message():
    stored = StoredSummary()
    for count in (5, 5, 7):
        snapshot = roll_up(dialogue(count), stored, policy(25), FlatCounter())
        stored = StoredSummary(snapshot.stored.text)
    lines = visible_text(stored).splitlines()
    assert [lines.count(bullet(message)) for message in dialogue(5)] == [1] * 5


def test_a_new_summary_begins_with_one_title():
    first = fold_as_bullets(StoredSummary(), dialogue(2), cap=0, counter=HeuristicCounter())
    second = fold_as_bullets(first.summary, dialogue(2, first=3), cap=0, counter=HeuristicCounter())
    assert visible_text(second.summary).count(TITLE) == 1


def test_a_bullet_is_clipped_to_280_characters_and_told():
    folded = fold_as_bullets(StoredSummary(), [Message("user", "x" * 300, 1)], cap=0, counter=HeuristicCounter())
    assert f"- user: {'x' * 280}…[+20 chars]" in folded.summary.text
    assert [(cut.what, cut.kept, cut.dropped) for cut in folded.cuts] == [(CutKind.BULLET, 280, 20)]


def test_a_nameless_speaker_is_called_unknown_and_lines_are_kept():
    folded = fold_as_bullets(StoredSummary(), [Message(" ", "a\nb", 1)], cap=0, counter=HeuristicCounter())
    assert visible_text(folded.summary).endswith("- unknown: a\nb")


def test_blank_messages_leave_no_line_but_count_as_folded():
    blank = [Message("user", "  ", 1), Message("user", "\n", 2)]
    folded = fold_as_bullets(StoredSummary(), blank, cap=0, counter=HeuristicCounter())
    assert visible_text(folded.summary) == ""
    assert folded.summary.folded_through == 2


@pytest.mark.parametrize("cap", [18, 4])
def test_a_cap_keeps_the_newest_part_and_the_marker_whole(cap):
    history = dialogue(10, text="a line of about fifty-one characters, number {}......")
    snapshot = roll_up(history, StoredSummary(), policy(28, cap=cap), HeuristicCounter())
    body, hashes = split_marker(snapshot.stored.text)
    assert body.startswith("…")
    assert HeuristicCounter().count(body) <= cap
    assert len(hashes) == 8
    assert CutKind.SUMMARY in {cut.what for cut in snapshot.cuts}


def test_the_request_copy_keeps_to_the_reserve_and_the_stored_text_stays_whole():
    history = dialogue(10, text="a line of about fifty-one characters, number {}......")
    snapshot = roll_up(history, StoredSummary(), policy(28, cap=0, reserve=12), HeuristicCounter())
    assert HeuristicCounter().count(snapshot.summary) <= 12
    assert HeuristicCounter().count(visible_text(snapshot.stored)) > 12
    assert CutKind.SUMMARY_REQUEST in {cut.what for cut in snapshot.cuts}


def test_the_marker_is_never_sent():
    snapshot = roll_up(dialogue(40), StoredSummary(), policy(50), FlatCounter())
    assert "[fold:" not in snapshot.summary


def test_pruning_without_folding_leaves_the_summary_alone():
    history = [Message("tool", f"## Tool Results\n- look: ok {n}", n) for n in (1, 2, 3)]
    snapshot = roll_up(history, StoredSummary("kept"), policy(1000, kept_tool_results=1), FlatCounter())
    assert (list(snapshot.recent), snapshot.folded, snapshot.stored.text) == ([history[2]], (), "kept")
    assert [(cut.what, cut.dropped) for cut in snapshot.cuts] == [(CutKind.PRUNED, 2)]


def test_more_than_thirty_messages_are_folded_and_not_lost():
    history = dialogue(45)
    snapshot = roll_up(history, StoredSummary(), policy(100_000), HeuristicCounter())
    lines = snapshot.summary.splitlines()
    assert len(snapshot.recent) <= 30
    assert all((message in snapshot.recent) != (bullet(message) in lines) for message in history)


def test_without_summaries_the_messages_left_out_are_told():
    snapshot = roll_up(dialogue(45), StoredSummary("old"), policy(100_000, summarize=False), HeuristicCounter())
    cut = next(cut for cut in snapshot.cuts if cut.what is CutKind.HISTORY_WINDOW)
    assert (snapshot.summary, snapshot.folded) == ("", ())
    assert (cut.kept, cut.dropped) == (len(snapshot.recent), 45 - len(snapshot.recent))
    assert "no summary" in cut.detail


def test_the_newest_message_is_sent_however_long_it_is():
    history = [*dialogue(3), Message("user", "x" * 10_000, 4)]
    snapshot = roll_up(history, StoredSummary(), policy(32), HeuristicCounter())
    assert snapshot.recent == (history[-1],)


def test_compacting_ten_times_changes_nothing_after_the_first():
    history = dialogue(60)
    stored = roll_up(history, StoredSummary(), policy(100), FlatCounter()).stored
    for _ in range(10):
        again = roll_up(history, stored, policy(100), FlatCounter())
        assert (again.folded, again.stored) == ((), stored)


def test_the_start_of_the_window_stays_put_for_several_messages():
    starts = set()
    for count in range(41, 49):
        snapshot = roll_up(dialogue(count), StoredSummary(), policy(100_000), HeuristicCounter())
        starts.add(snapshot.recent[0].number)
    assert len(starts) <= 2


def test_a_fold_that_was_not_saved_is_made_again_in_the_same_place():
    history = dialogue(50)
    fresh = roll_up(history, StoredSummary(), policy(100_000), HeuristicCounter())
    earlier = roll_up(history[:38], StoredSummary(), policy(100_000), HeuristicCounter())
    later = roll_up(history, earlier.stored, policy(100_000), HeuristicCounter())
    assert later.recent == fresh.recent


contents = st.text(alphabet="ab \nж😀", max_size=60)
histories = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), contents), min_size=1, max_size=80)


@settings(max_examples=150)
@given(
    histories, st.lists(st.tuples(st.integers(1, 12), st.integers(8, 400)), min_size=1, max_size=10), st.integers(1, 40)
)
def test_every_message_is_either_verbatim_or_folded_exactly_once(spoken, turns, window):
    """Histories that grow, budgets that change, folds that are saved or thrown away."""
    history = [Message(role, content, number) for number, (role, content) in enumerate(spoken, 1)]
    stored, folded, end = StoredSummary(), [], 0
    for step, budget in turns:
        end = min(len(history), end + step)
        now = history[:end]
        options = policy(budget, messages=window, cap=0, prune=False)
        snapshot = roll_up(now, stored, options, HeuristicCounter())
        assert snapshot == roll_up(now, stored, options, HeuristicCounter())
        assert [*folded, *snapshot.folded, *snapshot.recent] == now
        assert len(snapshot.recent) <= max(1, window)
        if budget % 3:
            folded += snapshot.folded
            stored = snapshot.stored
