"""How the memory document stands in a prompt: as it was when last shown whole, and what was added since.

    ## Memory             the snapshot
    ## Memory (updates)   what was appended since, or the whole document where it was changed otherwise

What a player asked to forget must not be sent again: whatever may have removed text takes a new snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from sidecar.memory.document import Document, Version

OVERRIDES = "The document was changed. This is all of it now; it overrides what stands under Memory:"
ADDED = "Added since:"
# All other actions remove text or might have; a replacement by nothing does, too.
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

    Only where the version that it showed is still kept can that be told; after a reset the numbers begin again.
    """
    since = [version for version in document.versions if version.number >= snapshot.version]
    if not since or (since[0].number, since[0].content) != (snapshot.version, snapshot.text):
        return True
    return any(_takes_away(before, after) for before, after in pairwise(since))


def _takes_away(before: Version, after: Version) -> bool:
    return after.action not in _KEEPING or (
        after.action == "str_replace" and _is_left_of(after.content, before.content)
    )


def _is_left_of(text: str, whole: str) -> bool:
    """Whether ``text`` is what remains of ``whole`` when something is taken out."""
    letters = iter(whole)
    return len(text) < len(whole) and all(letter in letters for letter in text)
