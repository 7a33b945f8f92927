"""What was answered to calls with an idempotency key that may do harm when they are made twice: to forks, erasures and
deletions. A retry hears the same, also after a kill: nothing is made or erased a second time.

    answers.jsonl    {"key":"<SHA-256>","request":"<SHA-256>","answer":"<base64 of the message>"}

It holds no ids, no names and no texts: whatever of an answer tells them is left out, and filled in anew by who asks.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from google.protobuf.message import Message

from sidecar.errors import AlreadyExists, LorekeeperError, Reason
from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal
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


class _Told(NamedTuple):
    """The hash of a request, and its answer: ``whole`` as long as the daemon runs, ``nameless`` on the disk."""

    request: str
    whole: bytes
    nameless: bytes


class Answers:
    """The newest answers, at most ``most``. Thread-safe; reads a file at its first use."""

    def __init__(self, disk: Disk, *, most: int) -> None:
        self._most = most
        self._journal = Journal(disk, disk.root / "answers.jsonl")
        self._kept: OrderedDict[str, _Told] | None = None
        self._lock = Lock()

    def known(self, request: Request, kind: type[M]) -> M | None:
        """The first answer to this request, after a restart without what is named; or None. Raises AlreadyExists for a
        key that was used for another one, Corrupt."""
        with self._lock:
            told = self._loaded().get(request.key)
        return kind.FromString(told.whole) if told and request.matches(request.key, told.request) else None

    def keep(self, request: Request, answer: M, *, named: Sequence[str] = ()) -> M:
        """Remember an answer without its ``named`` fields, and hand it on whole. Where the disk refuses, it is known
        until the daemon ends."""
        if request.key:
            whole = answer.SerializeToString()
            nameless = type(answer).FromString(whole)
            for field in named:
                nameless.ClearField(field)
            with self._lock, suppress(LorekeeperError):
                self._remember(request.key, _Told(request.content, whole, nameless.SerializeToString()))
        return answer

    def _remember(self, key: str, told: _Told) -> None:
        kept = self._loaded()
        kept[key] = told
        self._journal.append([_row(key, told)])
        if len(kept) > 2 * self._most:
            while len(kept) > self._most:
                kept.popitem(last=False)
            self._journal.rewrite(_row(key, told) for key, told in kept.items())

    def _loaded(self) -> OrderedDict[str, _Told]:
        if self._kept is None:
            rows = [line.row for line in self._journal.load().lines]
            self._kept = OrderedDict((row["key"], _told(row)) for row in rows)
        return self._kept


def _told(row: Mapping[str, str]) -> _Told:
    nameless = b64decode(row["answer"])
    return _Told(row["request"], nameless, nameless)


def _row(key: str, told: _Told) -> dict[str, str]:
    return {"key": key, "request": told.request, "answer": b64encode(told.nameless).decode("ascii")}


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
