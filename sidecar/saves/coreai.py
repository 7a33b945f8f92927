"""Memory of CoreAI: documents, versions, histories and rolling summaries, by the key of who remembers.

    AgentMemory/<key>.json                 the document, with its versions as JSON in a text; v1: the history, too
    AgentMemory/<key>.history.jsonl        v2: one row a line
    ConversationSummaries/<key>.json       {"Summary": "…"}

Keys are those of ``coreai_keys.py``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from sidecar.errors import LorekeeperError
from sidecar.memory.document import Document, Version, check_text
from sidecar.memory.document_form import version_from_json
from sidecar.saves.coreai_keys import keys_of, owner_of
from sidecar.saves.foreign_files import ForeignFiles, shown
from sidecar.saves.skipped import Skipped
from sidecar.settings import MemorySettings
from sidecar.storage.json_file import unique_names
from sidecar.storage.keys import ActorId

_ACTIONS = {"write", "append", "clear", "str_replace", "insert", "delete", "rename", "revert"}
_MILLISECONDS_FROM = 100_000_000_000
_LATEST = 253_402_300_799
_BAD = (LorekeeperError, KeyError, TypeError, ValueError, AttributeError, OverflowError)
_USER, _ASSISTANT = 0, 1


@dataclass
class Memory:
    """What is known under one key. ``rows`` have the form of our own histories."""

    document: Document | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""
    files: set[str] = field(default_factory=set)


def read_memories(
    files: ForeignFiles, save: str, known: Iterable[ActorId], limits: MemorySettings
) -> tuple[dict[ActorId, Memory], list[Skipped]]:
    """Everything by who remembers it, and what is not taken."""
    skipped: list[Skipped] = []
    memories: dict[str, Memory] = {}
    for name in files.names:
        if name.endswith((".json", ".jsonl")):
            _take(memories, name, files.read(name), limits, skipped)
    owners = {key: who for who in known for key in keys_of(who)}
    return {owner_of(key, save, owners, skipped): memory for key, memory in memories.items()}, skipped


def _take(memories: dict[str, Memory], name: str, data: bytes, limits: MemorySettings, skipped: list[Skipped]) -> None:
    path = PurePosixPath(name)
    if path.name.endswith(".history.jsonl"):
        memory = memories.setdefault(path.name.removesuffix(".history.jsonl"), Memory())
        if _is_first(memory, "history", name, skipped):
            memory.rows = _numbered(list(_history(data, name, skipped)))
        return
    stored = _object(data)
    if stored is None:
        skipped.append(Skipped(shown(name), "document", "cannot be read"))
    elif isinstance(stored.get("Summary", 0), str | None):
        memory = memories.setdefault(path.stem, Memory())
        if _is_first(memory, "summary", name, skipped):
            memory.summary = _whole_letters(stored["Summary"] or "").strip()
    elif "memory" in stored:
        memory = memories.setdefault(path.stem, Memory())
        if _is_first(memory, "document", name, skipped):
            memory.document = _document(stored, name, limits, skipped)
            legacy = list(_legacy_rows(stored, name, skipped))
            memory.rows = _numbered([*_without(legacy, memory.rows), *memory.rows])
    else:
        skipped.append(Skipped(shown(name), "document", "is nothing that CoreAI keeps"))


def _is_first(memory: Memory, kind: str, name: str, skipped: list[Skipped]) -> bool:
    """Whether no other folder had such a file of the same key."""
    if kind in memory.files:
        skipped.append(Skipped(shown(name), kind, "another file of the same key was taken"))
        return False
    memory.files.add(kind)
    return True


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
            version = _version(_lower(row))
            if version.number <= last:
                raise ValueError("numbers must rise")
        except _BAD:
            lost += 1
            continue
        last = version.number
        yield version
    if lost:
        skipped.append(Skipped(shown(name), "version", "cannot be read", lost))


def _version(values: Mapping[str, Any]) -> Version:
    check_text(values["contentafter"], "version")
    action = str(values.get("action", ""))
    return version_from_json(
        {
            "version": int(values["version"]),
            "saved_at": _seconds(values.get("timestamp", 0)),
            "action": action if action in _ACTIONS else "import",
            "note": _whole_letters(str(values.get("note") or "")),
            "content": values["contentafter"],
        }
    )


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
            content = stored.get("c", "")  # upstream leaves out what is null
            row = _row(int(stored["k"]), stored.get("r", ""), content, stored.get("t", 0), stored.get("id", ""))
            rows.append((order, bool(stored.get("m", False)), row))
        except _BAD:
            lost += 1
    if lost:
        skipped.append(Skipped(shown(name), "history_line", "cannot be read", lost))
    for _, is_message, row in sorted(rows, key=lambda each: each[0]):
        yield {**row, "m": 1} if is_message else row


def _legacy_rows(stored: Mapping[str, Any], name: str, skipped: list[Skipped]) -> Iterator[dict[str, Any]]:
    """The history of the first format: messages and transcript rows, which are matched by who, what and when."""
    messages = _legacy(stored.get("chatHistoryJson") or "", name, skipped)
    rows = _legacy(stored.get("transcriptEntriesJson") or "", name, skipped)
    waiting = Counter(map(_identity, messages))
    for row in rows:
        if row["k"] in (_USER, _ASSISTANT) and waiting[_identity(row)]:
            waiting[_identity(row)] -= 1
            row["m"] = 1
    alone = _without(messages, [row for row in rows if "m" in row])
    yield from sorted([*rows, *({**message, "m": 1} for message in alone)], key=lambda row: int(row["t"]))


def _without(rows: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are not among others, where each of these stands for one."""
    there, left = Counter(map(_identity, others)), []
    for row in rows:
        there[_identity(row)] -= 1
        if there[_identity(row)] < 0:
            left.append(row)
    return left


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """By what upstream matches rows: who, what and when."""
    return row["r"], row["c"], row["t"]


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
        except _BAD:
            lost += 1
    if lost:
        skipped.append(Skipped(shown(name), "history_line", "cannot be read", lost))
    return found


def _row(kind: int, key: Any, content: Any, time: Any, call_id: Any) -> dict[str, Any]:
    if kind not in range(4) or not isinstance(key, str) or not isinstance(content, str):
        raise ValueError("not a row")
    row: dict[str, Any] = {"k": kind, "r": _whole_letters(key), "c": _whole_letters(content), "t": _seconds(time)}
    return row | ({"id": _whole_letters(str(call_id))} if call_id else {})


def _numbered(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with their order, messages with their number."""
    numbered, messages = [], 0
    for order, row in enumerate(rows, 1):
        messages += "m" in row
        numbered.append({**row, "o": order} | ({"m": messages} if "m" in row else {}))
    return numbered


def _seconds(value: Any) -> int:
    """Unix seconds; older files have milliseconds. What is no time of ours counts as the nearest that is."""
    number = int(value)
    return max(0, min(number // 1_000 if number > _MILLISECONDS_FROM else number, _LATEST))


def _whole_letters(text: str) -> str:
    """The text with a mark in the place of half a character: upstream clips texts in the middle of one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
