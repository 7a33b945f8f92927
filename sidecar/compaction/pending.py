"""A compaction between its beginning and its end: it may run for as long as a model takes, beside everything else."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sidecar.compaction.budget import Budget
from sidecar.compaction.messages import Message
from sidecar.compaction.rollup import Policy, Snapshot, roll_up
from sidecar.compaction.summaries import Summary
from sidecar.compaction.summariser import Summariser
from sidecar.compaction.tokens import TokenCounter
from sidecar.storage.keys import ActorId


@dataclass(frozen=True)
class Pending:
    """A compaction that was begun: all that it needs, so that it can run while the actor goes on talking."""

    who: ActorId
    messages: tuple[Message, ...]
    base: Summary
    policy: Policy
    counter: TokenCounter
    epoch: int
    summariser: Summariser | None = None
    trace_id: str = ""
    budget: Budget | None = None

    def within(self, budget: Budget) -> Pending:
        """The same, with the budget that its limits come from."""
        return replace(self, budget=budget)

    def by_rule(self) -> Pending:
        """The same without a model."""
        return replace(self, summariser=None)

    def hang_up(self) -> None:
        """Nobody waits for it any more: the model is not asked any further."""
        if self.summariser:
            self.summariser.hang_up()

    def run(self) -> Snapshot:
        """Folds what no longer fits. May take as long as a model takes; touches nothing that is stored.

        Raises CancelledError of ``concurrent.futures`` after :meth:`hang_up`.
        """
        return roll_up(
            self.messages,
            self.base.stored,
            self.policy,
            self.counter,
            summariser=self.summariser,
            trace_id=self.trace_id,
        )
