"""Answers to calls with an idempotency key, in a journal: what was asked and what was told, by key.

    {"key":"<hash>","request":"<hash>","answer":"<base64 of the answer>"}

Keys and requests are hashes that the caller makes: a journal names nobody.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import NamedTuple

from sidecar.storage.disk import Disk
from sidecar.storage.journal import Journal


class KeptAnswer(NamedTuple):
    """The hash of a request, and the bytes of its answer."""

    request: str
    answer: bytes


class AnswerJournal:
    """The newest answers, at least ``most``; older ones go once there are twice as many. Reads its file at its first
    use. Calls are made one at a time by the caller. They raise Corrupt, and what the disk raises."""

    def __init__(self, disk: Disk, path: Path, *, most: int) -> None:
        self._journal = Journal(disk, path)
        self._most = most
        self._rows: dict[str, dict[str, str]] | None = None

    def known(self, key: str) -> KeptAnswer | None:
        """What was kept for a key."""
        row = self._read().get(key)
        return KeptAnswer(row["request"], b64decode(row["answer"])) if row else None

    def keep(self, key: str, kept: KeptAnswer) -> None:
        """Remember an answer. Where the disk refuses, it is known until the daemon ends."""
        rows = self._read()
        row = {"key": key, "request": kept.request, "answer": b64encode(kept.answer).decode("ascii")}
        rows[key] = row
        if len(rows) <= 2 * self._most:
            self._journal.append([row])
            return
        self._rows = dict(list(rows.items())[-self._most :])
        self._journal.rewrite(self._rows.values())

    def _read(self) -> dict[str, dict[str, str]]:
        if self._rows is None:
            self._rows = {line.row["key"]: line.row for line in self._journal.load().lines}
        return self._rows
