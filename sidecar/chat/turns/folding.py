"""Folds a history that a turn found too long: before the turn, or beside the next ones."""

from __future__ import annotations

from sidecar.chat.compactions import Compactions
from sidecar.chat.turns.background import Background
from sidecar.compaction.pending import Pending
from sidecar.compaction.rollup import Snapshot
from sidecar.compaction.windows import Asked
from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.errors import LimitReached, LorekeeperError
from sidecar.storage.keys import ActorId
from sidecar.storage.workers import Workers


class Folding:
    """One folding at a time for an actor. A model that writes summaries has threads of its own."""

    def __init__(
        self, *, compactions: Compactions, workers: Workers, models: Workers, background: Background, report: Report
    ) -> None:
        self._compactions = compactions
        self._workers = workers
        self._models = models
        self._background = background
        self._report = report
        self._running: set[ActorId] = set()

    async def fold(self, who: ActorId, history_tokens: int, *, through: int | None = None) -> Snapshot:
        """Folds what does not fit ``history_tokens``, and stores the summary. Raises Corrupt, LimitReached.

        ``through`` is the number of the newest message that counts; None: all do. By rule where too many wait for a
        model already, which is told as a cut.
        """
        compactions, asked = self._compactions, Asked(history_tokens=history_tokens, through=through)
        await compactions.look(who, asked)
        pending = await self._workers.run(who, lambda: compactions.begin(who, asked))
        written = await self._written(pending)

        def commit() -> Snapshot:
            snapshot = written or pending.by_rule().run()
            compactions.commit(pending, snapshot)
            return snapshot

        return await self._workers.run(who, commit)

    async def _written(self, pending: Pending) -> Snapshot | None:
        """What a model makes of it; None where none is to, or cannot soon."""
        if pending.summariser is None:
            return None
        try:
            return await self._models.run(pending.who, pending.run, left=pending.hang_up)
        except LimitReached:
            return None

    def start(self, who: ActorId, history_tokens: int) -> None:
        """The same in the background; one that runs already does the work of both."""
        if who not in self._running:
            self._running.add(who)
            self._background.start(self._fold_and_leave(who, history_tokens))

    async def _fold_and_leave(self, who: ActorId, history_tokens: int) -> None:
        try:
            await self.fold(who, history_tokens)
        except Exception as error:  # whatever it was: nobody waits for this, and the history stays as it is
            self._report(_failed(error))
        finally:
            self._running.discard(who)


def _failed(error: Exception) -> Diagnostic:
    why = {"reason": str(error.reason)} if isinstance(error, LorekeeperError) else {"error": type(error).__name__}
    return Diagnostic(
        "background_fold_failed",
        "a history could not be folded behind its turn; nothing was lost, and the next turn tries again",
        Severity.ERROR,
        why,
    )
