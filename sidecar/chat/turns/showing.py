"""The request that a turn would make: built as the turn builds it, and then neither sent nor stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sidecar.chat.prompts import Prompt
from sidecar.chat.roles import for_source
from sidecar.chat.turns.asking import ready
from sidecar.chat.turns.choice import Chosen, chosen_backend
from sidecar.chat.turns.input import TurnInput
from sidecar.chat.turns.opening import Opening
from sidecar.chat.turns.parts import TurnParts
from sidecar.chat.turns.recalling import recalled_for
from sidecar.chat.turns.request import request_of
from sidecar.chat.turns.tools import TurnTool
from sidecar.compaction.cuts import Cut
from sidecar.storage.keys import ActorId


@dataclass(frozen=True)
class Shown:
    """The prompt, where it would go, what was recalled for it, and every cut."""

    opening: Opening
    chosen: Chosen
    prompt: Prompt
    cuts: tuple[Cut, ...]

    def body(self) -> dict[str, Any]:
        """The request's body, without any key."""
        return request_of(self.opening, self.chosen, self.prompt).body(self.chosen.backend)


async def show_prompt(parts: TurnParts, who: ActorId, turn: TurnInput, tools: Sequence[TurnTool]) -> Shown:
    """What the turn would send. Raises InvalidInput, NotFound for a backend that is not known, Corrupt."""
    role = for_source(parts.roles.get(who.role), turn.asked.line.source)
    turn = turn.with_tools(tools)
    chosen = chosen_backend(parts.backends, role, backend_id=turn.backend_id, model=turn.model, api_key=turn.api_key)
    recalled, cuts = await recalled_for(parts.recall, who, turn, role)
    chosen = await ready(parts, chosen)
    opening = Opening(parts, who, role, turn, recalled)

    def show() -> Prompt:
        return opening.show(chosen)

    prompt = show() if parts.prompts.in_memory(who) else await parts.workers.run(who, show)
    counting = parts.counting.of(chosen.backend).cuts(prompt.counter)
    told = (*prompt.cuts, *(tool.cut for tool in tools if tool.cut), *cuts, *counting)
    return Shown(opening, chosen, prompt, told)
