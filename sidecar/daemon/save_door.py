"""Which save a call is on, read from its request, and the way in.

Every message that is about a save names it in ``actor.save_id`` or in ``save_id``; the descriptors tell which, so that
no service has to think of it. SaveService comes in by its own rules. A stream that names its actor in its first message
(``Converse``) stays outside: a turn of it whose save is exchanged or erased stores nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sidecar.storage.keys import DEFAULT_SAVE
from sidecar.storage.save_gate import SaveGate, patience

SaveOf = Callable[[Any], str | None]
_OWN_RULES = "SaveService"
_ANYWHERE = nullcontext()


class SaveDoor:
    """Lets calls into their saves; each waits ``seconds`` at most, and not beyond its deadline."""

    def __init__(self, gate: SaveGate, *, seconds: float) -> None:
        self._gate = gate
        self._seconds = seconds

    async def enter(self, save: str | None, context: Any) -> AbstractContextManager[Any]:
        """Use it in a ``with``. Raises NotReady where the save stays shut."""
        if save is None:
            return _ANYWHERE
        return await self._gate.enter(save, seconds=patience(context.time_remaining(), most=self._seconds))


def save_reader(method: Any) -> SaveOf:
    """For a method of the contract: what reads from a request the save that it is on, None where it is on none."""
    fields = method.input_type.fields_by_name
    if method.containing_service.name == _OWN_RULES or method.client_streaming:
        return lambda _: None
    if "actor" in fields:
        return lambda request: request.actor.save_id.strip() or DEFAULT_SAVE
    if "save_id" in fields:
        return lambda request: request.save_id.strip() or DEFAULT_SAVE
    return lambda _: None
