"""What everybody calls who wants to find something: the query's meaning first, then one look at the records.

Runs on the event loop, or by :meth:`Finder.from_thread` in a thread of the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from sidecar.diagnostics import Diagnostic, Report
from sidecar.errors import InvalidInput, LorekeeperError, NotReady, Reason, Unavailable
from sidecar.search.at_hand import NotAtHand, is_quick
from sidecar.search.meaning import NOT_ASKED, Meaning, Meanings
from sidecar.search.options import Mode
from sidecar.search.outcome import Degraded, Recalled
from sidecar.search.recall import Earlier, Query, Recall
from sidecar.search.terms import says_something
from sidecar.storage.workers import OwnKey, Workers

T = TypeVar("T")
_WITHOUT_VECTORS = (Degraded.INDEX_UNAVAILABLE, Degraded.SCAN_LIMIT)


class Asker(StrEnum):
    """Who searches."""

    CALL = "call"
    TOOL = "tool"
    PROMPT = "prompt"


class Finder:
    """Queries of hot owners are answered at once, others in threads, side by side."""

    def __init__(
        self, recall: Recall, recall_at_hand: Recall, meanings: Meanings, workers: Workers, report: Report
    ) -> None:
        self._recall = recall
        self._recall_at_hand = recall_at_hand
        self._meanings = meanings
        self._workers = workers
        self._report = report

    async def find(self, query: Query, asker: Asker, *, semantic: bool = False) -> Recalled:
        """The answer.

        With ``semantic``, and for a query by meaning only, what prevents meaning is raised: NotReady without a model,
        Unavailable where it fails.
        """
        with self._meanings.searching():
            meaning, earlier = await self._meant(query)
            semantic |= query.options.mode is Mode.VECTOR
            if semantic:
                _require(meaning.error)
            found = await self._found(query, meaning, earlier)
        if semantic:
            _require_vectors(found)
        self.answered(Account(found, asker))
        return found

    def from_thread(self, query: Query) -> Recalled:
        """The answer, for a tool, which is not on the event loop; meaning is used as far as it can be had."""
        meaning = self._meanings.from_thread(query.text) if _asks_meaning(query) else NOT_ASKED
        found = self._recall.run(query, meaning)
        self.answered(Account(found, Asker.TOOL))
        return found

    def answered(self, account: Account) -> None:
        """Tell watchers that a search was answered."""
        self._report(Diagnostic("search_completed", "a search was answered", details=account, routine=True))

    async def _meant(self, query: Query) -> tuple[Meaning, Earlier | None]:
        """What a query means, and what words find while the model is asked."""
        if not _asks_meaning(query):
            return NOT_ASKED, None
        if not self._meanings.ready or self._meanings.known(query.text):
            return await self._meanings.of(query.text), None
        return await asyncio.gather(self._meanings.of(query.text), self._by_words(query))

    async def _by_words(self, query: Query) -> Earlier | None:
        """None where it cannot be had: then the answer will tell why."""
        with suppress(LorekeeperError):
            return await self._run(query, lambda recall: recall.by_words(query), quick=is_quick(query))
        return None

    async def _found(self, query: Query, meaning: Meaning, earlier: Earlier | None) -> Recalled:
        quick = is_quick(query) and (earlier is None or earlier.by is self._recall_at_hand)
        return await self._run(query, lambda recall: recall.run(query, meaning, earlier), quick=quick)

    async def _run(self, query: Query, work: Callable[[Recall], T], *, quick: bool) -> T:
        """What work makes of it: at once, if that is worth trying and goes, or in a thread."""
        if quick:
            with suppress(NotAtHand):
                return work(self._recall_at_hand)
        return await self._workers.run(OwnKey(query.who.save), lambda: work(self._recall))


def _asks_meaning(query: Query) -> bool:
    return query.options.mode is not Mode.LEXICAL and query.limit > 0 and says_something(query.text)


def _require(error: LorekeeperError | None) -> None:
    if error is None:
        return
    if isinstance(error, NotReady):
        raise error
    if isinstance(error, InvalidInput):
        raise InvalidInput(
            "text is larger than the embedding model takes", reason=error.reason, field="text", **error.metadata
        ) from error
    raise Unavailable(
        "the query could not be embedded, and the request does not want an answer by words only",
        reason=error.reason,
        field="require_semantic",
        **error.metadata,
    ) from error


def _require_vectors(found: Recalled) -> None:
    missing = [reason for reason in found.degraded if reason in _WITHOUT_VECTORS]
    if missing:
        raise Unavailable(
            f"vectors could not be compared ({missing[0].name}), and the request does not want an answer by words only",
            reason=Reason.VECTORS_UNAVAILABLE,
            field="require_semantic",
            degraded=missing[0].name,
        )


class Account(Mapping[str, str]):
    """What a watcher is told of a search: its stages and counts, written down where somebody watches: mostly nobody
    does."""

    def __init__(self, found: Recalled, asker: Asker, *, again: bool = False) -> None:
        """``again``: the answer was there from before."""
        self._hits, self._mode, self._degraded = len(found.hits), found.options.mode, found.degraded
        self._stages = found.stages
        self._asker = asker
        self._again = again

    def __getitem__(self, name: str) -> str:
        return self._written[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    @cached_property
    def _written(self) -> dict[str, str]:
        details = {"asked_by": str(self._asker), "hits": str(self._hits), "mode": self._mode.name}
        if self._degraded:
            details["degraded"] = ",".join(reason.name for reason in self._degraded)
        for stage in self._stages:
            name = stage.stage.name.lower()
            details[f"{name}.ms"] = f"{stage.milliseconds:.3f}"
            details[f"{name}.scanned"] = str(stage.scanned)
            details[f"{name}.candidates"] = str(stage.candidates)
            details[f"{name}.reused"] = str(stage.reused or self._again).lower()
        return details
