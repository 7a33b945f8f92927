"""Where a turn would go, as far as a compaction must know it. Choosing it is another room's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sidecar.chat.roles import Role
from sidecar.compaction.counters import Counters


@dataclass(frozen=True)
class Routed:
    """What is known of a role's backend without asking it; tokens are 0 where nobody says.

    ``text_tools``: whether its model is told of tools in the prompt's text.
    """

    counters: Counters
    model: str = ""
    window: int = 0
    longest: int = 0
    text_tools: bool = False


class Look(Protocol):
    """Asks servers for windows that nobody has told, before a compaction depends on them."""

    async def at_speaker(self, role: Role) -> None: ...

    async def at_writer(self, role: Role, backend_id: str, api_key: str) -> None: ...


# Finds the backend of a role: the role, a backend id or "" for what the role and the routes say. Raises NotFound.
Route = Callable[[Role, str], Routed]
