"""What a record is: one remembered thing at a moment of the game, never changed, only superseded or forgotten.

    Record ── head      what filters and ranking look at; small, kept in memory for every record of an open owner
           ├─ payload   JSON text exactly as given
           ├─ text      to be searched
           └─ metadata  the game's own notes, never searched

Pure rules: no file is touched here, and nothing asks what time it is on the wall.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from sys import intern
from typing import Any

from sidecar.memory.canonical_json import canonical, string_leaves
from sidecar.memory.moments import Moment, moment_of, moment_row
from sidecar.storage.keys import ActorId

EVERYONE = "*"
_NO_METADATA: Mapping[str, str] = {}
_sorted = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


class Kind(StrEnum):
    """What kind of thing is remembered."""

    EVENT = "event"
    FACT = "fact"
    RELATIONSHIP = "relationship"
    GOAL = "goal"
    REFLECTION = "reflection"
    PROCEDURE = "procedure"
    TURN = "turn"


class Authority(StrEnum):
    """Who vouches for a record."""

    DESIGNER = "designer"
    GAME = "game"
    MODEL = "model"
    ARCHIVE = "archive"
    IMPORT = "import"


class ShareKind(StrEnum):
    """How somebody else came to know a record; being there is better than having been told."""

    WITNESS = "witness"
    HEARSAY = "hearsay"


@dataclass(frozen=True, slots=True)
class Share:
    """One other actor of the save who knows a record, since when, and how surely (0 to 1)."""

    recipient: ActorId
    kind: ShareKind
    moment: Moment
    told_by: ActorId | None = None
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class RecordHead:
    """The part of a record that decides whether it is found."""

    record_id: str
    scope: str
    kind: Kind
    moment: Moment
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    expires: Moment | None = None
    source_input_id: str = ""
    conversation_id: str = ""
    ordinal: int | None = None
    authority: Authority = Authority.GAME
    audience: tuple[str, ...] = ()
    speaker: str = ""
    pinned: bool = False
    supersedes: str = ""

    @property
    def archived(self) -> bool:
        """Whether it is a turn of a conversation that the daemon archived, and no memory that the game keeps."""
        return self.kind is Kind.TURN and self.authority is Authority.ARCHIVE


@dataclass(frozen=True, slots=True)
class Record:
    """One memory. ``shares`` are those that it was added with."""

    head: RecordHead
    payload: str = "{}"
    text: str = ""
    metadata: Mapping[str, str] = field(default_factory=lambda: _NO_METADATA)
    shares: tuple[Share, ...] = ()


def searched_text(record: Record) -> str:
    """What is searched by words and by meaning, each part once: the searchable text with who spoke it, the payload's
    text values (never its names or escapes), and the tags."""
    speaker, text = record.head.speaker, record.text
    spoken = f"{speaker}: {text}" if speaker and text else speaker or text
    leaves = (leaf for leaf in string_leaves(json.loads(record.payload)) if leaf != text)
    return "\n".join(dict.fromkeys(part for part in (spoken, *leaves, *record.head.tags) if part))


def content_hash(record: Record) -> str:
    """32 hexadecimal digits over all that was given; equal for texts of JSON that say the same."""
    return hash_of_row(record_row(record))


def hash_of_row(row: Mapping[str, Any]) -> str:
    """The :func:`content_hash` of a record whose :func:`record_row` is known already."""
    given = _sorted({name: value for name, value in row.items() if name != "payload"})
    payload = canonical(json.loads(row["payload"]))
    return hashlib.sha256(f"{given}\n{payload}".encode()).hexdigest()[:32]


def record_row(record: Record) -> dict[str, Any]:
    """The form in a journal; what has its default is left out."""
    head = record.head
    row: dict[str, Any] = {
        "id": head.record_id,
        "scope": head.scope,
        "kind": head.kind.value,
        "moment": moment_row(head.moment),
        "importance": head.importance,
        "payload": record.payload,
    }
    optional = {
        "text": record.text,
        "tags": list(head.tags),
        "expires": moment_row(head.expires) if head.expires else None,
        "source": head.source_input_id,
        "conversation": head.conversation_id,
        "ordinal": head.ordinal,
        "authority": head.authority.value if head.authority is not Authority.GAME else "",
        "audience": list(head.audience),
        "speaker": head.speaker,
        "pinned": head.pinned,
        "supersedes": head.supersedes,
        "metadata": dict(record.metadata),
        "shares": [share_row(share) for share in record.shares],
    }
    row.update((name, value) for name, value in optional.items() if value or (name == "ordinal" and value == 0))
    return row


def record_of(row: Mapping[str, Any], save: str) -> Record:
    """The record of a :func:`record_row`. Raises KeyError, TypeError or ValueError for anything else."""
    return Record(
        head=head_of(row),
        payload=row["payload"],
        text=row.get("text", ""),
        metadata=row.get("metadata", _NO_METADATA),
        shares=tuple(share_of(share, save) for share in row.get("shares", ())),
    )


def head_of(row: Mapping[str, Any]) -> RecordHead:
    """The head of a :func:`record_row`. Texts that many records share are kept once."""
    expires = row.get("expires")
    return RecordHead(
        record_id=row["id"],
        scope=intern(row["scope"]),
        kind=Kind(row["kind"]),
        moment=moment_of(row["moment"]),
        importance=float(row["importance"]),
        tags=tuple(map(intern, row.get("tags", ()))),
        expires=moment_of(expires) if expires else None,
        source_input_id=row.get("source", ""),
        conversation_id=intern(row.get("conversation", "")),
        ordinal=row.get("ordinal"),
        authority=Authority(row.get("authority", Authority.GAME)),
        audience=tuple(row.get("audience", ())),
        speaker=intern(row.get("speaker", "")),
        pinned=row.get("pinned", False),
        supersedes=row.get("supersedes", ""),
    )


def share_row(share: Share) -> dict[str, Any]:
    """The form of a share in a journal; the save is that of the owner."""
    row: dict[str, Any] = {
        "to": actor_row(share.recipient),
        "kind": share.kind.value,
        "moment": moment_row(share.moment),
    }
    if share.told_by:
        row["told_by"] = actor_row(share.told_by)
    if share.confidence != 1.0:
        row["confidence"] = share.confidence
    return row


def share_of(row: Mapping[str, Any], save: str) -> Share:
    """The share of a :func:`share_row` in ``save``."""
    told_by = row.get("told_by")
    return Share(
        recipient=actor_of(row["to"], save),
        kind=ShareKind(row["kind"]),
        moment=moment_of(row["moment"]),
        told_by=actor_of(told_by, save) if told_by else None,
        confidence=float(row.get("confidence", 1.0)),
    )


def actor_row(who: ActorId) -> list[str]:
    """An address within its save: actor, role, player, topic, tenant, without empty parts at the end."""
    parts = [who.actor, who.role, who.player, who.topic, who.tenant]
    while parts and not parts[-1]:
        parts.pop()
    return parts


def actor_of(row: list[str], save: str) -> ActorId:
    """The address of an :func:`actor_row`."""
    return ActorId(save, *row, *[""] * (5 - len(row)))
