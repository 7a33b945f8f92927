"""How a document lies in ``document.json``.

{"format": 1, "exists": true, "text": "…", "versions": [{"version": 3, "saved_at": …, …}], "answers": [{…}]}
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sidecar.memory.document import Answer, Document, Done, Outcome, Version

_FORMAT = 1
# What the contract's int32 and Timestamp can carry.
_MAX_INT32 = 2**31 - 1
_MAX_TIME = 253_402_300_799


def document_to_json(document: Document) -> dict[str, Any]:
    """The object that ``document.json`` holds."""
    return {
        "format": _FORMAT,
        "exists": document.exists,
        "text": document.text,
        "versions": [
            {
                "version": version.number,
                "saved_at": version.saved_at,
                "action": version.action,
                "note": version.note,
                "content": version.content,
            }
            for version in document.versions
        ],
        "answers": [asdict(answer) for answer in document.answers],
    }


def version_from_json(stored: dict[str, Any]) -> Version:
    """A version as ``document.json`` holds it. Raises KeyError, TypeError or ValueError for anything else."""
    return Version(
        number=_number(stored["version"], _MAX_INT32),
        saved_at=_number(stored["saved_at"], _MAX_TIME),
        action=_text(stored["action"]),
        content=_text(stored["content"]),
        note=_text(stored["note"]),
    )


def document_from_json(stored: dict[str, Any]) -> Document:
    """The document in such an object. Raises KeyError, TypeError or ValueError for anything else."""
    return Document(
        text=_text(stored["text"]),
        versions=tuple(version_from_json(version) for version in stored["versions"]),
        answers=tuple(_answer(answer) for answer in stored["answers"]),
        exists=bool(stored["exists"]),
    )


def _answer(stored: dict[str, Any]) -> Answer:
    outcome = stored["outcome"]
    return Answer(
        _text(stored["key"]),
        _text(stored["request"]),
        Outcome(
            bool(outcome["changed"]),
            _number(outcome["version"], _MAX_INT32),
            _number(outcome["length"], _MAX_INT32),
            tuple(Done(bool(done["changed"]), _text(done["words"])) for done in outcome["done"]),
        ),
    )


def _number(value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError("a whole number in its range is expected")
    return value


def _text(value: Any) -> str:
    """Raises TypeError for what is no text and ValueError for lone surrogates: no message could carry them."""
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    if not value.isascii():
        value.encode("utf-8")
    return value
