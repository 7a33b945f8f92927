"""How the memory document stands in a prompt: as it was when last shown whole, and what was added since.

    ## Memory             the snapshot
    ## Memory (updates)   what was appended since, or the whole document where it was changed otherwise

What a player asked to forget must not be sent again: whatever may have removed text takes a new snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from sidecar.memory.document import Document

OVERRIDES = "The document was changed. This is all of it now; it overrides what stands under Memory:"
ADDED = "Added since:"
# All other actions remove text or might have.
_KEEPING = frozenset({"append", "insert", "str_replace", "rename"})


@dataclass(frozen=True)
class MemorySnapshot:
    """The document as a prompt showed it whole."""

    text: str
    version: int


@dataclass(frozen=True)
class MemoryView:
    """The two blocks; empty ones are left out."""

    shown: str = ""
    updates: str = ""


def snapshot_of(document: Document) -> MemorySnapshot:
    """The document as it is now."""
    return MemorySnapshot(document.text, document.version)


def view_memory(document: Document, snapshot: MemorySnapshot | None) -> MemoryView:
    """What a prompt shows of the document."""
    if not document.text.strip():
        return MemoryView()
    if snapshot is None or not snapshot.text.strip() or may_forget(document, snapshot):
        return MemoryView(document.text)
    if document.text == snapshot.text:
        return MemoryView(snapshot.text)
    if document.text.startswith(snapshot.text):
        return MemoryView(snapshot.text, f"{ADDED}\n{document.text[len(snapshot.text) :].lstrip(chr(10))}")
    return MemoryView(snapshot.text, f"{OVERRIDES}\n{document.text}")


def may_forget(document: Document, snapshot: MemorySnapshot) -> bool:
    """Whether text of the snapshot may have been forgotten since it was taken.

    So it is, too, where the snapshot's version is not kept any more, or is of a document that began anew.
    """
    seen = [version for version in document.versions if version.number >= snapshot.version]
    if not seen or (seen[0].number, seen[0].content) != (snapshot.version, snapshot.text):
        return True
    return any(
        after.action not in _KEEPING or (after.action == "str_replace" and _only_removes(before.content, after.content))
        for before, after in pairwise(seen)
    )


def _only_removes(before: str, after: str) -> bool:
    """Whether all that is left stood there before, in this order: text was taken away and none put in its place."""
    rest = iter(before)
    return len(after) < len(before) and all(letter in rest for letter in after)
