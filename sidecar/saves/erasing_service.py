"""The calls that forget: EraseSave and ErasePlayer of SaveService, EraseActor of MemoryService."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from google.protobuf.message import Message

from sidecar.bounds import Bound, require_count
from sidecar.gen.lorekeeper.v1 import memory_pb2, save_pb2
from sidecar.saves.access import SaveAccess
from sidecar.saves.answers import Answers, Request
from sidecar.saves.erasing import Erasures
from sidecar.saves.erasure import Doomed, Erasure
from sidecar.saves.messages import erasure_to, info_to, required, save_from
from sidecar.saves.save_files import SaveFiles
from sidecar.storage.forgetting import Who
from sidecar.storage.keys import checked_id
from sidecar.storage.save_state import SaveStates
from sidecar.wire import actor_from, state_to

M = TypeVar("M", bound=Message)
Counts = Mapping[str, int] | None
_MAX_SAVES = 1_000


class ErasingService:
    """An actor is forgotten while no file of its save changes, a save or a player while nobody uses the save."""

    def __init__(
        self,
        *,
        erasures: Erasures,
        erasure: Erasure,
        answers: Answers,
        files: SaveFiles,
        states: SaveStates,
        access: SaveAccess,
    ) -> None:
        self._erasures = erasures
        self._erasure = erasure
        self._answers = answers
        self._files = files
        self._states = states
        self._access = access

    async def EraseSave(self, request: save_pb2.EraseSaveRequest, context: Any) -> save_pb2.EraseSaveResponse:
        save, asked = required(checked_id(request.save_id, "save_id"), "save_id"), Request("EraseSave", request)
        before = await self._access.of_none(lambda: state_to(self._files.last_state(save)))

        def told(removed: Counts) -> save_pb2.EraseSaveResponse:
            return save_pb2.EraseSaveResponse(save=before, existed=removed is not None, erased=erasure_to(removed))

        if request.dry_run:
            return await self._counted(Doomed(save), told, context)
        return await self._alone(Doomed(save), asked, told, context)

    async def EraseActor(self, request: memory_pb2.EraseActorRequest, context: Any) -> memory_pb2.EraseActorResponse:
        who = actor_from(request.actor)
        doomed, asked = Doomed(who.save, Who(actor=who)), Request(f"EraseActor\n{who.save}", request)

        def told(removed: Counts) -> memory_pb2.EraseActorResponse:
            return memory_pb2.EraseActorResponse(existed=removed is not None, erased=erasure_to(removed))

        if request.dry_run:
            response = await self._counted(doomed, told, context)
        else:
            response = await self._access.still(who.save, context, lambda: self._erasures.once(doomed, asked, told))
        response.save.CopyFrom(state_to(self._states.state(who.save)))
        return response

    async def ErasePlayer(self, request: save_pb2.ErasePlayerRequest, context: Any) -> save_pb2.ErasePlayerResponse:
        """Save after save; the call is known by its key with the last of them."""
        asked = Request("ErasePlayer", request)
        player = required(checked_id(request.player_id, "player_id"), "player_id")
        who = Who(player=player, tenant=checked_id(request.tenant_id, "tenant_id"))
        if known := await self._access.of_none(lambda: self._answers.known(asked, save_pb2.ErasePlayerResponse)):
            return known
        response = save_pb2.ErasePlayerResponse()
        saves = _saves(request.save_ids) or await self._access.of_none(self._erasure.saves)
        for save in saves:
            told = partial(self._with, response, save)
            if request.dry_run:
                response = await self._counted(Doomed(save, who), told, context)
            else:
                last = asked if save == saves[-1] else None
                response = await self._alone(Doomed(save, who), last, told, context, named=("saves",))
        return response

    async def _counted(self, doomed: Doomed, told: Callable[[Counts], M], context: Any) -> M:
        return await self._access.still(doomed.save, context, lambda: told(self._erasure.erase(doomed, dry_run=True)))

    async def _alone(
        self, doomed: Doomed, asked: Request | None, told: Callable[[Counts], M], context: Any, **named: Any
    ) -> M:
        answer, _ = await self._access.alone(
            doomed.save, context, lambda: self._erasures.once(doomed, asked, told, **named)
        )
        return answer

    def _with(self, before: save_pb2.ErasePlayerResponse, save: str, removed: Counts) -> save_pb2.ErasePlayerResponse:
        """What is told of the saves before, and of this one where it held anything of the player."""
        if removed is None:
            return before
        counts = Counter({field.name: count for field, count in before.erased.ListFields()})
        counts.update(removed)
        info = info_to(self._files.facts(save), restoring=False)
        return save_pb2.ErasePlayerResponse(saves=[*before.saves, info], erased=erasure_to(counts))


def _saves(save_ids: Any) -> list[str]:
    require_count(len(save_ids), "save_ids", Bound("max_saves", _MAX_SAVES))
    return list(dict.fromkeys(map(save_from, save_ids)))
