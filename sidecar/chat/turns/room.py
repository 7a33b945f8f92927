"""The room of turns: makes a turn for a line, and keeps lines that no turn will answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from sidecar.chat.turns.calling import AskGame
from sidecar.chat.turns.events import Tell, TurnFailed
from sidecar.chat.turns.folding import Folding
from sidecar.chat.turns.input import TurnInput
from sidecar.chat.turns.ledger import Ledger
from sidecar.chat.turns.parts import TurnParts
from sidecar.chat.turns.tools import TurnTool
from sidecar.chat.turns.turn import Turn
from sidecar.errors import LorekeeperError
from sidecar.storage.keys import ActorId


class TurnRoom:
    """One for the whole daemon."""

    def __init__(self, parts: TurnParts) -> None:
        self.parts = parts
        self._folding = Folding(
            compactions=parts.compactions,
            workers=parts.workers,
            models=parts.models,
            background=parts.background,
            report=parts.report,
        )

    def of(self, who: ActorId) -> ActorTurns:
        """The turns of one actor."""
        return ActorTurns(self.parts, self._folding, who)

    async def close(self) -> None:
        """Wait for what is still to be stored, then close the connections to backends."""
        await self.parts.background.close()
        await self.parts.client.close()


class ActorTurns:
    """Makes the turns of one actor."""

    def __init__(self, parts: TurnParts, folding: Folding, who: ActorId) -> None:
        self._parts = parts
        self._folding = folding
        self._who = who

    def turn(
        self,
        turn: TurnInput,
        tools: Sequence[TurnTool],
        *,
        tell: Tell,
        ask_game: AskGame,
        new_id: Callable[[str], str],
    ) -> Turn:
        """A turn that answers the line."""
        return Turn(self._parts, self._folding, self._who, turn, tools, tell=tell, ask_game=ask_game, new_id=new_id)

    def keeper(self, turn: TurnInput) -> Callable[[], None]:
        """What stores the line in the background, where no turn will answer it: nothing, once the save was restored or
        the actor erased."""
        role = self._parts.roles.get(self._who.role)
        ledger = Ledger(self._parts, self._parts.claims.begin(self._who), role, turn)

        def keep() -> None:
            self._parts.background.start(self._keep(ledger))

        return keep

    async def _keep(self, ledger: Ledger) -> None:
        with contextlib.suppress(TurnFailed, LorekeeperError):
            await self._parts.workers.run(self._who, ledger.keep_line)
