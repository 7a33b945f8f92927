"""The rooms of turns and backends, built when they are first needed. No connection is opened before the first turn."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.chat.aim import Routed
    from sidecar.chat.backends.client import BackendClient
    from sidecar.chat.backends.counting import BackendCounting
    from sidecar.chat.backends.known import KnownBackends
    from sidecar.chat.backends.looking import Looking
    from sidecar.chat.backends.service import BackendService
    from sidecar.chat.backends.store import BackendStore
    from sidecar.chat.backends.summaries import SummaryModels
    from sidecar.chat.recall import Recall
    from sidecar.chat.role_store import RoleStore
    from sidecar.chat.roles import Role
    from sidecar.chat.turns.room import TurnRoom
    from sidecar.chat.turns.service import TurnService
    from sidecar.compaction.counters import Counters
    from sidecar.daemon.chat_rooms import ChatRooms
    from sidecar.daemon.ground import Ground
    from sidecar.memory.document_store import DocumentStore
    from sidecar.memory.toolbox import Toolbox


class BackendRooms:
    """What talks to language models, each built once."""

    def __init__(
        self,
        ground: Ground,
        *,
        counters: Counters,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        """``counters`` count where a backend has no tokenizer of its own; ``loop`` is the one that the daemon serves
        on."""
        self._ground = ground
        self._counters = counters
        self._settings = ground.config.backends
        self._loop = loop

    def hang_up(self) -> None:
        """No summary is waited for any more; what it was to hold stays in its history."""
        if "summary_models" in self.__dict__:
            self.summary_models.hang_up()

    @cached_property
    def store(self) -> BackendStore:
        from sidecar.chat.backends.store import BackendStore

        return BackendStore(self._ground.disk, max_backends=self._settings.max_backends)

    @cached_property
    def client(self) -> BackendClient:
        from sidecar.chat.backends.client import BackendClient

        return BackendClient(self._settings)

    @cached_property
    def known(self) -> KnownBackends:
        from sidecar.chat.backends.known import KnownBackends

        return KnownBackends(self.client, probe_timeout_ms=self._settings.probe_timeout_ms)

    @cached_property
    def summary_models(self) -> SummaryModels:
        from sidecar.chat.backends.summaries import SummaryModels

        return SummaryModels(self.store, self.client, self.known, self._loop)

    @cached_property
    def looking(self) -> Looking:
        from sidecar.chat.backends.looking import Looking

        return Looking(self.store, self.known, self.summary_models)

    @cached_property
    def counting(self) -> BackendCounting:
        from sidecar.chat.backends.counting import BackendCounting

        return BackendCounting(self._counters)

    def route(self, role: Role, backend_id: str) -> Routed:
        """Where a turn of the role would go, as far as it is known without asking. Raises NotFound."""
        from sidecar.chat.aim import Routed
        from sidecar.chat.backends.profile import ToolChannel
        from sidecar.chat.turns.choice import chosen_backend

        chosen = chosen_backend(self.store, role, backend_id=backend_id)
        backend = chosen.backend
        window = backend.context_tokens if chosen.offline else self.known.told_window(backend)
        text_tools = self.known.channel(backend, chosen.model) is ToolChannel.TEXT
        return Routed(
            self.counting.of(backend), chosen.model, window, backend.max_output_tokens or 0, text_tools=text_tools
        )

    @cached_property
    def service(self) -> BackendService:
        from sidecar.chat.backends.service import BackendService

        return BackendService(
            store=self.store,
            client=self.client,
            known=self.known,
            workers=self._ground.workers,
            paging=self._ground.paging,
        )


class TurnRooms:
    """Turns, on the rooms that they are handed."""

    def __init__(
        self,
        ground: Ground,
        *,
        chat: ChatRooms,
        backends: BackendRooms,
        roles: RoleStore,
        documents: DocumentStore,
        toolbox: Toolbox,
        recall: Recall,
    ) -> None:
        self._ground = ground
        self._chat = chat
        self._backends = backends
        self._roles = roles
        self._documents = documents
        self._toolbox = toolbox
        self._recall = recall

    async def close(self) -> None:
        """Wait for what turns have still to store."""
        if "room" in self.__dict__:
            await self.room.close()

    @cached_property
    def room(self) -> TurnRoom:
        from sidecar.chat.backends.retries import Waits
        from sidecar.chat.turns.background import Background
        from sidecar.chat.turns.parts import TurnParts
        from sidecar.chat.turns.room import TurnRoom

        settings = self._ground.config.backends
        return TurnRoom(
            TurnParts(
                roles=self._roles,
                prompts=self._chat.prompts,
                conversations=self._chat.conversations,
                histories=self._chat.histories,
                documents=self._documents,
                snapshots=self._chat.memory_snapshots,
                claims=self._chat.claims,
                toolbox=self._toolbox,
                counting=self._backends.counting,
                compactions=self._chat.compactions,
                saves=self._ground.saves,
                workers=self._ground.workers,
                models=self._chat.models,
                backends=self._backends.store,
                client=self._backends.client,
                known=self._backends.known,
                waits=Waits(settings.retry_wait_ms, settings.max_retry_wait_ms),
                limits=self._ground.config.turns,
                background=Background(),
                report=self._ground.report,
                recall=self._recall,
            )
        )

    @cached_property
    def service(self) -> TurnService:
        from sidecar.chat.turns.service import TurnService

        return TurnService(self.room, self._ground.config.chat)
