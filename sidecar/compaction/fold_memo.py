"""The last fold of each actor that was made for a prompt and not stored, so that it is not made again for the next.

A history is split in blocks, so most prompts fold the same messages as the one before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

from sidecar.compaction.folding import Fold, Folded, fold_as_bullets
from sidecar.compaction.marker import StoredSummary
from sidecar.compaction.messages import Message
from sidecar.compaction.tokens import TokenCounter
from sidecar.storage.keys import ActorId

_MAX_KEPT = 256


class FoldMemo:
    """Folds as bullets, or remembers. Two calls at once cost time, never a wrong answer."""

    def __init__(self) -> None:
        self._known: OrderedDict[ActorId, tuple[Any, Folded]] = OrderedDict()

    def of(self, who: ActorId) -> Fold:
        """The fold of one actor, whose messages keep their numbers for ever."""
        return partial(self._fold, who)

    def _fold(
        self, who: ActorId, stored: StoredSummary, messages: Sequence[Message], *, cap: int, counter: TokenCounter
    ) -> Folded:
        span = (messages[0].number, messages[-1].number, len(messages)) if messages else ()
        asked = (stored, span, cap, counter)
        known = self._known.get(who)
        if known is not None and known[0] == asked:
            return known[1]
        folded = fold_as_bullets(stored, messages, cap=cap, counter=counter)
        self._known[who] = (asked, folded)
        if len(self._known) > _MAX_KEPT:
            self._known.popitem(last=False)
        return folded

    def exchanged(self, save: str) -> None:
        """The files of a save were exchanged."""
        for who in [who for who in list(self._known) if who.save == save]:
            self.erased(who)

    def erased(self, who: ActorId) -> None:
        """The actor is gone, or its folder was exchanged: numbers may mean other messages now."""
        self._known.pop(who, None)
