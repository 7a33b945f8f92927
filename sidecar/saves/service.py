"""SaveService but for files that come and go and for erasures: list, settings, checkpoints, restore, fork."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from google.protobuf.message import Message

from sidecar.errors import InvalidInput, NotFound, Reason
from sidecar.gen.lorekeeper.v1 import save_pb2
from sidecar.saves.access import SaveAccess
from sidecar.saves.answers import Answers, Request
from sidecar.saves.checkpoint import Checkpoint, Kind, Wish, checked_wish
from sidecar.saves.messages import (
    checkpoint_to,
    info_to,
    kind_from,
    method_to,
    required,
    save_from,
)
from sidecar.saves.save_files import Fork, SaveFiles
from sidecar.saves.save_settings import SaveSettingsStore
from sidecar.saves.settings_rules import effective_settings, settings_from, settings_to
from sidecar.settings import SavesSettings
from sidecar.storage.keys import checked_id
from sidecar.storage.save_state import SaveStates
from sidecar.wire import Page, Paging, moment_from, page, state_to

M = TypeVar("M", bound=Message)


class SaveService:
    """Every call on a save comes to it through :class:`SaveAccess`: together with others, still, or alone."""

    def __init__(
        self,
        *,
        files: SaveFiles,
        settings: SaveSettingsStore,
        states: SaveStates,
        access: SaveAccess,
        answers: Answers,
        limits: SavesSettings,
        language: str,
        paging: Paging,
    ) -> None:
        """``language`` is that of a save that names none."""
        self._language = language
        self._files = files
        self._settings = settings
        self._states = states
        self._access = access
        self._limits = limits
        self._paging = paging
        self._answers = answers

    async def ListSaves(self, request: save_pb2.ListSavesRequest, context: Any) -> save_pb2.ListSavesResponse:
        def list_saves() -> Page[save_pb2.SaveInfo]:
            chosen = page(
                self._files.saves(),
                key=lambda save: save,
                size=request.page_size,
                token=request.page_token,
                paging=self._paging,
                weight=lambda _: 4_000,
            )
            return Page([self._info(save) for save in chosen.items], chosen.next_token)

        listed = await self._access.of_none(list_saves)
        return save_pb2.ListSavesResponse(saves=listed.items, next_page_token=listed.next_token)

    async def GetSaveSettings(
        self, request: save_pb2.GetSaveSettingsRequest, context: Any
    ) -> save_pb2.GetSaveSettingsResponse:
        save = save_from(request.save_id)
        stored = await self._access.together(save, context, lambda: self._settings.read(save))
        return save_pb2.GetSaveSettingsResponse(
            save=state_to(self._states.state(save)),
            settings=settings_to(stored),
            effective=self._effective(stored),
        )

    async def PutSaveSettings(
        self, request: save_pb2.PutSaveSettingsRequest, context: Any
    ) -> save_pb2.PutSaveSettingsResponse:
        save, asked = save_from(request.save_id), Request("PutSaveSettings", request)
        stored = settings_from(request.settings, self._limits)
        if known := await self._known(asked, save_pb2.PutSaveSettingsResponse):
            known.effective.CopyFrom(self._effective(stored))
            return known
        await self._access.together(save, context, lambda: self._settings.put(save, stored))
        response = save_pb2.PutSaveSettingsResponse(
            save=state_to(self._states.state(save)), effective=self._effective(stored)
        )
        return await self._kept(asked, response, named=("effective",))

    async def CreateCheckpoint(
        self, request: save_pb2.CreateCheckpointRequest, context: Any
    ) -> save_pb2.CreateCheckpointResponse:
        save, asked, began = save_from(request.save_id), Request("CreateCheckpoint", request), time.perf_counter()
        moment = moment_from(request.moment) if request.HasField("moment") else None
        wish = Wish(request.name, moment, dict(request.metadata), Kind.MANUAL, asked.key, asked.content)
        wish = checked_wish(wish, self._limits)

        def create() -> Checkpoint:
            return self._made_for(save, asked) or self._files.checkpoint(save, wish)

        checkpoint = await self._access.still(save, context, create)
        return save_pb2.CreateCheckpointResponse(
            save=state_to(self._states.state(save)),
            checkpoint=checkpoint_to(checkpoint),
            duration_ms=_milliseconds(began),
        )

    async def ListCheckpoints(
        self, request: save_pb2.ListCheckpointsRequest, context: Any
    ) -> save_pb2.ListCheckpointsResponse:
        save, kind = save_from(request.save_id), kind_from(request.kind)

        def list_checkpoints() -> Page[Checkpoint]:
            return page(
                (one for one in self._files.checkpoints.of_save(save) if kind in (None, one.wish.kind)),
                key=lambda one: one.newest_first,
                size=request.page_size,
                token=request.page_token,
                paging=self._paging,
                weight=lambda one: 1_000 + 4 * sum(len(key) + len(value) for key, value in one.wish.metadata.items()),
            )

        listed = await self._access.together(save, context, list_checkpoints)
        return save_pb2.ListCheckpointsResponse(
            save=state_to(self._states.state(save)),
            checkpoints=map(checkpoint_to, listed.items),
            next_page_token=listed.next_token,
        )

    async def RestoreCheckpoint(
        self, request: save_pb2.RestoreCheckpointRequest, context: Any
    ) -> save_pb2.RestoreCheckpointResponse:
        save, asked, began = save_from(request.save_id), Request("RestoreCheckpoint", request), time.perf_counter()
        checkpoint_id = required(request.checkpoint_id, "checkpoint_id")
        expected = request.expected_epoch if request.HasField("expected_epoch") else None
        wish = Wish("before a restore", None, {}, Kind.SAFETY, asked.key, asked.content)

        def restore() -> tuple[Checkpoint | None, Checkpoint | None]:
            if (safety := self._made_for(save, asked)) is None:
                return self._files.restore(save, checkpoint_id, wish, expected_epoch=expected)
            with suppress(NotFound):  # which may be so since, and changes nothing of what was done
                return self._files.checkpoints.get(save, checkpoint_id), safety
            return None, safety

        def check() -> None:
            if self._made_for(save, asked) is None:
                self._files.restorable(save, checkpoint_id, expected_epoch=expected)

        (restored, safety), ended = await self._access.alone(save, context, restore, check=check)
        self._access.later(self._files.sweep)
        return save_pb2.RestoreCheckpointResponse(
            save=state_to(self._states.state(save)),
            restored=None if restored is None else checkpoint_to(restored),
            safety=None if safety is None else checkpoint_to(safety),
            ended=ended,
            duration_ms=_milliseconds(began),
        )

    async def DeleteCheckpoint(
        self, request: save_pb2.DeleteCheckpointRequest, context: Any
    ) -> save_pb2.DeleteCheckpointResponse:
        save, asked = save_from(request.save_id), Request("DeleteCheckpoint", request)
        checkpoint_id = required(request.checkpoint_id, "checkpoint_id")
        if known := await self._known(asked, save_pb2.DeleteCheckpointResponse):
            return known
        freed = await self._access.still(save, context, lambda: self._files.checkpoints.delete(save, checkpoint_id))
        await self._access.of_none(self._files.sweep)
        response = save_pb2.DeleteCheckpointResponse(
            save=state_to(self._states.state(save)), existed=freed is not None, freed_bytes=freed or 0
        )
        return await self._kept(asked, response)

    async def ForkSave(self, request: save_pb2.ForkSaveRequest, context: Any) -> save_pb2.ForkSaveResponse:
        asked, began = Request("ForkSave", request), time.perf_counter()
        if request.old_timeline_id and not request.new_timeline_id:
            raise InvalidInput(
                "new_timeline_id is required where old_timeline_id names what it replaces",
                reason=Reason.FIELD_REQUIRED,
                field="new_timeline_id",
            )
        fork = Fork(
            source=save_from(request.save_id),
            checkpoint_id=request.checkpoint_id,
            save=required(checked_id(request.new_save_id, "new_save_id"), "new_save_id"),
            name=checked_wish(Wish(request.new_name), self._limits).name,
            new_timeline=checked_id(request.new_timeline_id, "new_timeline_id"),
            old_timeline=checked_id(request.old_timeline_id, "old_timeline_id"),
            key=asked.key,
            request=asked.content,
        )
        if known := await self._known(asked, save_pb2.ForkSaveResponse):
            if not known.HasField("info"):
                known.info.CopyFrom(await self._access.together(fork.save, context, lambda: self._info(fork.save)))
            return known
        method = await self._access.forking(
            fork.source,
            fork.save,
            context,
            lambda: self._files.fork(fork),
            check=lambda: self._files.forked(fork),
        )
        info = await self._access.together(fork.save, context, lambda: self._info(fork.save))
        response = save_pb2.ForkSaveResponse(
            save=info.save, info=info, method=method_to(method), duration_ms=_milliseconds(began)
        )
        return await self._kept(asked, response, named=("info",))

    async def _known(self, asked: Request, kind: type[M]) -> M | None:
        return await self._access.of_none(lambda: self._answers.known(asked, kind)) if asked.key else None

    async def _kept(self, asked: Request, answer: M, *, named: Sequence[str] = ()) -> M:
        return (
            await self._access.of_none(lambda: self._answers.keep(asked, answer, named=named)) if asked.key else answer
        )

    def _effective(self, stored: Mapping[str, Any]) -> save_pb2.SaveSettings:
        return effective_settings(stored, language=self._language)

    def _info(self, save: str) -> save_pb2.SaveInfo:
        return info_to(self._files.facts(save), restoring=self._access.exchanging(save))

    def _made_for(self, save: str, asked: Request) -> Checkpoint | None:
        """The checkpoint that an earlier call with the same key made, also before a kill."""
        made = self._files.checkpoints.of_save(save) if asked.key else ()
        return next((one for one in made if asked.matches(one.wish.key, one.wish.request)), None)


def _milliseconds(began: float) -> float:
    return (time.perf_counter() - began) * 1_000
