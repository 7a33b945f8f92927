"""Memory of CoreAI: documents, versions, histories and rolling summaries, by the key of who remembers.

    AgentMemory/<key>.json                 the document, with its versions as JSON in a text; v1: the history, too
    AgentMemory/<key>.history.jsonl        v2: one row a line
    ConversationSummaries/<key>.json       {"Summary": "…"}

A key is the id of a role, or a hash (``scope-v1-…``, ``actor-v1-…``) from which the ids cannot be read: such a memory
goes to the known actor whose key it is, else to an actor that is called by the key.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from sidecar.errors import LorekeeperError
from sidecar.memory.document import Document, Version, check_text
from sidecar.saves.foreign_files import ForeignFiles, shown
from sidecar.saves.skipped import Skipped
from sidecar.settings import MemorySettings
from sidecar.storage.json_file import unique_names
from sidecar.storage.keys import ActorId, actor_id, actor_key

_HASHED = re.compile(r"(scope|actor)-v1-[0-9a-f]{64}")
_MANGLED = re.compile(r".+_[0-9a-f]{8}")
_ACTIONS = {"write", "append", "clear", "str_replace", "insert", "delete", "rename", "revert"}
_MILLISECONDS_FROM = 100_000_000_000
_USER, _ASSISTANT = 0, 1


@dataclass
class Memory:
    """What is known under one key. ``rows`` have the form of our own histories."""

    document: Document | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""


def read_memories(
    files: ForeignFiles, save: str, known: Iterable[ActorId], limits: MemorySettings
) -> tuple[dict[ActorId, Memory], list[Skipped]]:
    """Everything by who remembers it, and what is not taken."""
    skipped: list[Skipped] = []
    memories: dict[str, Memory] = {}
    for name in files.names:
        if name.endswith((".json", ".jsonl")):
            _take(memories, name, files.read(name), limits, skipped)
    owners = {key: who for who in known for key in _keys(who)}
    return {_owner(key, save, owners, skipped): memory for key, memory in memories.items()}, skipped


def _take(memories: dict[str, Memory], name: str, data: bytes, limits: MemorySettings, skipped: list[Skipped]) -> None:
    path = PurePosixPath(name)
    if path.name.endswith(".history.jsonl"):
        memory = memories.setdefault(path.name.removesuffix(".history.jsonl"), Memory())
        memory.rows = _numbered([*memory.rows, *_history(data, name, skipped)])
        return
    stored = _object(data)
    if stored is None:
        skipped.append(Skipped(shown(name), "document", "cannot be read"))
    elif "Summary" in stored:
        memories.setdefault(path.stem, Memory()).summary = str(stored["Summary"] or "").strip()
    elif "memory" in stored:
        memory = memories.setdefault(path.stem, Memory())
        memory.document = _document(stored, name, limits, skipped)
        memory.rows = _numbered([*_legacy_rows(stored, name, skipped), *memory.rows])
    else:
        skipped.append(Skipped(shown(name), "document", "is nothing that CoreAI keeps"))


def _document(stored: Mapping[str, Any], name: str, limits: MemorySettings, skipped: list[Skipped]) -> Document | None:
    text = stored["memory"] or ""
    try:
        check_text(text, "memory")
        if len(text) > limits.max_document_chars:
            raise ValueError("too long")
    except (LorekeeperError, TypeError, AttributeError, ValueError):
        skipped.append(Skipped(shown(name), "document", "is too long, or has characters that a document may not hold"))
        return None
    versions = list(_versions(stored.get("versionsJson") or "", name, skipped))
    if text != (versions[-1].content if versions else ""):
        number = versions[-1].number + 1 if versions else 1
        saved_at = versions[-1].saved_at if versions else 0
        versions.append(Version(number, saved_at, "import", text, "imported"))
    return Document(text=text, versions=tuple(versions[-limits.max_versions :]), exists=bool(versions))


def _versions(text: str, name: str, skipped: list[Skipped]) -> Iterator[Version]:
    """The versions in a text, numbered upwards. One that cannot be read is passed over."""
    rows, last, lost = _rows_in(text), 0, 0
    if rows is None:
        skipped.append(Skipped(shown(name), "version", "the versions cannot be read; the text is taken"))
        return
    for row in rows:
        try:
            values = _lower(row)
            number, content = int(values["version"]), values["contentafter"]
            check_text(content, "version")
            if number <= last:
                raise ValueError("numbers must rise")
        except (LorekeeperError, KeyError, TypeError, ValueError, AttributeError):
            lost += 1
            continue
        last, action = number, str(values.get("action", ""))
        note = str(values.get("note") or "")
        known = action if action in _ACTIONS else "import"
        yield Version(number, _seconds(values.get("timestamp", 0)), known, content, note)
    if lost:
        skipped.append(Skipped(shown(name), "version", "cannot be read", lost))


def _history(data: bytes, name: str, skipped: list[Skipped]) -> Iterator[dict[str, Any]]:
    """Rows of the second format, in their order."""
    rows, lost = [], 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        stored = _object(line)
        try:
            if stored is None:
                raise ValueError("no object")
            order = int(stored.get("o", 0))
            row = _row(int(stored["k"]), stored["r"], stored["c"], stored["t"], stored.get("id", ""))
            rows.append((order, bool(stored.get("m", False)), row))
        except (KeyError, TypeError, ValueError):
            lost += 1
    if lost:
        skipped.append(Skipped(shown(name), "history_line", "cannot be read", lost))
    for _, is_message, row in sorted(rows, key=lambda each: each[0]):
        yield {**row, "m": 1} if is_message else row


def _legacy_rows(stored: Mapping[str, Any], name: str, skipped: list[Skipped]) -> Iterator[dict[str, Any]]:
    """The history of the first format: messages and transcript rows, which are matched by who, what and when."""
    messages = _legacy(stored.get("chatHistoryJson") or "", name, skipped)
    rows = _legacy(stored.get("transcriptEntriesJson") or "", name, skipped)
    for row in rows:
        if row in messages:
            messages.remove(row)
            row["m"] = 1
    yield from sorted([*rows, *({**message, "m": 1} for message in messages)], key=lambda row: int(row["t"]))


def _legacy(text: str, name: str, skipped: list[Skipped]) -> list[dict[str, Any]]:
    found, rows = [], _rows_in(text)
    lost = int(rows is None)
    for row in rows or ():
        try:
            values = _lower(row)
            key = values.get("key", values.get("role", ""))
            kind = values.get("kind", _ASSISTANT if str(key).casefold() == "assistant" else _USER)
            call_id = values.get("callid") or ""
            found.append(_row(int(kind), key, values["content"], values.get("timestamp", 0), call_id))
        except (KeyError, TypeError, ValueError, AttributeError):
            lost += 1
    if lost:
        skipped.append(Skipped(shown(name), "history_line", "cannot be read", lost))
    return found


def _row(kind: int, key: Any, content: Any, time: Any, call_id: Any) -> dict[str, Any]:
    if kind not in range(4) or not isinstance(key, str) or not isinstance(content, str):
        raise ValueError("not a row")
    row: dict[str, Any] = {"k": kind, "r": key, "c": content, "t": _seconds(time)}
    return row | ({"id": str(call_id)} if call_id else {})


def _numbered(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with their order, messages with their number."""
    numbered, messages = [], 0
    for order, row in enumerate(rows, 1):
        messages += "m" in row
        numbered.append({**row, "o": order} | ({"m": messages} if "m" in row else {}))
    return numbered


def _seconds(value: Any) -> int:
    """Unix seconds; older files have milliseconds."""
    number = int(value)
    return number // 1_000 if number > _MILLISECONDS_FROM else number


def _owner(key: str, save: str, owners: Mapping[str, ActorId], skipped: list[Skipped]) -> ActorId:
    if key in owners:
        return owners[key]
    if _HASHED.fullmatch(key):
        skipped.append(Skipped(key, "address", "the ids cannot be read from the key; kept for an actor called by it"))
        return actor_id(save=save, actor=key)
    if _MANGLED.fullmatch(key):
        skipped.append(Skipped(key, "address", "the name may stand for another id; kept for the role called by it"))
    return actor_id(save=save, role=key)


def _keys(who: ActorId) -> Iterator[str]:
    """The keys under which CoreAI would have kept an actor."""
    yield actor_key(who)
    if not who.actor:
        parts = (who.tenant, who.player, "", who.topic, who.role)
        canonical = "".join(f"{len(part.encode('utf-16-le')) // 2}:{part};" for part in parts)
        yield "scope-v1-" + hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def _object(data: bytes | str) -> dict[str, Any] | None:
    try:
        value = json.loads(data, object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _rows_in(text: str) -> list[Any] | None:
    """A list in a text, bare or as the only list of an object; none in an empty text, None for anything else."""
    if not isinstance(text, str) or not text.strip():
        return [] if isinstance(text, str) else None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        lists = [part for part in value.values() if isinstance(part, list)]
        value = lists[0] if len(lists) == 1 else None
    return value if isinstance(value, list) else None


def _lower(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in row.items()}
