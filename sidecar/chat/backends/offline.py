"""The backend without a server: a role's own lines, one after another, always the same. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sidecar.chat.backends.wire import ASSISTANT, Answer, WireMessage

DEFAULT_LINE = "I cannot answer that now."


def offline_answer(messages: Sequence[WireMessage], lines: Sequence[str]) -> Iterator[str | Answer]:
    """The words of the next line, then the end."""
    line = next_line(messages, lines)
    head, *rest = line.split(" ")
    yield head
    for word in rest:
        yield f" {word}"
    yield Answer(finish="stop", model="offline")


def next_line(messages: Sequence[WireMessage], lines: Sequence[str]) -> str:
    """The line after the one that was said last; the first where none was said."""
    usable = [line for line in lines if line.strip()] or [DEFAULT_LINE]
    said = next((each.content for each in reversed(messages) if each.role == ASSISTANT), None)
    return usable[(usable.index(said) + 1) % len(usable)] if said in usable else usable[0]
