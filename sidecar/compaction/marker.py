"""The fold marker: the last line of a stored summary, which says up to where the history is in it.

    [fold:v1:1f0c…,9ab2…]      one to eight hashes, newest folded message first

The marker is bookkeeping: it is stripped before a summary is shown, sent or summarised.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from sidecar.compaction.clipping import clip
from sidecar.compaction.messages import Message
from sidecar.compaction.tool_blocks import flat_text

MAX_HASHES = 8
BULLET_CHARS = 280
_HASH_DIGITS = 12
MARKER_CHARS = len("[fold:v1:]") + MAX_HASHES * (_HASH_DIGITS + 1) - 1
"""The length of the longest marker."""
_MARKER = re.compile(r"\[fold:v1:([0-9a-f]{12}(?:,[0-9a-f]{12}){0,7})\]")
_LIKE_MARKER = re.compile(r"\[fold:[^\n]*\]\s*")


@dataclass(frozen=True)
class StoredSummary:
    """A rolling summary as it is stored, marker included.

    ``folded_through`` is the number of the newest folded message. 0: not known, the marker alone decides, as in
    summaries that a game wrote or that come from elsewhere.
    """

    text: str = ""
    folded_through: int = 0


@dataclass(frozen=True)
class FoldStart:
    """The index of the first message that is not folded yet.

    ``lost`` says that the summary has a marker which fits none of the messages.
    """

    index: int
    lost: bool = False


def message_hash(message: Message) -> str:
    """Twelve hexadecimal digits of role and content, blanks around them left out."""
    text = f"{message.role.strip()}\n{message.content.strip()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def marker_for(folded: Sequence[Message], earlier: Iterable[str] = ()) -> str:
    """The marker after folding those messages, oldest first; ``earlier`` are the hashes of the marker before."""
    hashes: dict[str, None] = {}
    for message in reversed(folded):
        hashes.setdefault(message_hash(message))
        if len(hashes) == MAX_HASHES:
            break
    for digits in earlier:
        hashes.setdefault(digits)
    return f"[fold:v1:{','.join(list(hashes)[:MAX_HASHES])}]"


def split_marker(text: str) -> tuple[str, tuple[str, ...]]:
    """The summary without its marker, and the marker's hashes; no hashes when the last line is no marker."""
    trimmed = text.strip()
    body, _, last = trimmed.rpartition("\n")
    found = _MARKER.fullmatch(last)
    if not found:
        return trimmed, ()
    return body.rstrip(), tuple(found[1].split(","))


def strip_echo(text: str) -> str:
    """A summariser's answer without any last line that looks like a marker."""
    trimmed = text.strip()
    while True:
        body, _, last = trimmed.rpartition("\n")
        if not _LIKE_MARKER.fullmatch(last):
            return trimmed
        trimmed = body.rstrip()


def stamp(text: str, marker: str) -> str:
    """The summary as it is stored."""
    return f"{text}\n{marker}" if text else marker


def bullet(message: Message) -> str:
    """The line of a message in a summary made without a model."""
    return f"- {message.role.strip() or 'unknown'}: {clip(flat_text(message), BULLET_CHARS)}"


def fold_start(messages: Sequence[Message], stored: StoredSummary) -> FoldStart:
    """Where folding goes on in ``messages`` (oldest first)."""
    body, hashes = split_marker(stored.text)
    if stored.folded_through and _is_the_folded_one(messages, stored.folded_through, hashes):
        return FoldStart(bisect_right(messages, stored.folded_through, key=attrgetter("number")))
    if hashes:
        index = _after_marked(messages, hashes)
        return FoldStart(index, lost=index == 0 and bool(messages))
    return FoldStart(_after_quoted(messages, body) if body else 0)


def _is_the_folded_one(messages: Sequence[Message], number: int, hashes: tuple[str, ...]) -> bool:
    """Whether ``number`` still means the message that was folded: a history lost in a power cut counts anew."""
    index = bisect_left(messages, number, key=attrgetter("number"))
    if index == len(messages) or messages[index].number != number:
        return index == 0
    return not hashes or message_hash(messages[index]) == hashes[0]


def _after_marked(messages: Sequence[Message], hashes: tuple[str, ...]) -> int:
    left, seen, index = set(hashes), set[str](), 0
    for position, message in enumerate(messages):
        digits = message_hash(message)
        if digits in left or digits in seen:
            left.discard(digits)
            seen.add(digits)
            index = position + 1
        elif seen:
            break
    return index


def _after_quoted(messages: Sequence[Message], body: str) -> int:
    """For summaries without a marker: after the newest message that the summary quotes."""
    last_line = body.rpartition("\n")[2]
    lines = f"\n{body}\n"
    for index in range(len(messages) - 1, -1, -1):
        if _old_bullet(messages[index]) == last_line or f"\n{bullet(messages[index])}\n" in lines:
            return index + 1
    return 0


def _old_bullet(message: Message) -> str:
    return f"- {message.role.strip() or 'unknown'}: {flat_text(message)[:BULLET_CHARS]}..."
