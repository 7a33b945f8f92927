"""Records of OpenGameAgent's file store: one JSON file a record, flat or by session and owner.

    <64 hex>.memory.json                                          SHA-256 of session LF owner LF memory
    .memory-v2/s-<session>/o-<owner>/<memory>.memory.json         each name the SHA-256 of the id

A name must be that of the ids in the file. Vectors are dropped: they are made again where a model is there. A session
becomes a save; of several, the one is taken whose id is that of the save.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sidecar.errors import InvalidInput, LorekeeperError, Reason
from sidecar.memory.moments import Moment
from sidecar.memory.record_checks import checked_record
from sidecar.memory.records import Authority, Kind, Record, RecordHead, content_hash
from sidecar.saves.foreign_files import ForeignFiles, shown
from sidecar.saves.skipped import Skipped
from sidecar.settings import RecordSettings
from sidecar.storage.json_file import unique_names
from sidecar.storage.keys import ActorId, actor_id, checked_id

_RECORD = re.compile(r"(?:.*?/)??(?P<name>(?:\.memory-v2/s-[0-9a-f]{64}/o-[0-9a-f]{64}/)?[0-9a-f]{64})\.memory\.json")
_VECTORS = re.compile(r".*\.vector-memory\.json|.*\.vector-partitions-v2/.*|.*\.entry|.*\.vector-memory\.lock")
_PENDING = "pending-add.json"
_KINDS = ("event", "fact", "relationship", "goal", "reflection", "procedure")
T = TypeVar("T")
_Found = tuple[str, str, Mapping[str, Any]]


def read_records(
    files: ForeignFiles, save: str, timeline: str, limits: RecordSettings
) -> tuple[str, list[tuple[ActorId, Record]], list[Skipped]]:
    """The save, its records and what is not taken. An empty ``save`` means the one session that there is;
    moments that name no timeline lie on ``timeline``.

    Raises InvalidInput where several sessions are there and ``save`` names none of them.
    """
    skipped: list[Skipped] = []
    found = list(_stored(files, skipped))
    sessions = {session for session, _, _ in found}
    session = save if save in sessions or len(sessions) <= 1 else ""
    if len(sessions) == 1:
        (session,) = sessions
    if len(sessions) > 1 and not session:
        raise InvalidInput(
            f"there are {len(sessions)} sessions; name one of them as save_id, and import each into a save of its own",
            reason=Reason.FIELD_REQUIRED,
            field="header.save_id",
        )
    others = sum(owner != session for owner, _, _ in found)
    if others:
        skipped.append(Skipped("", "record", "belongs to another session; import it into a save of its own", others))
    target = save or checked_id(session, "header.save_id")
    mine = [(name, stored) for own, name, stored in found if own == session]
    return target, _records(mine, target, timeline, limits, skipped), skipped


def _stored(files: ForeignFiles, skipped: list[Skipped]) -> Iterator[_Found]:
    """Session, file and content of every record that can be read."""
    vectors = 0
    for name in files.names:
        matched = _RECORD.fullmatch(name)
        if _VECTORS.fullmatch(name):
            vectors += 1
        elif matched and (stored := _parsed(files.read(name), matched["name"])) is not None:
            yield stored["SessionId"], name, stored
        elif matched:
            skipped.append(Skipped(shown(name), "record", "cannot be read, or its name is not that of its ids"))
        elif name.endswith(_PENDING) and not _is_whole(files, name):
            skipped.append(Skipped(shown(name), "record", "was being added when its writer ended"))
    if vectors:
        skipped.append(Skipped("", "vector", "vectors are made again where a model is there", vectors))


def _is_whole(files: ForeignFiles, name: str) -> bool:
    """Whether the record that was being added is there all the same: its file comes before the end of that."""
    try:
        pending = json.loads(files.read(name))
        parts = (f"s-{pending['SessionHash']}", f"o-{pending['OwnerHash']}", f"{pending['MemoryHash']}.memory.json")
    except (ValueError, KeyError, TypeError):
        return False
    return name.removesuffix(_PENDING) + "/".join(parts) in files.names


def _parsed(data: bytes, name: str) -> Mapping[str, Any] | None:
    try:
        stored = json.loads(data, object_pairs_hook=unique_names)
        ids = [stored["SessionId"], stored["OwnerId"], stored["MemoryId"]]
        if stored["FormatVersion"] != 1 or name not in _names(ids):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return dict(stored)


def _names(ids: Sequence[str]) -> tuple[str, str]:
    session, owner, memory = map(_hash, ids)
    return _hash("\n".join(ids)), f".memory-v2/s-{session}/o-{owner}/{memory}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _records(
    stored: Sequence[tuple[str, Mapping[str, Any]]],
    save: str,
    timeline: str,
    limits: RecordSettings,
    skipped: list[Skipped],
) -> list[tuple[ActorId, Record]]:
    taken: dict[tuple[ActorId, str], tuple[Record, str]] = {}
    for name, row in stored:
        try:
            owner = actor_id(save=save, actor=row["OwnerId"])
            record = checked_record(_record(row, timeline), "record", limits)
        except LorekeeperError as error:
            skipped.append(Skipped(shown(name), "record", f"is not allowed here: {error.field or error.reason}"))
            continue
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            skipped.append(Skipped(shown(name), "record", "a field is missing or has a wrong type"))
            continue
        key, digest = (owner, record.head.record_id), content_hash(record)
        if key not in taken:
            taken[key] = record, digest
        elif taken[key][1] != digest:
            skipped.append(Skipped(shown(name), "record", "the id is used for other content in another file"))
    return [(owner, record) for (owner, _), (record, _) in taken.items()]


def _record(row: Mapping[str, Any], timeline: str) -> Record:
    return Record(
        head=RecordHead(
            record_id=row["MemoryId"],
            scope=row["Scope"],
            kind=_kind(row["Kind"]),
            moment=_moment(row["Moment"], timeline),
            importance=float(row.get("Importance", 0.5)),
            tags=tuple(_of_type(list, row.get("Tags") or [])),
            expires=_moment(row["ExpiresAt"], timeline) if row.get("ExpiresAt") else None,
            source_input_id=row.get("SourceInputId") or "",
            authority=Authority.IMPORT,
        ),
        payload=row["PayloadJson"],
        text=row.get("SearchableText") or "",
        metadata=_of_type(dict, row.get("Metadata") or {}),
    )


def _of_type(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError("a field has another type")
    return value


def _kind(value: str) -> Kind:
    """By its name, or by its number as text."""
    return Kind(_KINDS[int(value)] if value.isdigit() else value.lower())


def _moment(row: Mapping[str, Any], timeline: str) -> Moment:
    return Moment((row.get("TimelineId") or "").strip() or timeline, int(row["Tick"]), row.get("CalendarJson") or "")
