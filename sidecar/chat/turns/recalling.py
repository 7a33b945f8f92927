"""What a search brings into a turn's prompt, and what is told where it could not search."""

from __future__ import annotations

from sidecar.chat.recall import Recall, Recalled
from sidecar.chat.roles import Role
from sidecar.chat.turns.input import TurnInput
from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.storage.keys import ActorId


async def recalled_for(
    recall: Recall | None, who: ActorId, turn: TurnInput, role: Role
) -> tuple[Recalled, tuple[Cut, ...]]:
    """The hits for the turn: nothing where neither it nor its role asks for any."""
    options = turn.recall or role.recall
    query = (options.text or turn.text) if options else ""
    if options is None or not options.enabled or not query.strip():
        return Recalled(), ()
    if recall is None or turn.moment is None:
        why = "there is no search in this daemon" if recall is None else "the turn has no moment"
        return Recalled(), (Cut(CutKind.RECALLED, Unit.HITS, 0, 0, f"nothing was searched: {why}"),)
    return await recall(who, query, options, turn.moment), ()
