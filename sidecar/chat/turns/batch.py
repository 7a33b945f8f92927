"""Runs the calls of one answer: several at once, those that change something one after another, in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from sidecar.chat.turns.loop import Planned
from sidecar.chat.turns.results import ToolOutcome

# What runs one call, told its place in the answer.
Run = Callable[[Planned, int], Awaitable[ToolOutcome]]


async def run_batch(planned: Sequence[Planned], run: Run, *, parallel: int) -> list[ToolOutcome]:
    """The outcomes in the order of the calls; at most ``parallel`` run at once. Calls that are answered do not run."""
    room = asyncio.Semaphore(parallel)
    outcomes: dict[int, ToolOutcome] = {place: call.answer for place, call in enumerate(planned) if call.answer}

    async def run_in_turn(places: Sequence[int]) -> None:
        for place in places:
            async with room:
                outcomes[place] = await run(planned[place], place)

    waiting = [place for place in range(len(planned)) if place not in outcomes]
    mutating = [place for place in waiting if planned[place].mutating]
    chains = [mutating, *([place] for place in waiting if not planned[place].mutating)]
    async with asyncio.TaskGroup() as group:
        for chain in chains:
            group.create_task(run_in_turn(chain))
    return [outcomes[place] for place in range(len(planned))]
