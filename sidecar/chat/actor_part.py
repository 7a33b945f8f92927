"""What chat keeps of an actor, for listing and for erasing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sidecar.chat.archive import Archive
from sidecar.chat.history_store import HistoryStore
from sidecar.compaction.summaries import SummaryStore
from sidecar.errors import Corrupt
from sidecar.storage.keys import ActorId


class Forgets(Protocol):
    """Something that remembers things of actors."""

    def erased(self, who: ActorId) -> None:
        """Forget this one."""


class ConversationPart:
    """History, archive and summary of an actor."""

    def __init__(
        self, histories: HistoryStore, archive: Archive, summaries: SummaryStore, *, forgets: Sequence[Forgets]
    ) -> None:
        """``forgets`` are the memories of the process that go with an actor."""
        self._histories = histories
        self._archive = archive
        self._summaries = summaries
        self._forgets = forgets

    def counted(self, who: ActorId) -> Mapping[str, int]:
        """Messages, further transcript rows, archived messages and summaries; 0 for what cannot be read."""
        messages, rows = self._histories.sizes(who)
        return {
            "messages": messages,
            "rows": max(0, rows - messages),
            "archived": self._archived(who),
            "summaries": int(self._summaries.exists(who)),
        }

    def erased(self, who: ActorId) -> None:
        """Forget what is in memory: the folder is gone or was exchanged."""
        stores: list[Forgets] = [self._histories, self._archive, self._summaries, *self._forgets]
        for store in stores:
            store.erased(who)

    def _archived(self, who: ActorId) -> int:
        try:
            return self._archive.count(who)
        except Corrupt:
            return 0
