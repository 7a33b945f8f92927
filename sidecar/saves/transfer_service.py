"""SaveService, the calls that carry files: export and import."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import save_pb2
from sidecar.saves.access import SaveAccess
from sidecar.saves.archive import ARCHIVE_FORMAT
from sidecar.saves.exporter import PIECE_BYTES, Export
from sidecar.saves.importer import Conflict, Imported, Importer, Prepared, Source
from sidecar.saves.messages import checkpoint_to, info_to
from sidecar.saves.save_files import SaveFacts, SaveFiles
from sidecar.saves.unpacking import Upload
from sidecar.settings import SavesSettings
from sidecar.storage.disk import Disk
from sidecar.storage.keys import DEFAULT_SAVE, checked_id
from sidecar.storage.save_state import SaveStates
from sidecar.wire import require_known, state_to

_CONFLICTS = {
    save_pb2.IMPORT_CONFLICT_UNSPECIFIED: Conflict.FAIL,
    save_pb2.IMPORT_CONFLICT_FAIL: Conflict.FAIL,
    save_pb2.IMPORT_CONFLICT_REPLACE: Conflict.REPLACE,
    save_pb2.IMPORT_CONFLICT_MERGE: Conflict.MERGE,
}
_OWN_FORMATS = (save_pb2.IMPORT_FORMAT_UNSPECIFIED, save_pb2.IMPORT_FORMAT_LOREKEEPER)


Prepare = Callable[[Source], Prepared]


class TransferService:
    """``foreign`` prepares a save from files of another system, by the number of its format."""

    def __init__(
        self,
        *,
        disk: Disk,
        files: SaveFiles,
        importer: Importer,
        foreign: Mapping[int, Prepare],
        states: SaveStates,
        access: SaveAccess,
        limits: SavesSettings,
    ) -> None:
        self._disk = disk
        self._files = files
        self._importer = importer
        self._foreign = foreign
        self._states = states
        self._access = access
        self._limits = limits

    async def ExportSave(
        self, request: save_pb2.ExportSaveRequest, context: Any
    ) -> AsyncIterator[save_pb2.ExportSaveResponse]:
        save = checked_id(request.save_id, "save_id") or DEFAULT_SAVE
        place, facts = await self._access.still(save, context, lambda: self._snapshot(save, request.checkpoint_id))
        state = state_to(facts.state)
        try:
            export = Export(self._disk, place / "save", save=save, name=facts.name)
            header = save_pb2.ExportHeader(
                file_name=_file_name(save), source_bytes=facts.bytes, format_version=ARCHIVE_FORMAT
            )
            yield save_pb2.ExportSaveResponse(save=state, header=header)
            pieces = export.pieces()
            while piece := await self._access.of_none(lambda: next(pieces, b""), lane=place.name):
                yield save_pb2.ExportSaveResponse(save=state, chunk=piece)
            footer = save_pb2.ExportFooter(
                bytes=export.bytes, sha256=export.sha256, actors=facts.actors, records=facts.records
            )
            yield save_pb2.ExportSaveResponse(save=state, footer=footer)
        finally:
            self._access.later(lambda: self._importer.leave(place))

    async def ImportSave(self, requests: AsyncIterator[save_pb2.ImportSaveRequest], context: Any) -> Any:
        began = time.perf_counter()
        header = _header(await anext(aiter(requests), save_pb2.ImportSaveRequest()))
        require_known(save_pb2.ImportConflict, header.conflict, "header.conflict")
        conflict = _CONFLICTS[header.conflict]
        save = checked_id(header.save_id, "header.save_id")
        if save:
            await self._access.of_none(lambda: self._importer.check(save, conflict))
        place = await self._access.of_none(self._importer.workplace)
        try:
            archive = await self._received(requests, place, header)
            source = Source(place, archive, _folder(header), save, _timeline(header))
            prepared = await self._access.of_none(lambda: self._prepare(header.format, source), lane=place.name)
            return await self._finished(prepared, conflict, header, context, began)
        finally:
            self._access.later(lambda: self._importer.leave(place))

    def _snapshot(self, save: str, checkpoint_id: str) -> tuple[Path, SaveFacts]:
        """The save as it is, or was, in a workplace of its own, and what is told of it."""
        self._files.require(save)
        place = self._files.layout.export(save)
        self._disk.make_folder(place)
        checkpoint = self._files.snapshot(save, checkpoint_id, place / "save")
        facts = self._files.facts(save)
        if checkpoint is not None:
            facts = replace(
                facts,
                state=checkpoint.state,
                bytes=checkpoint.bytes,
                actors=checkpoint.actors,
                records=checkpoint.records,
            )
        return place, facts

    async def _received(self, requests: Any, place: Path, header: save_pb2.ImportHeader) -> Path | None:
        """The file that follows the header; None where a folder is to be read instead."""
        upload = Upload(self._disk, place / "upload.zip", self._limits)
        async for request in requests:
            if request.WhichOneof("part") != "chunk" or len(request.chunk) > PIECE_BYTES:
                raise InvalidInput(
                    f"after the header come pieces of at most {PIECE_BYTES} bytes",
                    reason=Reason.FIELD_INVALID,
                    field="chunk",
                )
            await self._access.of_none(partial(upload.take, request.chunk), lane=place.name)
        if not upload.bytes:
            return None
        upload.require(header.sha256)
        return place / "upload.zip"

    def _prepare(self, wanted: int, source: Source) -> Prepared:
        if wanted in self._foreign:
            return self._foreign[wanted](source)
        if wanted not in _OWN_FORMATS:
            raise InvalidInput(
                f"header.format {wanted} is not known", reason=Reason.FIELD_INVALID, field="header.format"
            )
        if source.archive is None:
            raise InvalidInput(
                "no file follows the header, or an empty one; send what ExportSave gave, in pieces",
                reason=Reason.FIELD_REQUIRED,
                field="chunk",
            )
        return self._importer.prepare(source.place, source.archive, source.save)

    async def _finished(
        self, prepared: Prepared, conflict: Conflict, header: save_pb2.ImportHeader, context: Any, began: float
    ) -> save_pb2.ImportSaveResponse:
        save = prepared.save
        if header.dry_run:
            imported = await self._access.still(save, context, lambda: self._importer.compare(prepared, conflict))
        else:
            imported, _ = await self._access.alone(
                save,
                context,
                lambda: self._importer.put(prepared, conflict),
                check=lambda: self._importer.check(save, conflict),
            )
        facts = await self._access.together(save, context, lambda: self._facts(save))
        return self._response(imported, facts, began)

    def _facts(self, save: str) -> SaveFacts | None:
        return self._files.facts(save) if self._files.exists(save) else None

    def _response(self, imported: Imported, facts: SaveFacts | None, began: float) -> save_pb2.ImportSaveResponse:
        listed = imported.skipped[: self._limits.max_skipped]
        response = save_pb2.ImportSaveResponse(
            taken={name: count for name, count in imported.taken.items() if count},
            skipped=[
                save_pb2.SkippedItem(path=item.path, kind=item.kind, reason=item.reason, count=item.count)
                for item in listed
            ],
            skipped_more=sum(item.count for item in imported.skipped[len(listed) :]),
            duration_ms=(time.perf_counter() - began) * 1_000,
        )
        if facts is not None:
            response.save.CopyFrom(state_to(facts.state))
            response.info.CopyFrom(info_to(facts, restoring=False))
        if imported.safety is not None:
            response.safety.CopyFrom(checkpoint_to(imported.safety))
        return response


def _header(request: save_pb2.ImportSaveRequest) -> save_pb2.ImportHeader:
    if request.WhichOneof("part") != "header":
        raise InvalidInput("the first message must be the header", reason=Reason.FIELD_REQUIRED, field="header")
    return request.header


def _folder(header: save_pb2.ImportHeader) -> Path | None:
    if not header.source_directory:
        return None
    folder = Path(header.source_directory)
    if not folder.is_absolute():
        raise InvalidInput(
            "header.source_directory must be an absolute path",
            reason=Reason.FIELD_INVALID,
            field="header.source_directory",
        )
    return folder


def _timeline(header: save_pb2.ImportHeader) -> str:
    return checked_id(header.timeline_id, "header.timeline_id") or "default"


def _file_name(save: str) -> str:
    """A name that is safe on every system: nothing of the id but plain letters and digits."""
    plain = re.sub(r"[^a-z0-9]+", "-", save.lower()).strip("-")[:40]
    return f"lorekeeper-{plain or 'save'}.zip"
