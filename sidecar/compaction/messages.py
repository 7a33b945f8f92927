"""One chat message, as compaction sees it. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

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
    return _plain(message.role) == role


@lru_cache(maxsize=1_024)
def _plain(role: str) -> str:
    return role.strip().casefold()
