"""ChatService: history, transcript and roles. Prompts, turns and backends are other servicers'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sidecar.chat.conversations import Conversations
from sidecar.chat.history import History
from sidecar.chat.history_store import HistoryStore
from sidecar.chat.role_messages import changes_from, info_to
from sidecar.chat.role_store import RoleStore
from sidecar.chat.rows import Row, row_to_json
from sidecar.chat.wire import (
    add_entries,
    add_messages,
    newest_page,
    rows_from_entries,
    rows_from_messages,
)
from sidecar.compaction.counters import Counters
from sidecar.compaction.wire import cuts_to
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import chat_pb2
from sidecar.settings import ChatSettings
from sidecar.storage.keys import ActorId, trimmed_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.workers import SaveKey, Workers
from sidecar.wire import Paging, actor_from, key_from, page, state_to

_ROLES_A_PAGE = 50
# The largest pages, also where less is kept.
_MOST_MESSAGES = 500
_MOST_ROWS = 2_000
R = TypeVar("R")


class ConversationService:
    """Thin: it translates, calls one thing, and translates back."""

    def __init__(
        self,
        *,
        conversations: Conversations,
        histories: HistoryStore,
        roles: RoleStore,
        counters: Counters,
        saves: SaveStates,
        workers: Workers,
        limits: ChatSettings,
        paging: Paging,
    ) -> None:
        self._conversations = conversations
        self._histories = histories
        self._roles = roles
        self._counters = counters
        self._saves = saves
        self._workers = workers
        self._limits = limits
        self._paging = paging

    async def AppendMessages(
        self, request: chat_pb2.AppendMessagesRequest, context: Any
    ) -> chat_pb2.AppendMessagesResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)
        role = self._roles.get(who.role)
        persist = request.persist if request.HasField("persist") else role.persist_history
        rows = rows_from_messages(request.messages, self._limits, persist=persist)
        asked = _asked("messages", rows, persist) if key else ()

        def append() -> chat_pb2.AppendMessagesResponse:
            counter = self._counters.best()
            added = self._conversations.append(who, rows, role=role, counter=counter, request=asked, key=key)
            return chat_pb2.AppendMessagesResponse(
                appended=added.appended,
                messages=added.messages,
                evicted=added.evicted,
                cuts=cuts_to(added.cuts(role.left_for)),
                last_order=added.last_order,
            )

        return await self._answer(who, append)

    async def ListMessages(self, request: chat_pb2.ListMessagesRequest, context: Any) -> chat_pb2.ListMessagesResponse:
        who = actor_from(request.actor)
        rows = list((await self._history(who)).chat)
        shown, token = newest_page(
            rows, size=request.page_size, token=request.page_token, most=max(_MOST_MESSAGES, self._limits.max_messages)
        )
        response = chat_pb2.ListMessagesResponse(
            save=state_to(self._saves.state(who.save)), next_page_token=token, total=len(rows)
        )
        add_messages(response.messages, shown)
        return response

    async def ListTranscript(
        self, request: chat_pb2.ListTranscriptRequest, context: Any
    ) -> chat_pb2.ListTranscriptResponse:
        who = actor_from(request.actor)
        rows = list((await self._history(who)).transcript)
        shown, token = newest_page(
            rows,
            size=request.page_size,
            token=request.page_token,
            most=max(_MOST_ROWS, self._limits.max_transcript_rows),
        )
        response = chat_pb2.ListTranscriptResponse(
            save=state_to(self._saves.state(who.save)), next_page_token=token, total=len(rows)
        )
        add_entries(response.entries, shown)
        return response

    async def AppendTranscript(
        self, request: chat_pb2.AppendTranscriptRequest, context: Any
    ) -> chat_pb2.AppendTranscriptResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)
        persist = request.persist if request.HasField("persist") else self._roles.get(who.role).persist_history
        rows = rows_from_entries(request.entries, self._limits, persist=persist)
        asked = _asked("transcript", rows, persist) if key else ()

        def append() -> chat_pb2.AppendTranscriptResponse:
            added = self._conversations.append_transcript(who, rows, request=asked, key=key)
            return chat_pb2.AppendTranscriptResponse(appended=added.appended, cuts=cuts_to(added.cuts()))

        return await self._answer(who, append)

    async def ClearHistory(self, request: chat_pb2.ClearHistoryRequest, context: Any) -> chat_pb2.ClearHistoryResponse:
        who, key = actor_from(request.actor), key_from(request.idempotency_key)

        def clear() -> chat_pb2.ClearHistoryResponse:
            wiped = self._conversations.clear(who, archive=request.clear_archive, key=key)
            return chat_pb2.ClearHistoryResponse(
                messages=wiped.messages, entries=wiped.rows, summary_cleared=wiped.summary, archived=wiped.archived
            )

        return await self._answer(who, clear)

    async def PutRole(self, request: chat_pb2.PutRoleRequest, context: Any) -> chat_pb2.PutRoleResponse:
        changes = changes_from(request.role)
        known = await self._workers.run(SaveKey("roles", ""), lambda: self._roles.put(changes))
        return chat_pb2.PutRoleResponse(role=info_to(known))

    async def GetRole(self, request: chat_pb2.GetRoleRequest, context: Any) -> chat_pb2.GetRoleResponse:
        return chat_pb2.GetRoleResponse(role=info_to(self._roles.find(trimmed_id(request.role_id, "role_id"))))

    async def ListRoles(self, request: chat_pb2.ListRolesRequest, context: Any) -> chat_pb2.ListRolesResponse:
        chosen = page(
            self._roles.all(),
            key=lambda known: known.role.role_id,
            size=request.page_size,
            token=request.page_token,
            paging=Paging(_ROLES_A_PAGE, self._paging.most),
            weight=lambda known: 8 * len(known.role.base_prompt() + known.role.additional_prompt) + 4_000,
        )
        return chat_pb2.ListRolesResponse(
            roles=[info_to(known) for known in chosen.items], next_page_token=chosen.next_token
        )

    async def DeleteRole(self, request: chat_pb2.DeleteRoleRequest, context: Any) -> chat_pb2.DeleteRoleResponse:
        role_id = trimmed_id(request.role_id, "role_id")
        if not role_id:
            raise InvalidInput("role_id is required", reason=Reason.FIELD_REQUIRED, field="role_id")
        existed = await self._workers.run(SaveKey("roles", ""), lambda: self._roles.delete(role_id))
        return chat_pb2.DeleteRoleResponse(existed=existed)

    async def _history(self, who: ActorId) -> History:
        """Without a thread where the history is in memory."""
        cached = self._histories.cached(who)
        return cached if cached is not None else await self._workers.run(who, lambda: self._histories.read(who))

    async def _answer(self, who: ActorId, work: Callable[[], R]) -> R:
        """What ``work`` answers in a thread while nobody else works on the actor, stamped with the save's state."""
        response: Any = await self._workers.run(who, work)
        response.save.CopyFrom(state_to(self._saves.state(who.save)))
        answered: R = response
        return answered


def _asked(what: str, rows: Sequence[Row], persist: bool) -> list[Any]:
    """A request as idempotency compares it."""
    return [what, persist, [row_to_json(row) for row in rows]]
