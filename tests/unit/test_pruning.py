"""What the prompt's copy of the history leaves out, and what it must not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidecar.compaction.messages import Message
from sidecar.compaction.pruning import prune, strip_reasoning
from sidecar.compaction.tool_blocks import flat_text, tool_entries


def block(*entries):
    return Message("tool", "\n".join(["## Tool Results", *entries]))


def user(text):
    return Message("user", text)


def npc(text):
    return Message("assistant", text)


def test_only_the_newest_tool_messages_stay_and_all_talk_does():
    talk = [user("a"), npc("b"), user("c"), npc("d")]
    tools = [block(f"- look: ok {number}") for number in range(3)]
    history = [talk[0], tools[0], talk[1], tools[1], talk[2], tools[2], talk[3]]
    assert prune(history, kept_tool_results=2) == [talk[0], talk[1], tools[1], talk[2], tools[2], talk[3]]


def test_no_tool_message_stays_when_none_may():
    assert prune([user("a"), block("- look: ok"), npc("b")], kept_tool_results=0) == [user("a"), npc("b")]


def test_repeats_in_a_row_by_the_same_speaker_are_left_out():
    history = [user("same"), user(" same \n"), npc("same"), user("same")]
    assert prune(history, kept_tool_results=3) == [history[0], history[2], history[3]]


def test_the_same_result_again_replaces_the_older_one():
    older, newer = block("- look: ok a door"), block("- look: ok a door")
    assert prune([older, user("x"), newer], kept_tool_results=3) == [user("x"), newer]


def test_a_new_result_of_the_same_tool_does_not_replace_the_older_one():
    history = [block("- look: ok a door"), user("x"), block("- look: ok a wall")]
    assert prune(history, kept_tool_results=3) is history


def test_a_block_that_is_repeated_only_in_part_stays():
    history = [block("- look: ok a door", "- wait: ok"), user("x"), block("- look: ok a door")]
    assert prune(history, kept_tool_results=3) is history


def test_an_entry_that_stands_inside_a_detail_is_no_entry():
    nested = block("- run: ok", "  Detail:", "  - look: ok a door")
    history = [block("- look: ok a door"), user("x"), nested]
    assert prune(history, kept_tool_results=3) is history


def test_full_blocks_with_other_details_both_stay():
    one = block("- run: ok", "  Detail:", "  line 1")
    other = block("- run: ok", "  Detail:", "  line 2")
    history = [one, user("x"), other]
    assert prune(history, kept_tool_results=3) is history


def test_a_tool_message_without_entries_is_never_taken_for_repeated():
    history = [Message("tool", "free words"), user("x"), block("- look: ok")]
    assert prune(history, kept_tool_results=3) is history


def test_reasoning_stays_only_in_the_newest_answer():
    history = [npc("<think>a</think>one"), user("x"), npc("<think>b</think>two")]
    assert prune(history, kept_tool_results=3) == [npc("one"), user("x"), npc("<think>b</think>two")]


def test_an_answer_of_nothing_but_reasoning_goes():
    assert prune([npc("<think>a</think>"), user("x"), npc("two")], kept_tool_results=3) == [user("x"), npc("two")]


def test_half_open_reasoning_is_removed():
    assert strip_reasoning("thoughts</think> answer") == "answer"
    assert strip_reasoning("answer <think>thoughts") == "answer"
    assert strip_reasoning("<think>a<think>b</think>c</think>d") == "d"
    assert strip_reasoning("  no reasoning  ") == "  no reasoning  "


def test_what_needs_no_pruning_comes_back_as_the_same_object():
    history = [user("a"), npc("b")]
    assert prune(history, kept_tool_results=3) is history


messages = st.lists(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "tool"]),
        st.sampled_from(["a", "b", "## Tool Results\n- look: ok", "## Tool Results\n- look: FAILED x", "<think>a"]),
    ),
    max_size=12,
)


@given(messages, st.integers(0, 4))
def test_pruning_leaves_out_no_words_of_the_player_but_repeats_in_a_row(history, kept):
    said = [
        m
        for i, m in enumerate(history)
        if i == 0 or (history[i - 1].role, history[i - 1].content) != (m.role, m.content)
    ]
    pruned = prune(history, kept_tool_results=kept)
    assert [m for m in pruned if m.role == "user"] == [m for m in said if m.role == "user"]


@given(messages, st.integers(0, 4))
def test_pruning_keeps_at_most_the_allowed_tool_messages_and_the_order(history, kept):
    pruned = list(prune(history, kept_tool_results=kept))
    assert sum(1 for message in pruned if message.role == "tool") <= kept
    rest = iter(history)
    assert all(any(m.role == message.role for m in rest) for message in pruned)


def test_a_tool_block_is_shown_as_flat_lines():
    message = block("- give: ok Sword given.", "- open: FAILED locked", "- wait: ok")
    assert flat_text(message) == (
        "tool_result name=give status=ok result=Sword given.\n"
        "tool_result name=open status=failed result=locked\n"
        "tool_result name=wait status=ok"
    )


def test_a_full_detail_is_shown_on_its_entrys_line():
    message = block("- run: ok", "  Detail:", "  line 1", "  - look: ok", "", "after")
    assert flat_text(message) == "tool_result name=run status=ok result=line 1 - look: ok\n\nafter"


def test_other_text_is_shown_as_it_is():
    assert flat_text(user("## Tool Results\n- give: ok")) == "## Tool Results\n- give: ok"
    assert flat_text(Message("tool", "plain")) == "plain"


def test_an_entry_needs_ok_or_failed_as_a_word():
    assert tool_entries("- a: okay\n- b: FAILED\n- c: ok fine\n -d: ok\n- e : ok") != ()
    assert [entry.name for entry in tool_entries("- a: okay\n- b: FAILED\n- c: ok fine")] == ["b", "c"]
