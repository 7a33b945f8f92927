"""One chat message, as compaction sees it. Data only."""

from __future__ import annotations

from dataclasses import dataclass

USER = "user"
ASSISTANT = "assistant"
TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the history. ``number`` counts the messages of one history from 1 and is never used again."""

    role: str
    content: str
    number: int = 0


def is_role(message: Message, role: str) -> bool:
    """Whether the message is of that role, whatever its case."""
    return message.role == role or message.role.strip().casefold() == role
