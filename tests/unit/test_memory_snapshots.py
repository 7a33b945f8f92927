"""How documents were last sent whole: kept for many actors at once, within a bound."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import Any, cast

import pytest

from sidecar.chat import memory_snapshots
from sidecar.chat.memory_snapshots import MemorySnapshots
from sidecar.memory.document import Document
from sidecar.storage.keys import ActorId, actor_id


@dataclass(frozen=True)
class Shelf:
    """Documents that are all alike."""

    text: str

    def read(self, who: ActorId) -> Any:
        return Document(text=self.text)


def snapshots(text: str) -> MemorySnapshots:
    return MemorySnapshots(cast(Any, Shelf(text)))


def test_the_oldest_snapshots_go_when_there_is_too_much_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_snapshots, "_MAX_CHARS", 225)
    known = snapshots("x" * 10)
    actors = [actor_id(actor=name) for name in "abc"]
    for who in (*actors, actors[1], actors[1]):
        known.take(who)
    assert [known.get(who) is not None for who in actors] == [False, True, True]


def test_many_threads_take_snapshots_at_once() -> None:
    known, errors = snapshots("Ada likes fish."), list[BaseException]()

    def take(thread: int) -> None:
        try:
            for number in range(300):
                known.take(actor_id(actor=f"{thread} {number}"))
        except RuntimeError as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=take, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert errors == []
