"""Compactions of stored conversations: under which limits, by which model, and told to whom.

It is what ``compaction/service.py`` asks for; that room knows nothing of histories and roles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sidecar.chat.aim import Look, Route, Routed
from sidecar.chat.conversations import Conversations
from sidecar.chat.memory_snapshots import MemorySnapshots
from sidecar.chat.prompt_request import PromptRequest
from sidecar.chat.prompts import Prompts
from sidecar.chat.role_store import RoleStore
from sidecar.chat.roles import Role
from sidecar.chat.wire import add_messages
from sidecar.compaction.counters import Counters
from sidecar.compaction.cuts import cut_told
from sidecar.compaction.messages import Message
from sidecar.compaction.pending import Pending
from sidecar.compaction.rollup import Snapshot
from sidecar.compaction.summaries import Summary
from sidecar.compaction.summariser import Summariser, SummariserOptions, Writer
from sidecar.compaction.tokens import TokenCounter
from sidecar.compaction.windows import Asked
from sidecar.diagnostics import Report
from sidecar.errors import NotFound
from sidecar.gen.lorekeeper.v1 import chat_pb2
from sidecar.settings import CompactionSettings
from sidecar.storage.keys import ActorId

# Finds the model that writes the summaries of a role: the role, a backend id or "" for what the role says, a key or "".
FindWriter = Callable[[Role, str, str], Writer | None]


class Compactions:
    """Begins and ends compactions. Calls for one actor are made one at a time; ``Pending.run`` may run between them."""

    def __init__(
        self,
        *,
        conversations: Conversations,
        prompts: Prompts,
        roles: RoleStore,
        snapshots: MemorySnapshots,
        counters: Counters,
        settings: CompactionSettings,
        report: Report,
        find_writer: FindWriter,
        route: Route,
        look: Callable[[], Look | None] = lambda: None,
    ) -> None:
        """``look`` gives what asks servers for their windows, where there are any to ask."""
        self._conversations = conversations
        self._prompts = prompts
        self._roles = roles
        self._snapshots = snapshots
        self._counters = counters
        self._settings = settings
        self._report = report
        self._find_writer = find_writer
        self._route = route
        self._look = look

    async def look(self, who: ActorId, asked: Asked, *, backend_id: str = "", api_key: str = "") -> None:
        """Has the windows known that a compaction keeps to; to be awaited before :meth:`begin`."""
        role, look = self._roles.get(who.role), self._look()
        if look is None:
            return
        await look.at_speaker(role)
        if role.summary.use_model if asked.use_model is None else asked.use_model:
            await look.at_writer(role, backend_id or role.summary.backend_id, api_key)

    def begin(
        self, who: ActorId, asked: Asked, *, backend_id: str = "", api_key: str = "", trace_id: str = ""
    ) -> Pending:
        """A compaction of the conversation as it is now. Raises Corrupt, NotFound for a backend that is not known."""
        role = self._roles.get(who.role)
        routed = self._routed(role)
        counter = routed.counters.best(routed.model)
        window = self._prompts.window(who, role, _request(role, routed), counter, asked)
        summariser = self._writer(role, backend_id, api_key, wanted=window.policy.wants_model)
        pending = self._conversations.begin(
            who, window.policy, counter, summariser=summariser, trace_id=trace_id, through=asked.through
        )
        return pending.within(window.budget)

    def commit(self, pending: Pending, snapshot: Snapshot) -> Summary | None:
        """Stores what a compaction made; ``None`` where the conversation or its save has moved on meanwhile."""
        role = self._roles.get(pending.who.role)
        saved = self._conversations.commit(pending, snapshot, archive=role.archive)
        if saved is not None and snapshot.folded:
            if role.memory_tool:
                self._snapshots.take(pending.who)
            for cut in snapshot.cuts:
                self._report(cut_told(cut))
        return saved

    def summariser(self, role: Role, backend_id: str, api_key: str = "") -> Summariser | None:
        """The model that writes the role's summaries; ``None`` where no backend can."""
        writer = self._find_writer(role, backend_id or role.summary.backend_id, api_key)
        if writer is None:
            return None
        options = role.summary
        return Summariser(
            writer.complete,
            SummariserOptions(
                window=writer.window,
                max_output=options.max_output_tokens,
                temperature=options.temperature,
                max_payload_chars=options.max_payload_chars,
                max_line_chars=options.max_message_chars,
                max_summary_chars=options.max_summary_chars,
                max_calls=self._settings.max_calls,
                instructions=options.system_prompt,
            ),
            writer.hang_up,
        )

    def summariser_for(
        self, role_id: str, use_model: bool | None, backend_id: str, api_key: str = ""
    ) -> Summariser | None:
        """The model for a conversation that the game holds; ``use_model`` ``None``: what the role says."""
        role = self._roles.get(role_id)
        wanted = role.summary.use_model if use_model is None else use_model
        return self._writer(role, backend_id, api_key, wanted=wanted)

    def _writer(self, role: Role, backend_id: str, api_key: str, *, wanted: bool) -> Summariser | None:
        """The model that writes a summary where one is ``wanted``. A backend that is named must be known even so."""
        writer = self.summariser(role, backend_id, api_key) if wanted or backend_id else None
        return writer if wanted else None

    def counter(self, role_id: str) -> TokenCounter:
        """Who counts what a role's turns send, as :meth:`begin` counts."""
        routed = self._routed(self._roles.get(role_id))
        return routed.counters.best(routed.model)

    def counting(self, role_id: str, backend_id: str) -> tuple[Counters, str]:
        """Who counts for a backend, or for that of a role, and for which model. Raises NotFound."""
        routed = self._route(self._roles.get(role_id), backend_id)
        return routed.counters, routed.model

    def summary_cap(self, role_id: str) -> int:
        """The longest stored summary of a role in tokens; 0: no cap."""
        return self._roles.get(role_id).summary.max_summary_tokens

    def shown(self, who: ActorId, messages: Sequence[Message]) -> list[chat_pb2.ChatMessage]:
        """The messages as the contract shows them, as far as they are still there."""
        numbers = {message.number for message in messages}
        page = chat_pb2.ListMessagesResponse()
        add_messages(page.messages, (row for row in self._conversations.rows(who) if row.number in numbers))
        return list(page.messages)

    def _routed(self, role: Role) -> Routed:
        """The role's backend; one that is not there any more is no reason to keep what should be folded."""
        try:
            return self._route(role, "")
        except NotFound:
            return Routed(self._counters)


def _request(role: Role, routed: Routed) -> PromptRequest:
    """A turn without words, in the window that a turn would have."""
    windows = [tokens for tokens in (role.context_tokens, routed.window) if tokens]
    return PromptRequest(
        context_tokens=min(windows, default=None),
        max_output_tokens=role.max_output_tokens or routed.longest or None,
        text_tools=routed.text_tools,
    )
