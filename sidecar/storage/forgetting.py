"""Who is to be forgotten: one actor, or everyone who is about one player."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.storage.keys import ActorId


@dataclass(frozen=True, slots=True)
class Who:
    """``actor`` for one address (its save does not count), or ``player`` within ``tenant`` for all about a player."""

    actor: ActorId | None = None
    player: str = ""
    tenant: str = ""

    def meets(self, who: ActorId) -> bool:
        """Whether this address is to be forgotten."""
        if self.actor is not None:
            return _within_save(self.actor) == _within_save(who)
        return (self.player, self.tenant) == (who.player, who.tenant)


def _within_save(who: ActorId) -> tuple[str, ...]:
    return (who.actor, who.role, who.player, who.topic, who.tenant)
