"""What can still be read of a damaged ``document.json``: the newest whole version in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from sidecar.memory.document import Document, Version
from sidecar.memory.document_form import document_from_json, document_to_json, version_from_json
from sidecar.storage.check import Finding, keep_and_replace
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.json_file import dump, read_json

_BEGINNING = '{"version":'


def check_document(disk: Disk, path: Path) -> Iterator[Finding]:
    """A finding where the document cannot be read; mending it keeps the newest version that can."""
    try:
        stored = read_json(disk, path)
        document_from_json(stored or {})
    except Exception as error:
        found = salvaged(disk.read(path))
        yield Finding(
            file=shown_path(disk, path),
            problem=f"the document cannot be read ({type(error).__name__})",
            remedy=_remedy(found),
            mend=lambda: _mend(disk, path, found),
        )


def salvaged(data: bytes) -> list[Version]:
    """The versions that stand whole in ``data``, oldest first, each number once."""
    text = data.decode("utf-8", errors="replace")
    decoder, found = json.JSONDecoder(), {}
    start = text.find(_BEGINNING)
    while start >= 0:
        try:
            version = version_from_json(decoder.raw_decode(text, start)[0])
            if "\ufffd" not in version.content:
                found[version.number] = version
        except (ValueError, KeyError, TypeError, RecursionError):
            pass  # a damaged version: the next one may be whole
        start = text.find(_BEGINNING, start + 1)
    return [found[number] for number in sorted(found)]


def _remedy(found: list[Version]) -> str:
    if not found:
        return "no version in it is whole: begin with an empty document, keep the damaged file"
    return f"go on from version {found[-1].number}, the newest of {len(found)} whole ones; keep the damaged file"


def _mend(disk: Disk, path: Path, found: list[Version]) -> None:
    text = found[-1].content if found else ""
    mended = Document(text=text, versions=tuple(found), exists=bool(found))
    keep_and_replace(disk, path, dump(document_to_json(mended)) if found else None)
