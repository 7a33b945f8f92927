"""The edits against models that are too simple to be wrong."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from sidecar.memory.edits import Action, Edit, TextNotFound, apply

# Few letters, so that matches, duplicates and blank lines are frequent.
TEXT = st.text(alphabet="ab:# -\n\r\té😀", max_size=40)
SOME = TEXT.filter(bool)
# A document, and a text that is in it.
HOLDING = st.tuples(TEXT, SOME, TEXT).map(lambda parts: ("".join(parts), parts[1]))
LINE_TEXT = st.text(alphabet="ab:# -é😀", min_size=1, max_size=10)


def made(text, action, **parameters):
    return apply(text, Edit(action, **parameters)).text


@given(HOLDING, TEXT)
def test_the_first_match_is_replaced(holding, new):
    text, old = holding
    before, _, after = text.partition(old)
    assert made(text, Action.STR_REPLACE, old_text=old, new_text=new) == before + new + after


@given(HOLDING, TEXT)
def test_every_match_is_replaced_from_left_to_right(holding, new):
    text, old = holding
    replaced = made(text, Action.STR_REPLACE, old_text=old, new_text=new, replace_all=True)
    assert replaced == new.join(text.split(old))


@given(HOLDING, st.booleans())
def test_delete_removes_the_text_and_nothing_beside_it(holding, everything):
    text, old = holding
    removed = made(text, Action.DELETE, old_text=old, replace_all=everything)
    assert len(text) - len(removed) == len(old) * (text.count(old) if everything else 1)
    assert removed == text.replace(old, "", -1 if everything else 1)


@given(TEXT, SOME, TEXT)
def test_what_is_not_there_is_never_guessed(text, old, new):
    assume(old not in text)
    for edit in (
        Edit(Action.STR_REPLACE, old_text=old, new_text=new),
        Edit(Action.DELETE, old_text=old),
        Edit(Action.INSERT, content="X", anchor=old),
    ):
        try:
            apply(text, edit)
        except TextNotFound as error:
            assert all(near.text in text for near in error.nearest)
        else:
            raise AssertionError("the edit was applied")


@given(TEXT, LINE_TEXT, st.integers(1, 60))
def test_insert_by_line_puts_one_line_before_that_line(text, content, line):
    lines = text.split("\n")
    empty_end = bool(text) and lines[-1] == ""
    if not text:
        expected = content
    elif line > len(lines):
        expected = "\n".join([*lines[:-1], content, ""] if empty_end else [*lines, content])
    else:
        expected = "\n".join([*lines[: line - 1], content, *lines[line - 1 :]])
    assert made(text, Action.INSERT, content=content, line=line) == expected


@given(HOLDING, LINE_TEXT)
def test_insert_by_anchor_puts_one_line_after_the_line_where_the_anchor_begins(holding, content):
    text, anchor = holding
    lines = text.split("\n")
    index = text[: text.index(anchor)].count("\n")
    expected = "\n".join([*lines[: index + 1], content, *lines[index + 1 :]])
    assert made(text, Action.INSERT, content=content, anchor=anchor) == expected


@given(TEXT, SOME)
def test_append_keeps_the_document_as_its_beginning(text, content):
    after = made(text, Action.APPEND, content=content)
    duplicate = bool(text) and content.strip() in [line.strip() for line in text.split("\n")]
    assert after == (text if duplicate else text + "\n" + content if text else content)


@given(TEXT, LINE_TEXT, st.one_of(st.none(), st.integers(1, 60)))
def test_no_insert_or_append_ever_loses_a_line(text, content, line):
    for after in (made(text, Action.INSERT, content=content, line=line), made(text, Action.APPEND, content=content)):
        left = iter(after.split("\n"))
        assert all(any(kept == wanted for kept in left) for wanted in text.split("\n") if wanted)


@given(st.lists(LINE_TEXT, max_size=6), st.text("ab", min_size=1, max_size=3), st.text("cd", min_size=1, max_size=3))
def test_rename_changes_one_line_and_only_its_label(lines, old, new):
    text = "\n".join(lines)
    try:
        after = made(text, Action.RENAME, old_text=old, new_text=new).split("\n")
    except TextNotFound:
        return
    changed = [(before, now) for before, now in zip(text.split("\n"), after, strict=True) if before != now]
    assert len(changed) == 1
    before, now = changed[0]
    assert before.replace(f"{old}:", f"{new}:", 1) == now
