"""MemoryService, the documents: read, edit, versions, revert, reset; the tools of a role; the actors of a save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from sidecar.bounds import Bound, require_count, require_length, require_not_below_zero, require_some
from sidecar.errors import Corrupt, InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2
from sidecar.memory.actor_files import ActorFiles
from sidecar.memory.document import Document, EditFailed, Version
from sidecar.memory.document_store import DocumentStore
from sidecar.memory.edits import Action, Edit, TextNotFound
from sidecar.memory.moments import checked_moment
from sidecar.memory.record_wire import patterns_in
from sidecar.memory.tool_wire import tool_to
from sidecar.memory.toolbox import Toolbox, ToolCall
from sidecar.settings import MemorySettings
from sidecar.storage.keys import DEFAULT_SAVE, ActorId, checked_id, trimmed_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.workers import SaveKey, Workers
from sidecar.wire import Paging, actor_from, actor_to, key_from, moment_from, page, state_to, time_to, token_key

_MAX_SOURCES = Bound("max_sources", 256)
_RESULT_CUT = "the rest did not fit into records.max_tool_result_chars"
_ACTIONS = {name.removeprefix("DOCUMENT_ACTION_").lower(): value for name, value in memory_pb2.DocumentAction.items()}


class _Stamped(Protocol):
    @property
    def save(self) -> common_pb2.SaveState: ...


R = TypeVar("R", bound=_Stamped)


class DocumentService:
    """Reads that are cached are answered at once; everything else waits its turn for the actor, in a thread."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        toolbox: Toolbox,
        files: ActorFiles,
        saves: SaveStates,
        workers: Workers,
        limits: MemorySettings,
        paging: Paging,
    ) -> None:
        self._store = store
        self._toolbox = toolbox
        self._files = files
        self._saves = saves
        self._workers = workers
        self._limits = limits
        self._paging = paging

    async def GetDocument(self, request: memory_pb2.GetDocumentRequest, context: Any) -> memory_pb2.GetDocumentResponse:
        who = actor_from(request.actor)
        document = await self._read(who)
        shown = document.version_numbered(request.version) if request.HasField("version") else None
        text = shown.content if shown else document.text
        response = memory_pb2.GetDocumentResponse(
            save=state_to(self._saves.state(who.save)),
            text=text,
            version=shown.number if shown else document.version,
            length=len(text),
            status=_status(document),
            versions_kept=len(document.versions),
        )
        newest = shown or (document.versions[-1] if document.versions else None)
        if newest:
            response.updated.CopyFrom(time_to(newest.saved_at))
        return response

    async def EditDocument(
        self, request: memory_pb2.EditDocumentRequest, context: Any
    ) -> memory_pb2.EditDocumentResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)
        edits = _edits_from(request.edits, self._limits.max_edits)
        expected = request.expected_version if request.HasField("expected_version") else None

        def edit() -> memory_pb2.EditDocumentResponse:
            try:
                outcome = self._store.edit(who, edits, expected_version=expected, idempotency_key=key)
            except EditFailed as failed:
                raise _told(failed, self._store.read(who), request.edits[failed.index]) from failed
            return memory_pb2.EditDocumentResponse(
                version=outcome.version,
                length=outcome.length,
                changed=outcome.changed,
                outcomes=[memory_pb2.EditOutcome(changed=one.changed, message=one.words) for one in outcome.done],
            )

        return await self._answer(who, edit)

    async def ListDocumentVersions(
        self, request: memory_pb2.ListDocumentVersionsRequest, context: Any
    ) -> memory_pb2.ListDocumentVersionsResponse:
        who = actor_from(request.actor)
        document = await self._read(who)
        chosen = page(
            document.versions,
            key=lambda version: f"{version.number:010}",
            size=request.page_size,
            token=request.page_token,
            paging=self._paging,
            weight=lambda version: 4 * len(version.content) if request.include_content else 0,
        )
        return memory_pb2.ListDocumentVersionsResponse(
            save=state_to(self._saves.state(who.save)),
            versions=[_version_to(version, content=request.include_content) for version in chosen.items],
            next_page_token=chosen.next_token,
        )

    async def RevertDocument(
        self, request: memory_pb2.RevertDocumentRequest, context: Any
    ) -> memory_pb2.RevertDocumentResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)
        expected = request.expected_version if request.HasField("expected_version") else None

        def revert() -> memory_pb2.RevertDocumentResponse:
            outcome = self._store.revert(who, request.version, expected_version=expected, idempotency_key=key)
            return memory_pb2.RevertDocumentResponse(
                version=outcome.version, length=outcome.length, changed=outcome.changed
            )

        return await self._answer(who, revert)

    async def ResetDocument(
        self, request: memory_pb2.ResetDocumentRequest, context: Any
    ) -> memory_pb2.ResetDocumentResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)
        expected = request.expected_version if request.HasField("expected_version") else None

        def reset() -> memory_pb2.ResetDocumentResponse:
            existed = self._store.reset(who, expected_version=expected, idempotency_key=key)
            return memory_pb2.ResetDocumentResponse(existed=existed)

        return await self._answer(who, reset)

    async def ListTools(self, request: memory_pb2.ListToolsRequest, context: Any) -> memory_pb2.ListToolsResponse:
        who = actor_from(request.actor)
        return memory_pb2.ListToolsResponse(
            save=state_to(self._saves.state(who.save)),
            tools=list(map(tool_to, self._toolbox.offered(who))),
            text_contract=self._toolbox.text_contract(who),
        )

    async def CallTool(self, request: memory_pb2.CallToolRequest, context: Any) -> memory_pb2.CallToolResponse:
        who = actor_from(request.actor)
        most = Bound("memory.max_arguments_chars", self._limits.max_arguments_chars)
        require_length(request.arguments_json, "arguments_json", most)
        require_not_below_zero(request.turn, "turn")
        require_not_below_zero(request.call_index, "call_index")
        call = ToolCall(
            name=request.name,
            arguments_json=request.arguments_json,
            turn=request.turn or 1,
            call_index=request.call_index,
            input_id=checked_id(request.input_id, "input_id"),
            expected_version=request.expected_version if request.HasField("expected_version") else None,
            idempotency_key=key_from(request.idempotency_key),
            moment=checked_moment(moment_from(request.moment), "moment") if request.HasField("moment") else None,
            sources=patterns_in(request.sources, who.save, "sources", _MAX_SOURCES),
        )

        def run() -> memory_pb2.CallToolResponse:
            answer = self._toolbox.call(who, call)
            response = memory_pb2.CallToolResponse(result_json=answer.json(), succeeded=answer.succeeded)
            response.reason = str(answer.payload.get("Reason", ""))
            response.record_id = answer.record_id
            response.degraded_reason = common_pb2.DegradedReason.ValueType(answer.degraded)
            if answer.records_left_out:
                kept, dropped = len(answer.payload["memories"]), answer.records_left_out
                response.cuts.add(what="result", unit="records", kept=kept, dropped=dropped, detail=_RESULT_CUT)
            if "Version" in answer.payload:
                response.document_version = answer.payload["Version"]
            return response

        return await self._answer(who, run)

    async def ListActors(self, request: memory_pb2.ListActorsRequest, context: Any) -> memory_pb2.ListActorsResponse:
        save = checked_id(request.save_id, "save_id") or DEFAULT_SAVE
        role, player = trimmed_id(request.role_id, "role_id"), checked_id(request.player_id, "player_id")

        def list_actors() -> memory_pb2.ListActorsResponse:
            chosen = page(
                self._files.actors(save, role=role, player=player, after=token_key(request.page_token)),
                key=self._files.key,
                size=request.page_size,
                token=request.page_token,
                paging=self._paging,
                weight=lambda _: 4_000,
            )
            actors = [self._described(who) for who in chosen.items]
            return memory_pb2.ListActorsResponse(actors=actors, next_page_token=chosen.next_token)

        response = await self._workers.run(SaveKey("actors", save), list_actors)
        response.save.CopyFrom(state_to(self._saves.state(save)))
        return response

    async def _read(self, who: ActorId) -> Document:
        cached = self._store.cached(who)
        return cached if cached is not None else await self._workers.run(who, lambda: self._store.read(who))

    async def _answer(self, who: ActorId, work: Callable[[], R]) -> R:
        response = await self._workers.run(who, work)
        response.save.CopyFrom(state_to(self._saves.state(who.save)))
        return response

    def _described(self, who: ActorId) -> memory_pb2.ActorInfo:
        counts: dict[str, Any] = dict(self._files.counts(who))
        info = memory_pb2.ActorInfo(actor=actor_to(who), **counts)
        try:
            document = self._store.look(who)
        except Corrupt:
            info.document_status = common_pb2.LOAD_STATUS_FAILED
            return info
        info.document_status = _status(document)
        info.document_version, info.document_length = document.version, len(document.text)
        if document.versions:
            info.updated.CopyFrom(time_to(document.versions[-1].saved_at))
        return info


def _status(document: Document) -> common_pb2.LoadStatus.ValueType:
    return common_pb2.LOAD_STATUS_LOADED if document.exists else common_pb2.LOAD_STATUS_NOT_FOUND


def _version_to(version: Version, *, content: bool) -> memory_pb2.DocumentVersion:
    message = memory_pb2.DocumentVersion(
        version=version.number,
        time=time_to(version.saved_at),
        action=_ACTIONS.get(version.action, memory_pb2.DOCUMENT_ACTION_UNSPECIFIED),
        note=version.note,
        length=len(version.content),
    )
    if content:
        message.content = version.content
    return message


def _edits_from(messages: Sequence[memory_pb2.Edit], most: int) -> list[Edit]:
    require_some(len(messages), "edits")
    require_count(len(messages), "edits", Bound("memory.max_edits", most))
    return [_edit_from(message, index) for index, message in enumerate(messages)]


def _edit_from(message: memory_pb2.Edit, index: int) -> Edit:
    kind = message.WhichOneof("edit")
    if kind is None:
        raise InvalidInput(
            f"edits[{index}] names no edit; set one of {', '.join(Action)}",
            reason=Reason.ACTION_REQUIRED,
            field=f"edits[{index}]",
        )
    edit, action = getattr(message, kind), Action(kind)
    if action in (Action.WRITE, Action.APPEND):
        return Edit(action, content=edit.content)
    if action is Action.INSERT:
        position = edit.WhichOneof("position")
        return Edit(
            action,
            content=edit.content,
            line=edit.line if position == "line" else None,
            anchor=edit.anchor if position == "anchor" else None,
        )
    if action is Action.RENAME:
        return Edit(action, old_text=edit.old_label, new_text=edit.new_label)
    if action is Action.CLEAR:
        return Edit(action)
    new_text = edit.new_text if action is Action.STR_REPLACE else None
    return Edit(action, old_text=edit.old_text, new_text=new_text, replace_all=edit.replace_all)


def _told(failed: EditFailed, document: Document, message: memory_pb2.Edit) -> Exception:
    """The edit's error, with the path of the field in the request and an EditFailure as detail."""
    error = failed.error
    kind = message.WhichOneof("edit")
    field = {"old_text": "old_label", "new_text": "new_label"}.get(error.field, error.field)
    own = field if kind == "rename" else error.field
    error.field = ".".join(part for part in (f"edits[{failed.index}]", kind, own) if part)
    nearest = error.nearest if isinstance(error, TextNotFound) else ()
    error.detail = memory_pb2.EditFailure(
        edit_index=failed.index,
        reason=str(error.reason),
        current_version=document.version,
        length=len(document.text),
        nearest_lines=[line.text for line in nearest],
        nearest_line_numbers=[line.number for line in nearest],
    )
    error.metadata |= {"edit_index": str(failed.index), "current_version": str(document.version)}
    return error
