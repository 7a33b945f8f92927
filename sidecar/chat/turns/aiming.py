"""Tells ``BuildPrompt`` where a turn would go, by the same rules as the turn itself."""

from __future__ import annotations

from typing import Any

from sidecar.chat.aim import Aimed
from sidecar.chat.backends.known import KnownBackends
from sidecar.chat.backends.profile import TailRole
from sidecar.chat.backends.store import BackendStore
from sidecar.chat.backends.wire import Ask, WireMessage
from sidecar.chat.prompts import Prompt
from sidecar.chat.roles import Role
from sidecar.chat.turns.choice import Chosen, chosen_backend
from sidecar.gen.lorekeeper.v1 import chat_pb2


class Aiming:
    """An ``Aim`` on the backends of this daemon."""

    def __init__(self, backends: BackendStore, known: KnownBackends) -> None:
        self._backends = backends
        self._known = known

    async def __call__(self, role: Role, turn: chat_pb2.TurnInput) -> Aimed:
        chosen = chosen_backend(
            self._backends, role, backend_id=turn.backend_id, model=turn.model, api_key=turn.api_key
        )
        backend = chosen.backend
        window = await self._known.window(backend, chosen.model, chosen.key)
        own = turn.context_tokens or role.context_tokens
        longest = turn.max_output_tokens or role.max_output_tokens or backend.max_output_tokens or 0
        return Aimed(
            backend_id=backend.backend_id,
            model=chosen.model,
            window=min((each for each in (own, window) if each), default=0),
            longest=longest,
            tail_as_system=backend.tail_role is TailRole.SYSTEM,
            body=lambda prompt: _body(prompt, chosen, role, turn, longest),
        )


def _body(prompt: Prompt, chosen: Chosen, role: Role, turn: chat_pb2.TurnInput, longest: int) -> dict[str, Any]:
    temperature = turn.temperature if turn.HasField("temperature") else role.temperature
    ask = Ask(
        [WireMessage(message.role, message.content) for message in prompt.messages],
        tools=[tool.function() for tool in prompt.tools],
        model=chosen.model,
        temperature=temperature,
        max_output_tokens=longest or None,
    )
    return ask.body(chosen.backend)
