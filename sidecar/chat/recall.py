"""What a search brings into a prompt: the shape of it. The search itself is another room's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sidecar.chat.roles import RecallOptions
from sidecar.memory.moments import Moment
from sidecar.storage.keys import ActorId


@dataclass(frozen=True)
class RecalledHit:
    """One hit: its text, when in the game it happened, and the contract's message for it."""

    text: str
    moment: Moment | None
    message: Any

    def line(self) -> str:
        """The hit as a prompt shows it, dated by the game's own calendar."""
        return f"- {_date(self.moment)}{self.text}"


@dataclass(frozen=True)
class Recalled:
    """Hits, best first. ``degraded`` is the contract's number of why they are fewer than they could be; 0: they are
    not."""

    hits: Sequence[RecalledHit] = ()
    degraded: int = 0


class Recall(Protocol):
    """Searches what an actor may know at a moment."""

    async def __call__(self, who: ActorId, query: str, options: RecallOptions, moment: Moment) -> Recalled: ...


def _date(moment: Moment | None) -> str:
    if moment is None:
        return ""
    return f"[{moment.calendar or f'tick {moment.tick}'}] "
