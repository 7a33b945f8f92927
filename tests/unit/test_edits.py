"""The eight actions: what each makes of a document, what it refuses, and what it never touches."""

from __future__ import annotations

import pytest

from sidecar.errors import InvalidInput, LorekeeperError, Reason
from sidecar.memory.edits import Action, Edit, TextNotFound, apply


def made(text, action, **parameters):
    return apply(text, Edit(Action(action), **parameters)).text


def refused(text, action, **parameters):
    with pytest.raises(LorekeeperError) as caught:
        apply(text, Edit(Action(action), **parameters))
    return caught.value


EXAMPLES = [
    # document, action, parameters, document after it
    ("old", "write", {"content": "Test memory content"}, "Test memory content"),
    ("old", "write", {"content": " \n"}, " \n"),
    ("", "append", {"content": "a"}, "a"),
    ("a", "append", {"content": "b"}, "a\nb"),
    ("a\n", "append", {"content": "b"}, "a\n\nb"),
    ("a", "append", {"content": " b "}, "a\n b "),
    ("a\nb", "append", {"content": " a "}, "a\nb"),
    ("  a  \nb", "append", {"content": "a"}, "  a  \nb"),
    ("a\nb", "append", {"content": "a\nb"}, "a\nb\na\nb"),
    ("a", "append", {"content": " "}, "a\n "),
    ("a\n\nb", "append", {"content": " "}, "a\n\nb"),
    ("", "append", {"content": " "}, " "),
    ("a", "clear", {}, ""),
    ("", "clear", {}, ""),
    ("Quest: old\nQuest: old", "str_replace", {"old_text": "old", "new_text": "new"}, "Quest: new\nQuest: old"),
    ("a a a", "str_replace", {"old_text": "a", "new_text": "b", "replace_all": True}, "b b b"),
    ("aaa", "str_replace", {"old_text": "aa", "new_text": "b", "replace_all": True}, "ba"),
    ("a.c abc", "str_replace", {"old_text": "a.c", "new_text": "x"}, "x abc"),
    ("abc", "str_replace", {"old_text": "b", "new_text": ""}, "ac"),
    ("abc", "str_replace", {"old_text": "b", "new_text": "b"}, "abc"),
    ("abc", "str_replace", {"old_text": "b", "content": "x"}, "axc"),
    ("abc", "str_replace", {"old_text": "b", "content": "x", "new_text": "y"}, "ayc"),
    ("abc", "str_replace", {"old_text": "b", "content": "x", "new_text": ""}, "ac"),
    ("a\nb", "insert", {"content": "X", "line": 1}, "X\na\nb"),
    ("a\nb", "insert", {"content": "X", "line": 2}, "a\nX\nb"),
    ("a\nb", "insert", {"content": "X", "line": 3}, "a\nb\nX"),
    ("a\nb", "insert", {"content": "X", "line": 99}, "a\nb\nX"),
    ("a\n", "insert", {"content": "X", "line": 2}, "a\nX\n"),
    ("a\n", "insert", {"content": "X", "line": 99}, "a\nX\n"),
    ("a\nb", "insert", {"content": "X\n", "line": 2}, "a\nX\nb"),
    ("", "insert", {"content": "X", "line": 1}, "X"),
    ("", "insert", {"content": "X", "line": 7}, "X"),
    ("a\nb", "insert", {"content": "X", "line": 1, "anchor": "not there"}, "X\na\nb"),
    ("a1\nb", "insert", {"content": "X", "anchor": "a"}, "a1\nX\nb"),
    ("a\nb", "insert", {"content": "X", "anchor": "b"}, "a\nb\nX"),
    ("a\na\nb", "insert", {"content": "X", "anchor": "a"}, "a\nX\na\nb"),
    ("one\ntwo\nthree", "insert", {"content": "X", "anchor": "one\ntwo"}, "one\nX\ntwo\nthree"),
    ("a", "insert", {"content": "X"}, "a\nX"),
    ("a\n", "insert", {"content": "X"}, "a\nX"),
    ("", "insert", {"content": "X"}, "X"),
    ("a", "insert", {"content": "X", "anchor": ""}, "a\nX"),
    ("Keep\nDelete me\nKeep\nDelete me", "delete", {"old_text": "Delete me\n"}, "Keep\nKeep\nDelete me"),
    ("a\nb\nc", "delete", {"old_text": "b"}, "a\n\nc"),
    ("a a a", "delete", {"old_text": "a", "replace_all": True}, "  "),
    ("abc", "delete", {"content": "b"}, "ac"),
    ("abc", "delete", {"new_text": "b"}, "ac"),
    ("Name: a\nName: b", "rename", {"old_text": "Name", "new_text": "Title"}, "Title: a\nName: b"),
    ("Profile: calm", "rename", {"old_text": "Profile", "content": "Identity"}, "Identity: calm"),
    ("Profile: calm", "rename", {"old_text": "Profile", "content": "x", "new_text": "Identity"}, "Identity: calm"),
    ("# Crafts: x", "rename", {"old_text": "Crafts", "new_text": "Trade"}, "# Trade: x"),
    ("##Crafts: x", "rename", {"old_text": "Crafts", "new_text": "Trade"}, "##Trade: x"),
    ("  Crafts: x", "rename", {"old_text": "Crafts", "new_text": "Trade"}, "  Trade: x"),
    ("- Crafts: x", "rename", {"old_text": "Crafts", "new_text": "Trade"}, "- Trade: x"),
    ("Crafts: x", "rename", {"old_text": "Crafts:", "new_text": "Trade:"}, "Trade: x"),
    ("Crafts: x", "rename", {"old_text": " Crafts ", "new_text": " Trade "}, "Trade: x"),
    ("Crafts: x\r\nb", "rename", {"old_text": "Crafts", "new_text": "Trade"}, "Trade: x\r\nb"),
    ("My Crafts: x\nCrafts: y", "rename", {"old_text": "Crafts", "new_text": "Trade"}, "My Crafts: x\nTrade: y"),
    ("Price (gold): 5", "rename", {"old_text": "Price (gold)", "new_text": r"\1"}, r"\1: 5"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "action", "parameters", "after"), EXAMPLES)
def test_an_edit_makes_exactly_this_of_the_document(text, action, parameters, after):
    assert made(text, action, **parameters) == after


REFUSED = [
    ("a", "write", {}, Reason.CONTENT_REQUIRED, "content"),
    ("a", "write", {"content": ""}, Reason.CONTENT_REQUIRED, "content"),
    ("a", "append", {"content": ""}, Reason.CONTENT_REQUIRED, "content"),
    ("a", "insert", {"line": 1}, Reason.CONTENT_REQUIRED, "content"),
    ("a", "str_replace", {"new_text": "b"}, Reason.OLD_TEXT_REQUIRED, "old_text"),
    ("a", "str_replace", {"old_text": "", "new_text": "b"}, Reason.OLD_TEXT_REQUIRED, "old_text"),
    ("a", "str_replace", {"old_text": "a"}, Reason.NEW_TEXT_REQUIRED, "new_text"),
    ("a", "str_replace", {"old_text": "a", "content": ""}, Reason.NEW_TEXT_REQUIRED, "new_text"),
    ("a", "delete", {}, Reason.OLD_TEXT_REQUIRED, "old_text"),
    ("a", "delete", {"old_text": "", "content": "a"}, Reason.OLD_TEXT_REQUIRED, "old_text"),
    ("a: b", "rename", {"new_text": "b"}, Reason.OLD_TEXT_REQUIRED, "old_text"),
    ("a: b", "rename", {"old_text": "a"}, Reason.NEW_TEXT_REQUIRED, "new_text"),
    ("a: b", "rename", {"old_text": "a", "new_text": " "}, Reason.LABEL_BLANK, "new_text"),
    ("a: b", "rename", {"old_text": "a", "new_text": ":"}, Reason.LABEL_BLANK, "new_text"),
    ("a: b", "rename", {"old_text": "a", "new_text": "b\nc"}, Reason.LABEL_BLANK, "new_text"),
    ("a: b", "rename", {"old_text": " ", "new_text": "b"}, Reason.LABEL_BLANK, "old_text"),
    ("a", "insert", {"content": "X", "line": 0}, Reason.LINE_NOT_POSITIVE, "line"),
    ("a", "insert", {"content": "X", "line": -3}, Reason.LINE_NOT_POSITIVE, "line"),
    ("a", "write", {"content": "a", "new_text": "b"}, Reason.CONFLICTING_TEXT, "new_text"),
    ("a", "append", {"content": "a", "new_text": "b"}, Reason.CONFLICTING_TEXT, "new_text"),
    ("a", "insert", {"content": "a", "new_text": "b"}, Reason.CONFLICTING_TEXT, "new_text"),
]


@pytest.mark.parametrize(("text", "action", "parameters", "reason", "field"), REFUSED)
def test_a_wrong_edit_is_refused_and_names_its_field(text, action, parameters, reason, field):
    error = refused(text, action, **parameters)
    assert isinstance(error, InvalidInput)
    assert (error.reason, error.field) == (reason, field)


ABSENT = [
    ("str_replace", {"old_text": "Silver", "new_text": "x"}, "old_text"),
    ("delete", {"old_text": "silver ring  "}, "old_text"),
    ("insert", {"content": "X", "anchor": "Silver"}, "anchor"),
    ("rename", {"old_text": "Silver", "new_text": "x"}, "old_text"),
]


@pytest.mark.parametrize(("action", "parameters", "field"), ABSENT)
def test_a_text_that_is_not_there_is_not_found_since_case_and_space_count(action, parameters, field):
    error = refused("silver ring", action, **parameters)
    assert isinstance(error, TextNotFound)
    assert (error.reason, error.field) == (Reason.NOT_FOUND, field)


@pytest.mark.parametrize("line", ["Crafts : x", "crafts: x", "-Crafts: x", "CraftsX: x", "x Crafts:"])
def test_rename_passes_over_lines_that_only_look_like_the_label(line):
    assert refused(line, "rename", old_text="Crafts", new_text="Trade").reason == Reason.NOT_FOUND


def test_composed_and_decomposed_letters_are_different_texts():
    assert refused("caf\u00e9", "delete", old_text="cafe\u0301").reason == Reason.NOT_FOUND


@pytest.mark.parametrize("action", ["write", "append", "insert"])
def test_new_text_stands_for_content_where_that_is_missing_or_the_same(action):
    assert made("", action, new_text="x") == made("", action, content="x", new_text="x") == "x"


def test_the_words_about_an_edit_hold_none_of_its_text():
    for text, action, parameters, _ in EXAMPLES:
        words = apply(text, Edit(Action(action), **parameters)).done
        assert not any(secret in words for secret in ("Quest", "Profile", "Crafts", "Identity", "Delete me"))
