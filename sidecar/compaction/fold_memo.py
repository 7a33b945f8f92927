"""The last fold of each actor that was made for a prompt and not stored, so that it is not made again for the next.

A history is split in blocks, so most prompts fold the same messages as the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sidecar.compaction.folding import Fold, Folded, fold_as_bullets
from sidecar.compaction.marker import StoredSummary
from sidecar.compaction.messages import Message
from sidecar.compaction.tokens import TokenCounter
from sidecar.storage.keys import ActorId
from sidecar.storage.recent import RecentActors

_MAX_KEPT = 256


class FoldMemo(RecentActors[tuple[Any, Folded]]):
    """Folds as bullets, or remembers: numbers may mean other messages once an actor's folder was exchanged. Two calls
    at once cost time, never a wrong answer."""

    def __init__(self) -> None:
        super().__init__(_MAX_KEPT)

    def of(self, who: ActorId) -> Fold:
        """The fold of one actor, whose messages keep their numbers for ever."""
        return partial(self._fold, who)

    def _fold(
        self, who: ActorId, stored: StoredSummary, messages: Sequence[Message], *, cap: int, counter: TokenCounter
    ) -> Folded:
        span = (messages[0].number, messages[-1].number, len(messages)) if messages else ()
        asked = (stored, span, cap, counter)
        known = self.get(who)
        if known is not None and known[0] == asked:
            return known[1]
        folded = fold_as_bullets(stored, messages, cap=cap, counter=counter)
        self.keep(who, (asked, folded))
        return folded
