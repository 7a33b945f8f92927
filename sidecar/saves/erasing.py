"""Erasures that come to their end, also after a kill, and whose callers hear once what was erased.

    exchange/e-<random>.json     who is to be forgotten in a save, and what the call with this key is told

It is written before anything goes, and goes itself once the answer is kept, while still nobody else uses the save. The
next start does what it finds there: so nothing is left half erased, and a repeated call erases nothing that was made
anew. Every step may be done again.
"""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import LorekeeperError
from sidecar.memory.records import actor_of, actor_row
from sidecar.saves.answers import Answers, Request, nameless
from sidecar.saves.erasure import Doomed, Erasure
from sidecar.saves.layout import ERASING, Layout, is_erasure
from sidecar.storage.answer_journal import KeptAnswer
from sidecar.storage.disk import Disk
from sidecar.storage.forgetting import Who
from sidecar.storage.json_file import read_json, write_json

M = TypeVar("M", bound=Message)
_FORMAT = 1


class Erasures:
    """Calls for one save are made one at a time, while nobody else writes to it."""

    def __init__(self, disk: Disk, layout: Layout, erasure: Erasure, answers: Answers, report: Report) -> None:
        self._disk = disk
        self._layout = layout
        self._erasure = erasure
        self._answers = answers
        self._report = report

    def once(
        self,
        doomed: Doomed,
        asked: Request | None,
        told: Callable[[Mapping[str, int] | None], M],
        *,
        named: Sequence[str] = (),
    ) -> M:
        """Forget whoever is meant; what ``told`` makes of the counts, or the first answer to the same request.

        ``asked`` is None for a part of a call that is not its end; ``named`` are the fields of the answer that tell
        ids. Raises AlreadyExists for a key that was used for another request.
        """
        expected = told(self._erasure.erase(doomed, dry_run=True))
        if asked is not None and (known := self._answers.known(asked, type(expected))) is not None:
            return known
        with self._intended(doomed, asked, nameless(expected, named)):
            answer = told(self._erasure.erase(doomed))
            return answer if asked is None else self._answers.keep(asked, answer, named=named)

    def recover(self) -> None:
        """End what a kill left half done; one that fails is told, and is left to whoever asks for it again."""
        for path in self._intents():
            intent = read_json(self._disk, path) or {}
            try:
                self._erasure.erase(_doomed(intent))
                if intent["key"]:
                    kept = KeptAnswer(intent["request"], b64decode(intent["answer"]))
                    self._answers.put(intent["key"], kept)
            except LorekeeperError as error:
                what = f"an erasure that a kill broke off could not be ended, repeat it: {error.message}"
                self._report(Diagnostic("erasure_unfinished", what, Severity.ERROR, {"reason": str(error.reason)}))
            self._disk.remove(path)

    def _intents(self) -> list[Path]:
        folder = self._layout.exchanges
        return [folder / name for name in self._disk.names(folder) if is_erasure(name)]

    @contextmanager
    def _intended(self, doomed: Doomed, asked: Request | None, answer: bytes) -> Iterator[None]:
        """Have it ended by the next start where this process is killed; who is told of an error repeats the call."""
        self._disk.make_folder(self._layout.exchanges)
        path = self._layout.exchanges / f"{ERASING}{secrets.token_hex(8)}.json"
        write_json(self._disk, path, _intent(doomed, asked, answer))
        try:
            yield
        finally:
            self._disk.remove(path)


def _intent(doomed: Doomed, asked: Request | None, answer: bytes) -> dict[str, Any]:
    who = doomed.who
    return {
        "format": _FORMAT,
        "save_id": doomed.save,
        "actor": actor_row(who.actor) if who and who.actor else None,
        "player": [who.player, who.tenant] if who else None,
        "key": asked.key if asked else "",
        "request": asked.content if asked else "",
        "answer": b64encode(answer).decode("ascii"),
    }


def _doomed(intent: Mapping[str, Any]) -> Doomed:
    save = str(intent["save_id"])
    if intent["player"] is None:
        return Doomed(save)
    if intent["actor"] is not None:
        return Doomed(save, Who(actor=actor_of(intent["actor"], save)))
    player, tenant = intent["player"]
    return Doomed(save, Who(player=player, tenant=tenant))
