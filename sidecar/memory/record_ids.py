"""Ids of records that are made here: the same place in the same input always gives the same id.

The content is left out on purpose: a repeat with other content meets the first one and fails, instead of becoming a
second memory of the same thing.
"""

from __future__ import annotations

import hashlib
import secrets

from sidecar.memory.moments import Moment
from sidecar.storage.keys import ActorId

#: Begins the ids of archived turns of conversations.
TURN_PREFIX = "lorekeeper-turn:"
_PREFIX = "oga-memory-v1:"
_DOMAIN = "OpenGameAgent.ExtensionOperationId.v1"
REMEMBER = "remember_game_memory"
ADD = "AddRecords"
SUPERSEDE = "SupersedeRecord"


def made_id(owner: ActorId, input_id: str, moment: Moment, *, turn: int, place: int, tool: str) -> str:
    """The id of the record that ``tool`` makes at ``place`` (from 0) of ``turn`` (from 1) for ``input_id``."""
    session = owner.save
    parts = (_DOMAIN, session, owner.actor, input_id, moment.timeline, str(moment.tick), str(turn), str(place), tool)
    encoded = (part.encode("utf-8") for part in (*parts, *_further(owner)))
    digest = hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in encoded))
    return _PREFIX + digest.hexdigest()


def _further(owner: ActorId) -> tuple[str, ...]:
    """The parts of an address that only some games use; without them the id is that of the shared vectors."""
    parts = (owner.player, owner.topic, owner.tenant)
    return parts if any(parts) else ()


def random_id() -> str:
    """An id that nothing can repeat."""
    return "m-" + secrets.token_hex(16)
