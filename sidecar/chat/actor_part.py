"""What chat keeps of an actor, for listing and for erasing it. Its archive is among the actor's records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from sidecar.chat.history_store import HistoryStore
from sidecar.compaction.summaries import SummaryStore
from sidecar.storage.forgetting import Who
from sidecar.storage.keys import ActorId


class Forgets(Protocol):
    """Something that remembers things of actors."""

    def erased(self, who: ActorId) -> None:
        """Forget this one."""

    def exchanged(self, save: str) -> None:
        """Forget all of a save."""


class ConversationPart:
    """History and summary of an actor."""

    def __init__(self, histories: HistoryStore, summaries: SummaryStore, *, forgets: Sequence[Forgets]) -> None:
        """``forgets`` are the memories of the process that go with an actor."""
        self._histories = histories
        self._summaries = summaries
        self._stores: list[Forgets] = [histories, summaries, *forgets]

    def counted(self, who: ActorId) -> Mapping[str, int]:
        """Messages, further transcript rows and summaries; 0 for what cannot be read."""
        messages, rows = self._histories.sizes(who)
        return {
            "messages": messages,
            "rows": max(0, rows - messages),
            "summaries": int(self._summaries.exists(who)),
        }

    def unstored(self) -> set[ActorId]:
        """The actors of whom something lives in this process only: no folder may tell that there are any."""
        return {*self._histories.unstored(), *self._summaries.unstored()}

    def erased(self, who: ActorId) -> None:
        """Forget what is in memory: the folder is gone or was exchanged."""
        for store in self._stores:
            store.erased(who)

    def settle(self, save: str) -> None:
        """Nothing waits here for a folder."""

    def quiet(self, save: str) -> None:
        """Nothing to do: what was acknowledged is in its file."""

    def exchanged(self, save: str) -> None:
        """Forget what is in memory of a save whose files were exchanged."""
        for store in self._stores:
            store.exchanged(save)

    @contextmanager
    def staying(self, save: str) -> Iterator[None]:
        """What lives in this process only outlives an exchange of the save's files that leaves the conversations of
        its actors as they are. Nobody else uses the save meanwhile."""
        histories, summaries = self._histories.of_process(save), self._summaries.of_process(save)
        try:
            yield
        finally:
            self._histories.take_back(histories)
            self._summaries.take_back(summaries)

    def save_erased(self, save: str) -> None:
        """Forget what is in memory of a save that is erased."""
        self.exchanged(save)

    def save_counted(self, save: str) -> Mapping[str, int]:
        """Nothing that is known without reading every history."""
        return {}

    def forget_mentions(self, folder: Path, who: Who, *, dry_run: bool) -> bool:
        """Nothing to do: a conversation is its actor's alone."""
        return False
