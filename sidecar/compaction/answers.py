"""What calls with an idempotency key were told, so that a retry hears the same.

Keys and requests are kept as hashes: neither may reach the disk in clear.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidecar.errors import AlreadyExists, Reason
from sidecar.storage.json_file import dump
from sidecar.storage.keys import ActorId
from sidecar.storage.recent import RecentActors

_ACTORS = 1_000
_ANSWERS = 16


class Answers:
    """The last answers of one actor; the oldest go beyond ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, tuple[str, Mapping[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def told(self, key: str, request: Sequence[Any]) -> Mapping[str, Any] | None:
        """What the first call with this key was told. Raises AlreadyExists where it asked for something else."""
        known = self._known.get(_hash([key])) if key else None
        if known is None:
            return None
        if known[0] != _hash(request):
            raise AlreadyExists(
                "idempotency_key was used for another request on this actor; use a new key",
                reason=Reason.IDEMPOTENCY_KEY_REUSED,
                field="idempotency_key",
            )
        return known[1]

    def remember(self, key: str, request: Sequence[Any], told: Mapping[str, Any]) -> None:
        """Keep what this call was told; nothing without a key."""
        if key:
            self._put(_hash([key]), _hash(request), told)

    def take(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Keep what :meth:`to_json` or :func:`answer_json` wrote."""
        for answer in stored:
            self._put(answer["key"], answer["request"], answer["told"])

    def to_json(self) -> list[dict[str, Any]]:
        """All answers, oldest first."""
        return [{"key": key, "request": request, "told": told} for key, (request, told) in self._known.items()]

    def copy(self) -> Answers:
        """Answers that can be changed without touching these."""
        copied = Answers(self._most)
        copied._known = dict(self._known)
        return copied

    def _put(self, key: str, request: str, told: Mapping[str, Any]) -> None:
        self._known.pop(key, None)
        self._known[key] = (request, told)
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]


class ProcessAnswers(RecentActors[Answers]):
    """Answers of this process, of the actors that asked last. They go with their actor: they hold its texts."""

    def __init__(self) -> None:
        super().__init__(_ACTORS)

    def of(self, who: ActorId) -> Answers:
        """The actor's answers, to be read and added to."""
        known = self.get(who)
        return self.keep(who, Answers(_ANSWERS) if known is None else known)


def answer_json(key: str, request: Sequence[Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """One answer, as a journal's row carries it."""
    return {"key": _hash([key]), "request": _hash(request), "told": told}


def _hash(value: Sequence[Any]) -> str:
    return hashlib.sha256(dump({"": value})).hexdigest()
