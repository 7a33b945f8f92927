"""A document, its versions, and what a list of edits makes of it. No I/O.

Document
├── text        what the actor knows now
├── versions    the last ones (30 by default), each with its whole content, oldest first
└── answers     what was told to calls with an idempotency key, so that a retry hears the same
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sidecar.errors import InvalidInput, LimitReached, LorekeeperError, NotFound, Reason, Stale
from sidecar.memory.edits import Edit, apply, replaced_length
from sidecar.settings import MemorySettings

_ALLOWED_CONTROLS = "\t\n\r"


@dataclass(frozen=True, slots=True)
class Version:
    """One stored state. ``saved_at`` is wall time in Unix seconds; ``note`` tells the change of length."""

    number: int
    saved_at: int
    action: str
    content: str
    note: str


@dataclass(frozen=True, slots=True)
class Done:
    """What one edit did, in a few words without any of the text."""

    changed: bool
    words: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call did: whether anything changed, the version and length after it, and each edit's share in it."""

    changed: bool
    version: int
    length: int
    done: tuple[Done, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An outcome under the hash of its idempotency key, with the hash of the request that it answered."""

    key: str
    request: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Document:
    """The empty one stands for an actor that has none: ``exists`` is False then."""

    text: str = ""
    versions: tuple[Version, ...] = ()
    answers: tuple[Answer, ...] = ()
    exists: bool = False

    @property
    def version(self) -> int:
        """The number of the newest version, 0 where there is none."""
        return self.versions[-1].number if self.versions else 0

    def version_numbered(self, number: int) -> Version:
        """The kept version ``number``. Raises NotFound."""
        for version in self.versions:
            if version.number == number:
                return version
        raise NotFound(
            f"version {number} is not kept; list the versions to see which are",
            reason=Reason.VERSION_NOT_FOUND,
            field="version",
            current_version=self.version,
        )

    @property
    def weight(self) -> int:
        """Roughly the code points that it holds in memory; never 0, so that empty ones count too."""
        return 100 + len(self.text) + sum(len(version.content) for version in self.versions)


class EditFailed(Exception):
    """Edit ``index`` of a batch failed with ``error``; nothing was changed."""

    def __init__(self, index: int, error: LorekeeperError) -> None:
        super().__init__(str(error))
        self.index = index
        self.error = error


def require_version(document: Document, expected: int | None) -> None:
    """Raise Stale when the caller edits on top of another version than the newest one."""
    if expected is not None and expected != document.version:
        raise Stale(
            f"the document is at version {document.version}, not {expected}; read it again and repeat the edit",
            reason=Reason.VERSION_MISMATCH,
            field="expected_version",
            current_version=document.version,
        )


def edited(document: Document, edits: Sequence[Edit], now: int, limits: MemorySettings) -> tuple[Document, Outcome]:
    """The document after all of ``edits``, as one version, or unchanged when they change nothing.

    Raises EditFailed for the first edit that fails.
    """
    text, done = document.text, []
    for index, edit in enumerate(edits):
        try:
            _check_texts(edit)
            _check_length(replaced_length(text, edit), limits.max_document_chars)
            change = apply(text, edit)
            _check_length(len(change.text), limits.max_document_chars)
        except LorekeeperError as error:
            raise EditFailed(index, error) from error
        done.append(Done(change.text != text, change.done))
        text = change.text
    action = str(edits[0].action) if len(edits) == 1 else "batch"
    return _with_text(document, text, action, None, now, limits), _outcome(document, text, done)


def reverted(document: Document, number: int, now: int, limits: MemorySettings) -> tuple[Document, Outcome]:
    """The document with the content of version ``number``, as a new version. Raises NotFound."""
    content = document.version_numbered(number).content
    after = _with_text(document, content, "revert", f"Reverted to version {number}.", now, limits)
    return after, _outcome(document, content, [Done(content != document.text, f"reverted to version {number}")])


def _outcome(before: Document, text: str, done: Sequence[Done]) -> Outcome:
    changed = text != before.text
    return Outcome(changed, before.version + changed, len(text), tuple(done))


def _with_text(
    document: Document, text: str, action: str, note: str | None, now: int, limits: MemorySettings
) -> Document:
    if text == document.text:
        return document
    before, after = len(document.text), len(text)
    delta = f"chars {before}->{after} ({after - before:+d})"
    version = Version(document.version + 1, now, action, text, note or delta)
    versions = (*document.versions, version)[-limits.max_versions :]
    return replace(document, text=text, versions=versions, exists=True)


def _check_texts(edit: Edit) -> None:
    for name in ("content", "old_text", "new_text", "anchor"):
        check_text(getattr(edit, name) or "", name)


def check_text(text: str, field: str) -> None:
    """Raise InvalidInput for control characters (tab and line breaks excepted) and lone surrogates."""
    if text.isprintable():
        return
    for position, letter in enumerate(text):
        control = letter < " " and letter not in _ALLOWED_CONTROLS
        if control or "\x7f" <= letter <= "\x9f" or "\ud800" <= letter <= "\udfff":
            raise InvalidInput(
                f"{field} has the character U+{ord(letter):04X} at {position}; tab and line breaks are the only "
                "control characters that a document may hold",
                reason=Reason.FIELD_INVALID,
                field=field,
                position=position,
            )


def _check_length(length: int, most: int) -> None:
    if length > most:
        raise LimitReached(
            f"the document would have {length} characters; the limit is {most}: shorten it first",
            reason=Reason.DOCUMENT_TOO_LARGE,
            limit="memory.max_document_chars",
            value=most,
        )
