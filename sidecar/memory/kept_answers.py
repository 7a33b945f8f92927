"""What calls with an idempotency key were told, so that a retry hears the same.

Answers are kept in memory. After a restart most calls may simply be made again: they change nothing the second time.
What they added carries a mark of the call, by which it is not added again once it was forgotten. Calls that would do
something else by then (forget what was added since, put back older groups) are kept with their save as well, in
``answers.jsonl``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from sidecar.errors import AlreadyExists, Reason
from sidecar.storage.answer_journal import AnswerJournal, KeptAnswer
from sidecar.storage.disk import Disk
from sidecar.storage.keys import save_folder
from sidecar.storage.recent import Recent
from sidecar.wire import key_from

R = TypeVar("R")


class KeptAnswers:
    """The newest answers, at most ``most`` in memory and for each save. Thread-safe."""

    def __init__(self, disk: Disk, most: int) -> None:
        self._disk = disk
        self._most = most
        self._answers: Recent[tuple[str, str], tuple[str, Any]] = Recent(most)
        self._files: dict[str, _AnswerFile] = {}
        self._lock = Lock()

    def known(self, save: str, request: Any) -> Any | None:
        """The first answer to the same request, from memory; None where there is none.

        Raises AlreadyExists where the key was used with another request, InvalidInput for a key that is too long.
        """
        key = key_from(request.idempotency_key)
        known = self._answers.get((save, key))
        return known[1] if known and _is_same(known[0], request) else None

    def keep(self, save: str, request: Any, answer: Any) -> None:
        """Remember an answer, where the request has a key."""
        if request.idempotency_key:
            self._answers.keep((save, request.idempotency_key), (_digest(request), answer))

    def lasting(self, save: str, request: Any, kind: type[R], work: Callable[[], R]) -> R:
        """The answer of ``work``, a message of ``kind``, or the first answer to the same request, also one that was
        given before a restart. Waits for the disk. Raises AlreadyExists, Corrupt, and what ``work`` raises."""
        if not request.idempotency_key:
            return work()
        with self._lock:
            file = self._files.setdefault(save, _AnswerFile(self._disk, save, self._most))
        return file.once(request, kind, work)

    def forget(self, save: str) -> None:
        """Forget what is in memory about a save: it was exchanged, or is gone."""
        self._answers.forget_where(lambda key: key[0] == save)
        with self._lock:
            self._files.pop(save, None)


class _AnswerFile:
    """The answers of one save that outlive the daemon. What changes the save twice is decided one call at a time."""

    def __init__(self, disk: Disk, save: str, most: int) -> None:
        self._disk = disk
        self._save = save
        self._folder = save_folder(disk.root, save)
        self._journal = AnswerJournal(disk, self._folder / "answers.jsonl", most=most)
        self._lock = Lock()

    def once(self, request: Any, kind: Any, work: Callable[[], R]) -> R:
        key = _hash(f"{self._save}\n{request.idempotency_key}".encode())
        with self._lock:
            kept = self._journal.known(key)
            if kept is not None and _is_same(kept.request, request):
                told: R = kind.FromString(kept.answer)
                return told
            answer: Any = work()
            if self._disk.exists(self._folder):  # else there was nothing to change
                self._journal.keep(key, KeptAnswer(_digest(request), answer.SerializeToString()))
            return answer  # type: ignore[no-any-return]


def mark_of(save: str, request: Any) -> str:
    """What tells a request with its idempotency key from every other, in 16 characters; empty without a key."""
    return mark_of_text(save, _digest(request)) if request.idempotency_key else ""


def mark_of_text(save: str, said: str) -> str:
    """The same for a call that is told by a text."""
    return _hash(f"{save}\n{said}".encode())[:16]


def _is_same(digest: str, request: Any) -> bool:
    """True. Raises AlreadyExists where the key was used with another request."""
    if digest != _digest(request):
        raise AlreadyExists(
            "the idempotency key was used before for another request; use a new key for a new request",
            reason=Reason.IDEMPOTENCY_KEY_REUSED,
            field="idempotency_key",
        )
    return True


def _digest(request: Any) -> str:
    return _hash(request.DESCRIPTOR.name.encode() + request.SerializeToString(deterministic=True))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
