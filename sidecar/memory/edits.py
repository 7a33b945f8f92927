"""The edits of a document: plain text in, plain text out.

Matching is exact: case counts, nothing is normalised, lines end with ``\\n`` alone. All lengths are code points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sidecar.errors import InvalidInput, LorekeeperError, NotFound, Reason
from sidecar.memory.nearest import NearLine, nearest_lines


class Action(StrEnum):
    """What an edit does; the names are those that a model uses."""

    WRITE = "write"
    APPEND = "append"
    CLEAR = "clear"
    STR_REPLACE = "str_replace"
    INSERT = "insert"
    DELETE = "delete"
    RENAME = "rename"


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit, with the parameters that its action uses; None means not given.

    ``content`` and ``new_text`` stand for each other: see :func:`apply`.
    """

    action: Action
    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    anchor: str | None = None
    line: int | None = None
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """The document after an edit, and what was done in a few words without any of its text."""

    text: str
    done: str


class TextNotFound(NotFound):
    """The text, anchor or label is not in the document; ``nearest`` are the lines most like it."""

    def __init__(self, message: str, field: str, nearest: Sequence[NearLine]) -> None:
        super().__init__(message, reason=Reason.NOT_FOUND, field=field)
        self.nearest = tuple(nearest)


def apply(text: str, edit: Edit) -> Change:
    """``text`` after one edit. An edit that changes nothing returns the same text.

    ``new_text`` wins over ``content`` in str_replace and rename; in any other action the two must agree where both
    are given. Raises InvalidInput or TextNotFound, whose ``field`` is the parameter's name.
    """
    if edit.action not in (Action.STR_REPLACE, Action.RENAME):
        require_one_text(edit.content, edit.new_text)
    return _APPLIED[edit.action](text, edit)


def replaced_length(text: str, edit: Edit) -> int:
    """How long a replacement of every match would make ``text``, which may be many times longer; 0 for other edits."""
    if edit.action is not Action.STR_REPLACE or not edit.replace_all or not edit.old_text:
        return 0
    return len(text) + text.count(edit.old_text) * (len(edit.new_text or edit.content or "") - len(edit.old_text))


def require_one_text(content: str | None, new_text: str | None) -> None:
    """Raises InvalidInput where both are given and differ: it cannot be known which one is meant."""
    if content and new_text and content != new_text:
        raise _invalid(Reason.CONFLICTING_TEXT, "new_text", "content and new_text differ; give one of them")


def _write(text: str, edit: Edit) -> Change:
    content = _content(edit)
    return Change(content, "memory holds exactly this already" if content == text else "memory replaced")


def _append(text: str, edit: Edit) -> Change:
    content = _content(edit)
    if text and content.strip() in (line.strip() for line in text.split("\n")):
        return Change(text, "memory has this line already")
    return Change(f"{text}\n{content}" if text else content, "line added to memory")


def _clear(text: str, edit: Edit) -> Change:
    return Change("", "memory cleared" if text else "memory was empty already")


def _str_replace(text: str, edit: Edit) -> Change:
    old = _old_text(edit, edit.old_text)
    new = edit.new_text if edit.new_text is not None else edit.content or None
    if new is None:
        raise _invalid(Reason.NEW_TEXT_REQUIRED, "new_text", "str_replace needs new_text; it may be empty")
    _must_hold(text, old, "old_text")
    changed = text.replace(old, new, -1 if edit.replace_all else 1)
    return Change(changed, "every match replaced" if edit.replace_all else "first match replaced")


def _insert(text: str, edit: Edit) -> Change:
    content = _content(edit)
    if edit.line is not None:
        return _insert_before_line(text, content, edit.line)
    if edit.anchor:
        return _insert_after_anchor(text, content, edit.anchor)
    separator = "" if not text or text.endswith("\n") else "\n"
    return Change(text + separator + content, "text added at the end")


def _insert_before_line(text: str, content: str, line: int) -> Change:
    if line <= 0:
        raise _invalid(Reason.LINE_NOT_POSITIVE, "line", "line counts from 1")
    done = f"text inserted before line {line}"
    if not text:
        return Change(content, done)
    start = _start_of_line(text, line)
    if start is None:
        return Change(f"{text}\n{content}", done)
    return Change(text[:start] + _as_block(content) + text[start:], done)


def _start_of_line(text: str, line: int) -> int | None:
    """Where line ``line`` begins; a text that ends with a line break has an empty last line for any larger number."""
    start = 0
    for _ in range(line - 1):
        end = text.find("\n", start)
        if end < 0:
            return len(text) if text.endswith("\n") else None
        start = end + 1
    return start


def _insert_after_anchor(text: str, content: str, anchor: str) -> Change:
    _must_hold(text, anchor, "anchor")
    done = "text inserted after the anchor's line"
    end = text.find("\n", text.find(anchor))
    if end < 0:
        return Change(f"{text}\n{content}", done)
    return Change(text[: end + 1] + _as_block(content) + text[end + 1 :], done)


def _as_block(content: str) -> str:
    return content if content.endswith("\n") else content + "\n"


def _delete(text: str, edit: Edit) -> Change:
    target = edit.old_text if edit.old_text is not None else edit.content or edit.new_text
    old = _old_text(edit, target)
    _must_hold(text, old, "old_text")
    changed = text.replace(old, "", -1 if edit.replace_all else 1)
    return Change(changed, "every match deleted" if edit.replace_all else "first match deleted")


def _rename(text: str, edit: Edit) -> Change:
    old = _label(_old_text(edit, edit.old_text), "old_text")
    new_text = edit.new_text or edit.content
    if not new_text:
        raise _invalid(Reason.NEW_TEXT_REQUIRED, "new_text", "rename needs the new label in new_text")
    new = _label(new_text, "new_text")
    lines = text.split("\n")
    # A label stands at the start of a line, perhaps after heading marks or a list bullet, and ends with its colon.
    labelled = re.compile(rf"(\s*(?:#+ *|[-*+] +)?){re.escape(old)}:")
    for index, line in enumerate(lines):
        if match := labelled.match(line):
            lines[index] = f"{match[1]}{new}:{line[match.end() :]}"
            return Change("\n".join(lines), "label renamed")
    raise TextNotFound("no line begins with this label", "old_text", nearest_lines(text, old))


def _label(text: str, field: str) -> str:
    label = text.strip().removesuffix(":").strip()
    if not label or "\n" in label:
        raise _invalid(Reason.LABEL_BLANK, field, f"{field} must be a label of one line with some text")
    return label


def _content(edit: Edit) -> str:
    content = edit.content or edit.new_text
    if not content:
        raise _invalid(Reason.CONTENT_REQUIRED, "content", f"{edit.action} needs content")
    return content


def _old_text(edit: Edit, target: str | None) -> str:
    if not target:
        raise _invalid(Reason.OLD_TEXT_REQUIRED, "old_text", f"{edit.action} needs the exact text in old_text")
    return target


def _must_hold(text: str, wanted: str, field: str) -> None:
    if wanted not in text:
        message = f"{field} is not in the document; it must match exactly, line breaks and case included"
        raise TextNotFound(message, field, nearest_lines(text, wanted))


def _invalid(reason: Reason, field: str, message: str) -> LorekeeperError:
    return InvalidInput(message, reason=reason, field=field)


_APPLIED: dict[Action, Callable[[str, Edit], Change]] = {
    Action.WRITE: _write,
    Action.APPEND: _append,
    Action.CLEAR: _clear,
    Action.STR_REPLACE: _str_replace,
    Action.INSERT: _insert,
    Action.DELETE: _delete,
    Action.RENAME: _rename,
}
