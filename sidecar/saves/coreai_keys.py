"""The keys of CoreAI's memories, which are the names of its files.

A key is the id of a role, or a hash (``scope-v1-…``, ``actor-v1-…``) from which the ids cannot be read: such a memory
goes to the known actor whose key it is, else to an actor that is called by the key.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from sidecar.saves.skipped import Skipped
from sidecar.storage.keys import ActorId, actor_id, actor_key

_HASHED = re.compile(r"(scope|actor)-v1-[0-9a-f]{64}")
_MANGLED = re.compile(r".+_[0-9a-f]{8}")
# What a file name may not hold, here and there: upstream puts an underscore in its place, and a hash behind the name.
_NOT_IN_NAMES = (re.compile(r"[/\0]"), re.compile(r'[\x00-\x1f"*/:<>?\\|]'))


def owner_of(key: str, save: str, owners: Mapping[str, ActorId], skipped: list[Skipped]) -> ActorId:
    """Whose memory lies under a key; ``owners`` are those whose keys are known."""
    if key in owners:
        return owners[key]
    if _HASHED.fullmatch(key):
        skipped.append(Skipped(key, "address", "the ids cannot be read from the key; kept for an actor called by it"))
        return actor_id(save=save, actor=key)
    if _MANGLED.fullmatch(key):
        skipped.append(Skipped(key, "address", "the name may stand for another id; kept for the role called by it"))
    return actor_id(save=save, role=key)


def keys_of(who: ActorId) -> Iterator[str]:
    """The keys, as file names, under which CoreAI would have kept an actor."""
    yield actor_key(who)
    if not any((who.actor, who.tenant, who.player, who.topic)):
        yield from (_file_name(who.role, bad) for bad in _NOT_IN_NAMES)
    if not who.actor:
        parts = (who.tenant, who.player, "", who.topic, who.role)
        canonical = "".join(f"{len(part.encode('utf-16-le')) // 2}:{part};" for part in parts)
        yield "scope-v1-" + hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def _file_name(key: str, bad: re.Pattern[str]) -> str:
    """A key as upstream writes it: where a letter had to go, with the FNV-1a hash of the key behind it."""
    name, digest = bad.sub("_", key), 2_166_136_261
    units = key.encode("utf-16-le", "surrogatepass")
    for place in range(0, len(units), 2):
        digest = (digest ^ int.from_bytes(units[place : place + 2], "little")) * 16_777_619 % 2**32
    return name if name == key else f"{name}_{digest:08x}"
