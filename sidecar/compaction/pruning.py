"""Pruning: what the prompt's copy of the recent messages can do without. Stored messages are never touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sidecar.compaction.messages import ASSISTANT, TOOL, Message, is_role
from sidecar.compaction.tool_blocks import tool_entries

_OPEN = "<think>"
_CLOSE = "</think>"
_SPAN = re.compile(r"<think>.*?</think>", re.DOTALL)


def prune(messages: Sequence[Message], *, kept_tool_results: int) -> Sequence[Message]:
    """The messages without repeats, old reasoning and superseded tool results.

    The very same object comes back when there was nothing to leave out.
    """
    left = _without_repeats(messages)
    left = _without_old_reasoning(left)
    left = _without_superseded_results(left)
    left = _with_newest_results(left, kept_tool_results)
    return messages if left == list(messages) else left


def strip_reasoning(text: str) -> str:
    """The text without ``<think>`` spans, also when a model opened or closed only half of one."""
    if _OPEN not in text and _CLOSE not in text:
        return text
    visible = _SPAN.sub("", text)
    visible = visible.rpartition(_CLOSE)[2]
    return visible.partition(_OPEN)[0].strip()


def _without_repeats(messages: Sequence[Message]) -> list[Message]:
    kept: list[Message] = []
    for message in messages:
        if not kept or not _says_the_same(kept[-1], message):
            kept.append(message)
    return kept


def _says_the_same(one: Message, other: Message) -> bool:
    return one.role == other.role and one.content.strip() == other.content.strip()


def _without_old_reasoning(messages: list[Message]) -> list[Message]:
    answers = [index for index, message in enumerate(messages) if is_role(message, ASSISTANT)]
    shortened = dict.fromkeys(answers[:-1])
    kept = (_visible(message) if index in shortened else message for index, message in enumerate(messages))
    return [message for message in kept if message is not None]


def _visible(message: Message) -> Message | None:
    content = strip_reasoning(message.content)
    if content is message.content:
        return message
    return replace(message, content=content) if content else None


def _without_superseded_results(messages: list[Message]) -> list[Message]:
    newer: set[str] = set()
    kept: list[Message] = []
    for message in reversed(messages):
        entries = _entries_of(message)
        if entries and entries <= newer:
            continue
        newer |= entries
        kept.append(message)
    kept.reverse()
    return kept


def _entries_of(message: Message) -> set[str]:
    if not is_role(message, TOOL):
        return set()
    return {entry.text for entry in tool_entries(message.content)}


def _with_newest_results(messages: list[Message], limit: int) -> list[Message]:
    results = [index for index, message in enumerate(messages) if is_role(message, TOOL)]
    dropped = set(results[: max(0, len(results) - limit)])
    return [message for index, message in enumerate(messages) if index not in dropped]
