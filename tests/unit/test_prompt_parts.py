"""The parts of a prompt, as rules: recalled hits and their budget, fences, the prefix, the memory blocks."""

from __future__ import annotations

import pytest
from compaction_samples import CharCounter
from hypothesis import given
from hypothesis import strategies as st

from sidecar.chat.memory_view import MemorySnapshot, MemoryView, snapshot_of, view_memory
from sidecar.chat.prompt import (
    Frame,
    Section,
    assemble,
    conversation_messages,
    fenced,
    prefix_text,
    recalled_text,
    summary_overhead,
    tail_messages,
)
from sidecar.chat.recall import RecalledHit
from sidecar.chat.roles import BUILT_IN_ROLES, Role
from sidecar.chat.turns.game_tools import tools_from
from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.compaction.tokens import HeuristicCounter
from sidecar.gen.lorekeeper.v1 import chat_pb2
from sidecar.memory.document import Document, edited
from sidecar.memory.edits import Action, Edit
from sidecar.memory.moments import Moment
from sidecar.settings import MemorySettings


def grown(document, *edits):
    for edit in edits:
        document = edited(document, [edit], 0, MemorySettings())[0]
    return document


def write(text):
    return Edit(Action.WRITE, content=text)


def append(text):
    return Edit(Action.APPEND, content=text)


def test_hits_are_taken_whole_best_first_while_there_is_room():
    text, count, cuts = recalled_text(["- aaa", "- bbb", "- c" * 500], max_tokens=60, counter=HeuristicCounter())
    assert count == 2
    assert "- aaa\n- bbb" in text
    assert [(cut.what, cut.kept, cut.dropped) for cut in cuts] == [(CutKind.RECALLED, 2, 1)]


def test_no_hits_make_no_block():
    assert recalled_text([], max_tokens=60, counter=HeuristicCounter()) == ("", 0, ())


@given(st.lists(st.text(max_size=60), max_size=12), st.integers(0, 300))
def test_the_recalled_block_keeps_to_its_budget(hits, budget):
    text, count, cuts = recalled_text(hits, max_tokens=budget, counter=CharCounter())
    assert len(text) <= budget
    assert count + sum(cut.dropped for cut in cuts) == len(hits)


def test_a_hit_is_dated_by_the_games_calendar():
    hits = [
        RecalledHit("They met.", Moment("world", 12, '"3rd of Frost"'), None),
        RecalledHit("They parted.", Moment("world", 13), None),
        RecalledHit("They are.", None, None),
    ]
    assert [hit.line() for hit in hits] == ['- ["3rd of Frost"] They met.', "- [tick 13] They parted.", "- They are."]


@given(st.text(alphabet="`~ab\n", max_size=200))
def test_a_fenced_text_cannot_close_its_fence(text):
    lines = fenced(text).split("\n")
    assert lines[0] == lines[-1]
    assert lines[0] not in lines[1:-1]
    assert "\n".join(lines[1:-1]) == text


def test_every_built_in_prefix_is_the_same_each_time_and_of_its_own():
    prefixes = {role_id: prefix_text(role) for role_id, role in BUILT_IN_ROLES.items()}
    assert prefixes == {role_id: prefix_text(role) for role_id, role in BUILT_IN_ROLES.items()}
    assert len(set(prefixes.values())) == 9


def test_the_contract_of_tools_ends_the_prefix():
    role = Role("Smith", system_prompt="Forge.", additional_prompt="Be kind.", use_universal_prefix=False)
    assert prefix_text(role, tool_contract="Tools: none.") == "Forge.\n\nBe kind.\n\nTools: none."


def test_a_backend_may_take_the_tail_as_system_messages_without_a_frame():
    (entry,) = tail_messages(instructions="Be brief.", as_system=True)
    assert (entry.role, entry.content) == ("system", "## Request System Instructions\nBe brief.")


def test_blank_parts_are_left_out():
    assert tail_messages(instructions=" ", world_state="\n", memory=MemoryView()) == ()
    assert [message.section for message in assemble(Frame("prefix"), ())] == [Section.PREFIX]


def test_the_words_around_a_summary_are_counted_with_it():
    (entry,) = conversation_messages("x" * 400, ())
    assert HeuristicCounter().count(entry.content) <= 100 + summary_overhead(HeuristicCounter())


def test_a_new_document_is_shown_whole():
    document = grown(Document(), write("one"))
    assert view_memory(document, None) == MemoryView("one")


def test_an_unchanged_document_has_no_updates():
    document = grown(Document(), write("one"))
    assert view_memory(document, snapshot_of(document)) == MemoryView("one")


def test_appended_lines_are_updates():
    before = grown(Document(), write("one"))
    view = view_memory(grown(before, append("two"), append("three")), snapshot_of(before))
    assert (view.shown, view.updates) == ("one", "Added since:\ntwo\nthree")


@pytest.mark.parametrize(
    "edit",
    [write("new"), Edit(Action.CLEAR), Edit(Action.DELETE, old_text="one"), Edit(Action.DELETE, old_text="ne")],
)
def test_whatever_may_forget_takes_a_new_snapshot(edit):
    before = grown(Document(), write("one"))
    after = grown(before, edit, append("two"))
    view = view_memory(after, snapshot_of(before))
    assert view == MemoryView(after.text)


def test_a_snapshot_of_versions_that_are_not_kept_any_more_is_taken_anew():
    limits = MemorySettings(max_versions=2)
    before = grown(Document(), write("one"))
    after = before
    for number in range(4):
        after = edited(after, [append(f"line {number}")], 0, limits)[0]
    assert view_memory(after, snapshot_of(before)) == MemoryView(after.text)


def test_a_document_that_began_anew_is_shown_as_it_is():
    assert view_memory(grown(Document(), write("new")), MemorySnapshot("old", 7)) == MemoryView("new")


def test_an_empty_document_is_not_shown():
    before = grown(Document(), write("one"))
    assert view_memory(grown(before, Edit(Action.CLEAR)), snapshot_of(before)) == MemoryView()


actions = st.lists(
    st.one_of(
        st.builds(write, st.sampled_from(["a secret", "b", "c d"])),
        st.builds(append, st.sampled_from(["x", "y", "z"])),
        st.just(Edit(Action.CLEAR)),
    ),
    min_size=1,
    max_size=8,
)


@given(actions, st.integers(0, 8))
def test_snapshot_and_updates_together_are_the_document(edits, taken_at):
    document, snapshot = Document(), None
    for number, edit in enumerate(edits):
        document = grown(document, edit)
        if number == taken_at:
            snapshot = snapshot_of(document)
    view = view_memory(document, snapshot)
    added = view.updates.removeprefix("Added since:\n")
    rebuilt = "\n".join(part for part in (view.shown, added) if part)
    assert rebuilt == document.text or not document.text.strip()
    assert ("secret" in view.shown) <= ("secret" in document.text)


def test_a_long_description_of_a_tool_is_clipped_and_told():
    (tool,) = tools_from([chat_pb2.GameTool(name="alarm", description="x" * 600)], Role("Smith"), "tools")
    assert tool.declared.description == "x" * 500 + "…[+100 chars]"
    assert tool.cut == Cut(CutKind.TOOL_DESCRIPTION, Unit.CODE_POINTS, 500, 100, "of the tool alarm")
