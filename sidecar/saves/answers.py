"""What was answered to calls with an idempotency key that may do harm when they are made twice: to forks, erasures and
deletions. A retry hears the same, also after a kill: nothing is made or erased a second time.

``answers.jsonl`` holds no ids, no names and no texts: whatever of an answer tells them is left out, and filled in anew
by who asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

from google.protobuf.message import Message

from sidecar.errors import AlreadyExists, LorekeeperError, Reason
from sidecar.storage.answer_journal import AnswerJournal, KeptAnswer
from sidecar.storage.disk import Disk
from sidecar.storage.recent import Recent
from sidecar.wire import key_from

M = TypeVar("M", bound=Message)


class Request:
    """A call with the hashes of its key and of everything else in it. ``key`` is empty where there is none."""

    def __init__(self, method: str, message: Any) -> None:
        """Raises InvalidInput for a key that is too long."""
        key = key_from(message.idempotency_key)
        asked = type(message)()
        asked.CopyFrom(message)
        asked.idempotency_key = ""
        self.key = _hash(f"{method}\n{key}".encode()) if key else ""
        self.content = _hash(method.encode() + b"\n" + asked.SerializeToString(deterministic=True))

    def matches(self, key: str, content: str) -> bool:
        """Whether an earlier call with these hashes is this one. Raises AlreadyExists where only the key is."""
        if not self.key or key != self.key:
            return False
        if content != self.content:
            raise AlreadyExists(
                "idempotency_key was used for another request; use a new key",
                reason=Reason.IDEMPOTENCY_KEY_REUSED,
                field="idempotency_key",
            )
        return True


class Answers:
    """The newest answers, ``most`` or more: whole as long as the daemon runs, on the disk without names.
    Thread-safe; reads a file at its first use."""

    def __init__(self, disk: Disk, *, most: int) -> None:
        self._journal = AnswerJournal(disk, disk.root / "answers.jsonl", most=most)
        self._whole: Recent[str, bytes] = Recent(2 * most)
        self._lock = Lock()

    def known(self, request: Request, kind: type[M]) -> M | None:
        """The first answer to this request, after a restart without what is named; or None. Raises AlreadyExists for a
        key that was used for another one, Corrupt."""
        with self._lock:
            kept = self._journal.known(request.key)
            if kept is None or not request.matches(request.key, kept.request):
                return None
            return kind.FromString(self._whole.get(request.key) or kept.answer)

    def keep(self, request: Request, answer: M, *, named: Sequence[str] = ()) -> M:
        """Remember an answer without its ``named`` fields, and hand it on whole. Where the disk refuses, it is known
        until the daemon ends."""
        if request.key:
            self._whole.keep(request.key, answer.SerializeToString())
            self.put(request.key, KeptAnswer(request.content, nameless(answer, named)))
        return answer

    def put(self, key: str, kept: KeptAnswer) -> None:
        """Remember what is known of an answer without its names."""
        with self._lock, suppress(LorekeeperError):
            self._journal.keep(key, kept)


def nameless(answer: Message, named: Sequence[str]) -> bytes:
    """The bytes of an answer without its ``named`` fields."""
    copy = type(answer)()
    copy.CopyFrom(answer)
    for field in named:
        copy.ClearField(field)
    return copy.SerializeToString()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
