"""A turn's prompt: built for the backend that answers, and built again where it must be smaller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sidecar.chat.backends.profile import TailRole
from sidecar.chat.backends.retries import Smaller
from sidecar.chat.memory_view import MemorySnapshot, may_forget
from sidecar.chat.prompts import Prompt
from sidecar.chat.recall import Recalled
from sidecar.chat.roles import Role
from sidecar.chat.turns.choice import Chosen
from sidecar.chat.turns.input import TurnInput
from sidecar.chat.turns.parts import TurnParts
from sidecar.compaction.marker import StoredSummary
from sidecar.compaction.tokens import TokenCounter
from sidecar.storage.keys import ActorId


@dataclass(frozen=True)
class Opening:
    """All of a turn that its prompt is made of."""

    parts: TurnParts
    who: ActorId
    role: Role
    turn: TurnInput
    recalled: Recalled = field(default_factory=Recalled)
    line_kept: Callable[[], bool] = lambda: False
    """Whether the line is in the history already."""

    def counter(self, chosen: Chosen) -> TokenCounter:
        """Who counts for the model."""
        return self.parts.counting.of(chosen.backend).best(chosen.model)

    def build(self, chosen: Chosen, smaller: Smaller | None = None) -> Prompt:
        """The prompt that is sent. Called in the actor's own thread. Raises Corrupt, InvalidInput."""
        return self._built(chosen, self._snapshot(anew=smaller is not None), smaller)

    def show(self, chosen: Chosen) -> Prompt:
        """The prompt that would be sent, with nothing stored and the document not counting as shown.

        Lines by rule stand for a summary that a model would write first. Raises Corrupt, InvalidInput.
        """
        prompt = self._built(chosen, self.parts.snapshots.get(self.who))
        if self.role.summary.background or not prompt.snapshot.folded:
            return prompt
        return prompt.after_fold(self._built(chosen, None, summary=prompt.snapshot.stored), prompt.snapshot)

    def window(self, chosen: Chosen, smaller: Smaller | None = None) -> int:
        """The smallest of all windows that are told; 0 where none is."""
        told = (
            self.turn.asked.context_tokens or self.role.context_tokens,
            chosen.window,
            smaller.window if smaller else 0,
        )
        return min((window for window in told if window), default=0)

    def longest(self, chosen: Chosen) -> int:
        """The longest answer in tokens; 0: the server decides."""
        return self.turn.asked.max_output_tokens or self.role.max_output_tokens or chosen.backend.max_output_tokens or 0

    def temperature(self, chosen: Chosen) -> float | None:
        """None: the server decides."""
        own = (self.turn.temperature, self.role.temperature, chosen.backend.temperature)
        return next((value for value in own if value is not None), None)

    def _built(
        self,
        chosen: Chosen,
        snapshot: MemorySnapshot | None,
        smaller: Smaller | None = None,
        summary: StoredSummary | None = None,
    ) -> Prompt:
        options = self.turn.recall or self.role.recall
        request = replace(
            self.turn.asked,
            recalled=tuple(hit.line() for hit in self.recalled.hits),
            recall_tokens=options.max_tokens if options else 0,
            context_tokens=self.window(chosen, smaller) or None,
            max_output_tokens=self.longest(chosen) or None,
            text_tools=not chosen.native,
            tail_as_system=chosen.backend.tail_role is TailRole.SYSTEM,
            memory_snapshot=snapshot,
            summary=summary,
            line_kept=self.line_kept(),
        )
        return self.parts.prompts.build(self.who, self._role(smaller), request, self.counter(chosen))

    def _role(self, smaller: Smaller | None) -> Role:
        """With less room for the recent messages, the further it has to shrink."""
        if smaller is None:
            return self.role
        budget = self.role.summary.recent_token_budget or smaller.window
        scaled = max(32, int(budget * smaller.scale / 2))
        return replace(self.role, summary=replace(self.role.summary, recent_token_budget=scaled))

    def _snapshot(self, *, anew: bool) -> MemorySnapshot | None:
        """How the document is shown: as before, unless it must not be any more."""
        if not self.role.memory_tool:
            return None
        known = self.parts.snapshots.get(self.who)
        if anew or known is None or may_forget(self.parts.documents.read(self.who), known):
            return self.parts.snapshots.take(self.who)
        return known
