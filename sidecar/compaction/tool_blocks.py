"""Tool results as they stand in the history, and as a prompt shows them.

    ## Tool Results                     tool_result name=give_item status=ok result=Sword given.
    - give_item: ok Sword given.   ──>  tool_result name=open_door status=failed
    - open_door: FAILED

An entry is a bullet at the start of a line; the indented lines below it belong to it, whatever they look like.
Models that see the bookkeeping begin to imitate it in their answers, so prompts carry the flat form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sidecar.compaction.clipping import one_line
from sidecar.compaction.messages import TOOL, Message, is_role

HEADING = "## Tool Results"
DETAIL_LABEL = "Detail:"
_ENTRY = re.compile(r"- (?P<name>\S.*?): (?P<status>ok|FAILED)(?: (?P<detail>.*))?")


@dataclass(frozen=True)
class ToolEntry:
    """One recorded result. ``text`` is the entry verbatim, its indented lines included."""

    name: str
    succeeded: bool
    detail: str
    text: str


def tool_entries(content: str) -> tuple[ToolEntry, ...]:
    """The entries of a block, in their order; empty for a text that holds none."""
    return tuple(part for part in _parts(content) if isinstance(part, ToolEntry))


def flat_text(message: Message) -> str:
    """The content as a prompt or a summary shows it: tool blocks as flat lines, all else untouched."""
    if not is_role(message, TOOL):
        return message.content
    parts = _parts(message.content)
    if not any(isinstance(part, ToolEntry) for part in parts):
        return message.content
    lines = (_flat_line(part) if isinstance(part, ToolEntry) else part for part in parts)
    return "\n".join(line for line in lines if line.strip() != HEADING)


def _parts(content: str) -> list[ToolEntry | str]:
    lines = content.split("\n")
    parts: list[ToolEntry | str] = []
    at = 0
    while at < len(lines):
        end = at + 1
        found = _ENTRY.fullmatch(lines[at].rstrip("\r"))
        if found:
            while end < len(lines) and lines[end][:1] in (" ", "\t"):
                end += 1
            parts.append(_entry(found, lines[at:end]))
        else:
            parts.append(lines[at])
        at = end
    return parts


def _entry(found: re.Match[str], lines: list[str]) -> ToolEntry:
    block = [line.strip() for line in lines[1:]]
    if block and block[0] == DETAIL_LABEL:
        del block[0]
    detail = one_line(" ".join([found["detail"] or "", *block]))
    return ToolEntry(found["name"], found["status"] == "ok", detail, "\n".join(lines).rstrip())


def _flat_line(entry: ToolEntry) -> str:
    status = "ok" if entry.succeeded else "failed"
    result = f" result={entry.detail}" if entry.detail else ""
    return f"tool_result name={entry.name} status={status}{result}"
