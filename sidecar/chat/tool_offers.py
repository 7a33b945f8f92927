"""Which tools a turn has: the daemon's own and the game's, as far as the role and the turn allow them. No I/O.

A turn and ``BuildPrompt`` ask here alone, so that neither takes what the other refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sidecar.chat.prompt import Declaration
from sidecar.chat.prompt_request import PromptRequest
from sidecar.chat.roles import Role
from sidecar.errors import InvalidInput, Reason
from sidecar.memory.text_contract import text_contract
from sidecar.memory.toolbox import Tool, Toolbox
from sidecar.storage.keys import ActorId

_DATED_TOOLS = frozenset({"remember_game_memory", "search_game_memory"})


@dataclass(frozen=True)
class Offer:
    """The tools by name: all that there are, those that may be called, and a word on them where these are fewer."""

    tools: tuple[Declaration, ...]
    allowed: tuple[Declaration, ...]
    note: str = ""

    def contract(self) -> str:
        """All tools as text: the same whatever one turn allows."""
        return text_contract((tool.name, tool.description, tool.parameters) for tool in self.tools)


class ToolOffers:
    """Makes the offer of a turn."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._declarations: dict[str, Declaration] = {}

    def of(self, who: ActorId, role: Role, request: PromptRequest) -> Offer:
        """The tools of this turn. Raises InvalidInput where one must be called that is not among them."""
        own = map(self._declared, self._toolbox.offered(who))
        tools = _allowed(sorted([*own, *request.game_tools], key=lambda tool: tool.name), role.allowed_tools)
        known = tuple(tool for tool in tools if request.knows_moment or tool.name not in _DATED_TOOLS)
        allowed = _allowed(known, request.allowed_tools)
        _require_offered(request.must_call, allowed)
        fewer = request.allowed_tools is not None or (request.text_tools and known != tools)
        return Offer(tools, allowed, _note(allowed) if fewer else "")

    def _declared(self, tool: Tool) -> Declaration:
        spec = tool.spec
        known = self._declarations.get(spec.name)
        if known is None:
            parameters = json.dumps(spec.parameters, ensure_ascii=False, sort_keys=True)
            known = self._declarations[spec.name] = Declaration(spec.name, spec.description, parameters, tool.mutating)
        return known


def _allowed(tools: Iterable[Declaration], names: tuple[str, ...] | None) -> tuple[Declaration, ...]:
    return tuple(tool for tool in tools if names is None or tool.name in names)


def _require_offered(name: str | None, allowed: Iterable[Declaration]) -> None:
    if name == "" and not tuple(allowed):
        raise InvalidInput(
            "input.tool_choice wants a tool call, and this turn may call no tool; offer and allow one, or let it be",
            reason=Reason.FIELD_INVALID,
            field="input.tool_choice",
        )
    if name and name not in [tool.name for tool in allowed]:
        raise InvalidInput(
            "input.tool_name is none of the tools that this turn may call; offer and allow it, or name another",
            reason=Reason.FIELD_INVALID,
            field="input.tool_name",
        )


def _note(allowed: Iterable[Declaration]) -> str:
    names = ", ".join(tool.name for tool in allowed)
    return f"You may call: {names}." if names else "No tool may be called in this turn."
