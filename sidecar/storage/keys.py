"""Names on the disk: hashes of ids, so that any id works on any system and none is told by a file name."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sidecar.bounds import Bound, require_length
from sidecar.errors import InvalidInput, Reason

MAX_ID_CHARS = 512
_LONGEST_ID = Bound("max_id_chars", MAX_ID_CHARS)
DEFAULT_SAVE = "default"
DEFAULT_ROLE = "Creator"
_NOBODY = "local"
_FOLDER_DIGITS = 32
_SAVE_FOLDER = re.compile(f"s-[0-9a-f]{{{_FOLDER_DIGITS}}}")
_ACTOR_FOLDER = re.compile(f"a-[0-9a-f]{{{_FOLDER_DIGITS}}}")


class ActorId(NamedTuple):
    """Who remembers, in which save. Build it with :func:`actor_id`: that checks and fills in the defaults."""

    save: str
    actor: str
    role: str
    player: str
    topic: str
    tenant: str


def actor_id(
    *,
    save: str = "",
    actor: str = "",
    role: str = "",
    player: str = "",
    topic: str = "",
    tenant: str = "",
    field: str = "actor",
) -> ActorId:
    """A checked address: parts trimmed, a blank save is ``default``, a blank role is ``Creator``. ``field`` is where it
    stands in the request.

    The actor ``local`` is the one player of a game and identifies nobody: it is the same address as no actor at all.

    Raises InvalidInput for a part of over 512 code points, with control characters or lone surrogates.
    """
    named = trimmed_id(actor, f"{field}.actor_id")
    return ActorId(
        save=trimmed_id(save, f"{field}.save_id") or DEFAULT_SAVE,
        actor="" if named == _NOBODY else named,
        role=trimmed_id(role, f"{field}.role_id") or DEFAULT_ROLE,
        player=trimmed_id(player, f"{field}.player_id"),
        topic=trimmed_id(topic, f"{field}.topic_id"),
        tenant=trimmed_id(tenant, f"{field}.tenant_id"),
    )


def checked_id(value: str, field: str) -> str:
    """``value`` trimmed, or InvalidInput that names the field and the limit. A line break around it is refused, not
    trimmed, as any control character is."""
    whole, value = value, value.strip()
    require_length(value, field, _LONGEST_ID)
    if not whole.isprintable() and any(_is_control(letter) for letter in whole):
        raise InvalidInput(
            f"{field} has control characters or half a surrogate pair; an id may hold any other text",
            reason=Reason.FIELD_INVALID,
            field=field,
        )
    return value


def _is_control(letter: str) -> bool:
    return letter < " " or "\x7f" <= letter <= "\x9f" or "\ud800" <= letter <= "\udfff"


def trimmed_id(value: str, field: str) -> str:
    """The same for the ids of actors and roles, which may have line breaks around them: these are trimmed too."""
    return checked_id(value.strip(), field)


def ordinal(text: str) -> bytes:
    """By what ids are put in order everywhere: their UTF-16 code units, as the engines' own languages sort text."""
    return text.encode("utf-16-be", "surrogatepass")


def actor_key(who: ActorId) -> str:
    """The storage key, ``actor-v1-`` and 64 hexadecimal digits.

    The hash runs over the parts actor, then tenant, player, save-independent session (always empty) and topic where
    one of them is set, then role, each as ``<UTF-16 length>:<text>;``. The save stands outside of the key: an actor's
    folder lies inside its save's, so that a fork is a copy.
    """
    scope = (who.tenant, who.player, "", who.topic)
    parts = (who.actor, *(scope if any(scope) else ()), who.role)
    return "actor-v1-" + _digest("".join(map(_part, parts)))


def _part(text: str) -> str:
    return f"{len(text.encode('utf-16-le')) // 2}:{text};"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@lru_cache(maxsize=256)
def save_folder(root: Path, save: str) -> Path:
    """``saves/s-<key>`` of a save id."""
    return root / "saves" / ("s-" + _digest(_part(save))[:_FOLDER_DIGITS])


def actor_folder(root: Path, who: ActorId) -> Path:
    """``saves/s-<key>/a-<key>`` of an actor."""
    return save_folder(root, who.save) / folder_name(who)


def is_save_folder(name: str) -> bool:
    """Whether a folder of that name is a save's: what file managers and cloud drives put beside it is none."""
    return _SAVE_FOLDER.fullmatch(name) is not None


def is_actor_folder(name: str) -> bool:
    """The same for an actor's, in a save's folder."""
    return _ACTOR_FOLDER.fullmatch(name) is not None


def folder_name(who: ActorId) -> str:
    """``a-<key>`` of an actor."""
    return "a-" + actor_key(who).removeprefix("actor-v1-")[:_FOLDER_DIGITS]
