"""Documents on the disk: ``document.json`` in the actor's folder, replaced as a whole with every version.

Calls for one actor are made one at a time by the caller; only :meth:`DocumentStore.cached` may come at any time.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sidecar.errors import AlreadyExists, Corrupt, Reason
from sidecar.memory.document import Answer, Document, Outcome, edited, require_version, reverted
from sidecar.memory.document_form import document_from_json, document_to_json
from sidecar.memory.edits import Edit
from sidecar.settings import MemorySettings
from sidecar.storage.actors import Actors
from sidecar.storage.disk import Disk
from sidecar.storage.forgetting import Who
from sidecar.storage.json_file import read_json, unreadable, write_json
from sidecar.storage.keys import ActorId, save_folder
from sidecar.storage.recent import RecentActors
from sidecar.storage.save_state import SaveStates

_FILE = "document.json"
_Change = Callable[[Document], tuple[Document, Outcome]]


class DocumentStore:
    """Reads, edits, reverts and resets documents; success is returned after the bytes are safe."""

    def __init__(
        self,
        disk: Disk,
        actors: Actors,
        saves: SaveStates,
        limits: MemorySettings,
        *,
        versions_kept: Callable[[ActorId], int] = lambda _who: 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``versions_kept`` tells how many versions an actor's role keeps; 0: as many as ``limits`` say."""
        self._disk = disk
        self._actors = actors
        self._saves = saves
        self._limits = limits
        self._versions_kept = versions_kept
        self._clock = clock
        self._cache: RecentActors[Document] = RecentActors(limits.max_cached_chars)

    def cached(self, who: ActorId) -> Document | None:
        """The document if reading it costs no disk access."""
        return self._cache.get(who)

    def read(self, who: ActorId) -> Document:
        """The document; an empty one that does not exist where nothing is stored. Raises Corrupt."""
        cached = self._cache.get(who)
        return cached if cached is not None else self._kept(who, self._load(who))

    def edit(
        self, who: ActorId, edits: Sequence[Edit], *, expected_version: int | None = None, idempotency_key: str = ""
    ) -> Outcome:
        """Apply all of ``edits`` or none, as one version.

        Raises EditFailed (with the edit's index), Stale, AlreadyExists for a key used with other edits, Corrupt.
        """
        request = ["edit", *(asdict(edit) for edit in edits)]
        return self._change(
            who,
            lambda document: edited(document, edits, int(self._clock()), self._limits_of(who)),
            request,
            expected_version,
            idempotency_key,
        )

    def revert(
        self, who: ActorId, number: int, *, expected_version: int | None = None, idempotency_key: str = ""
    ) -> Outcome:
        """Make the content of version ``number`` the newest version. Raises NotFound, Stale, Corrupt."""
        return self._change(
            who,
            lambda document: reverted(document, number, int(self._clock()), self._limits_of(who)),
            ["revert", number],
            expected_version,
            idempotency_key,
        )

    def reset(self, who: ActorId, *, expected_version: int | None = None, idempotency_key: str = "") -> bool:
        """Forget the document and its versions; the numbering begins again. False where there was none.

        Works on a document that cannot be read: what ``expected_version`` says is not checked then.
        """
        try:
            document = self.read(who)
            known = _answered(document, idempotency_key, ["reset"])
            if known:
                return known.changed
            require_version(document, expected_version)
        except Corrupt:
            document = Document(exists=True)
        outcome = Outcome(changed=document.exists, version=0, length=0, done=())
        answers = _with_answer(document.answers, idempotency_key, ["reset"], outcome, self._limits.kept_answers)
        if not document.exists:
            self._kept(who, replace(document, answers=answers))
            return False
        self._store(who, Document(answers=answers))
        return True

    def look(self, who: ActorId) -> Document:
        """Like :meth:`read`, but from any thread, without waiting for the actor's turn and without caching."""
        return self._cache.get(who) or self._load(who)

    def open_counts(self) -> dict[str, int]:
        """How much is kept in memory for reading."""
        return {"cached_documents": len(self._cache), "cached_chars": self._cache.weight}

    def counted(self, who: ActorId) -> dict[str, int]:
        """How many documents the actor has: 1, also one that cannot be read, or 0."""
        try:
            return {"documents": int(self.look(who).exists)}
        except Corrupt:
            return {"documents": 1}

    def erased(self, who: ActorId) -> None:
        """Read the file again at the next call: it was erased or exchanged."""
        self._cache.erased(who)

    def quiet(self, save: str) -> None:
        """Nothing to do: what was acknowledged is in its file."""

    def exchanged(self, save: str) -> None:
        """Read the files of a save again: they were exchanged or erased."""
        self._cache.exchanged(save)

    def save_erased(self, save: str) -> None:
        """Forget what is cached of a save that is erased."""
        self.exchanged(save)

    def save_counted(self, save: str) -> dict[str, int]:
        """How many documents a save has."""
        folder = save_folder(self._disk.root, save)
        return {"documents": sum(self._disk.exists(folder / name / _FILE) for name in self._disk.names(folder))}

    def forget_mentions(self, folder: Path, who: Who, *, dry_run: bool) -> bool:
        """Nothing to do: a document is its actor's alone."""
        return False

    def _limits_of(self, who: ActorId) -> MemorySettings:
        kept = self._versions_kept(who)
        return replace(self._limits, max_versions=kept) if kept else self._limits

    def _change(
        self, who: ActorId, change: _Change, request: list[Any], expected_version: int | None, idempotency_key: str
    ) -> Outcome:
        document = self.read(who)
        known = _answered(document, idempotency_key, request)
        if known:
            return known
        require_version(document, expected_version)
        after, outcome = change(document)
        answers = _with_answer(after.answers, idempotency_key, request, outcome, self._limits.kept_answers)
        after = replace(after, answers=answers)
        if outcome.changed:
            self._store(who, after)
        else:
            self._kept(who, after)
        return outcome

    def _store(self, who: ActorId, document: Document) -> None:
        self._saves.ensure(who.save)
        folder = self._actors.ensure(who)
        self._saves.changed(who.save)
        write_json(self._disk, folder / _FILE, document_to_json(document))
        self._kept(who, document)

    def _load(self, who: ActorId) -> Document:
        path = self._actors.folder(who) / _FILE
        try:
            stored = read_json(self._disk, path)
            return Document() if stored is None else document_from_json(stored)
        except (Corrupt, KeyError, TypeError, ValueError) as error:
            raise unreadable(self._disk, path, reason=Reason.DOCUMENT_UNREADABLE) from error

    def _kept(self, who: ActorId, document: Document) -> Document:
        return self._cache.keep(who, document, weight=document.weight)


def _hash(value: Any) -> str:
    """Of any JSON value; lone surrogates count as what they are, they are refused later."""
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode("ascii")).hexdigest()


def _answered(document: Document, key: str, request: list[Any]) -> Outcome | None:
    """The first answer to ``key``. Raises AlreadyExists where it was used for another request."""
    if not key:
        return None
    hashed = _hash(key)
    for answer in document.answers:
        if answer.key == hashed:
            if answer.request != _hash(request):
                raise AlreadyExists(
                    "idempotency_key was used for another request on this document; use a new key",
                    reason=Reason.IDEMPOTENCY_KEY_REUSED,
                    field="idempotency_key",
                )
            return answer.outcome
    return None


def _with_answer(
    answers: tuple[Answer, ...], key: str, request: list[Any], outcome: Outcome, most: int
) -> tuple[Answer, ...]:
    if not key:
        return answers
    return (*answers, Answer(_hash(key), _hash(request), outcome))[-most:]
