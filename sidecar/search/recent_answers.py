"""Answers that were given lately: the same question has the same answer for as long as nothing of the save changed.

A game that asks in every frame what an NPC recalls, while its time stands still, costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from sidecar.storage.recent import Recent


class RecentAnswers:
    """At most ``most`` answers, each with the version of what it was made from. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._answers: Recent[Hashable, tuple[Hashable, Any]] = Recent(most)

    def known(self, question: Hashable, version: Hashable) -> Any | None:
        """The answer to a question, if it was made from this version."""
        known = self._answers.get(question)
        return known[1] if known is not None and known[0] == version else None

    def keep(self, question: Hashable, version: Hashable, answer: Any) -> None:
        """Remember an answer. ``version`` was read before the answer was made."""
        self._answers.keep(question, (version, answer))
