"""Answers to calls that carried an idempotency key, kept for a retry within the life of the daemon.

After a restart a retry is safe all the same: the calls that use this change nothing when they are made twice.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Any

from sidecar.errors import AlreadyExists, InvalidInput, Reason
from sidecar.storage.keys import MAX_ID_CHARS


class KeptAnswers:
    """The newest answers, at most ``most``. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[tuple[str, str], tuple[bytes, Any]] = OrderedDict()
        self._lock = Lock()

    def known(self, save: str, request: Any) -> Any | None:
        """The first answer to the same request; None where there is none. Raises AlreadyExists where the key was used
        with another request."""
        key = request.idempotency_key
        if len(key) > MAX_ID_CHARS:
            raise InvalidInput(
                f"idempotency_key has {len(key)} characters; the limit is {MAX_ID_CHARS}",
                reason=Reason.FIELD_TOO_LONG,
                field="idempotency_key",
                limit="max_id_chars",
                value=MAX_ID_CHARS,
            )
        with self._lock:
            known = self._answers.get((save, key))
        if known is None:
            return None
        if known[0] != _digest(request):
            raise AlreadyExists(
                "the idempotency key was used before for another request; use a new key for a new request",
                reason=Reason.IDEMPOTENCY_KEY_REUSED,
                field="idempotency_key",
            )
        return known[1]

    def forget(self, save: str) -> None:
        """Forget the answers about a save: what they told is not so any more."""
        with self._lock:
            for key in [key for key in self._answers if key[0] == save]:
                del self._answers[key]

    def keep(self, save: str, request: Any, answer: Any) -> None:
        """Remember an answer, where the request has a key."""
        if not request.idempotency_key:
            return
        with self._lock:
            self._answers[save, request.idempotency_key] = (_digest(request), answer)
            if len(self._answers) > self._most:
                self._answers.popitem(last=False)


def _digest(request: Any) -> bytes:
    return hashlib.sha256(request.DESCRIPTOR.name.encode() + request.SerializeToString(deterministic=True)).digest()
