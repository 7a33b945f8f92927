"""Where a turn would go: what of the backend a prompt depends on. Choosing it is another room's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sidecar.chat.prompts import Prompt
from sidecar.chat.roles import Role
from sidecar.compaction.counters import Counters
from sidecar.gen.lorekeeper.v1 import chat_pb2


@dataclass(frozen=True)
class Aimed:
    """``window`` and ``longest`` are tokens, 0 where nobody says; ``body`` makes the request's body without a key."""

    backend_id: str
    model: str
    window: int
    longest: int
    tail_as_system: bool
    body: Callable[[Prompt], dict[str, Any]]


@dataclass(frozen=True)
class Routed:
    """What is known of a role's backend without asking it; tokens are 0 where nobody says."""

    counters: Counters
    model: str = ""
    window: int = 0
    longest: int = 0


# Finds the backend of a role: the role, a backend id or "" for what the role and the routes say. Raises NotFound.
Route = Callable[[Role, str], Routed]


class Aim(Protocol):
    """Chooses as a turn does. Raises NotFound."""

    async def __call__(self, role: Role, turn: chat_pb2.TurnInput) -> Aimed: ...


async def nowhere(role: Role, turn: chat_pb2.TurnInput) -> Aimed:
    """For who has no backends: the window and the longest answer are what the turn and its role say."""
    window = turn.context_tokens or role.context_tokens
    longest = turn.max_output_tokens or role.max_output_tokens
    return Aimed("", "", window, longest, False, lambda prompt: {})
