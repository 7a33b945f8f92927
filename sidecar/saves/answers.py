"""What was answered to calls with an idempotency key, so that a retry hears the same. Kept until the daemon ends.

A checkpoint and the safety checkpoint of a restore carry their key themselves, so that these are known after a kill.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, TypeVar

from sidecar.errors import AlreadyExists, Reason
from sidecar.wire import key_from

T = TypeVar("T")


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
    """The last answers, on the event loop alone."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[str, Any]] = OrderedDict()

    def known(self, request: Request, kind: type[T]) -> T | None:
        """The first answer to this request, or None. Raises AlreadyExists for a key that was used for another one."""
        content, answer = self._kept.get(request.key, ("", None))
        return answer if isinstance(answer, kind) and request.matches(request.key, content) else None

    def keep(self, request: Request, answer: T) -> T:
        """Remember an answer, and hand it on."""
        if request.key:
            self._kept[request.key] = (request.content, answer)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return answer


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
