"""The tools of an actor: which ones its role offers to a model, and what happens when the model calls one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sidecar.errors import AlreadyExists, Corrupt, LorekeeperError, Reason, Stale
from sidecar.memory.document import Document, EditFailed
from sidecar.memory.document_store import DocumentStore
from sidecar.memory.moments import Moment
from sidecar.memory.text_contract import text_contract
from sidecar.memory.tool import MEMORY_TOOL, ToolAnswer, ToolSpec, edit_answer, failed_answer, parse_call, read_answer
from sidecar.storage.keys import ActorId


@dataclass(frozen=True)
class ToolCall:
    """One call of a model. ``turn`` counts from 1, ``call_index`` from 0 within the turn; ``moment`` is now, and
    ``sources`` are owners besides the actor that it may search."""

    name: str
    arguments_json: str
    turn: int = 1
    call_index: int = 0
    input_id: str = ""
    expected_version: int | None = None
    idempotency_key: str = ""
    moment: Moment | None = None
    sources: tuple[ActorId, ...] = ()


class Tool(Protocol):
    """A tool that the daemon runs itself."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def mutating(self) -> bool:
        """Whether calls may change anything, so that they must not run side by side."""
        ...

    def offered(self, who: ActorId) -> bool:
        """Whether the actor's role has this tool."""
        ...

    def call(self, who: ActorId, call: ToolCall) -> ToolAnswer:
        """Run it. A model's mistake is an answer with ``succeeded`` False; what the game must hear is raised."""
        ...


class MemoryTool:
    """The document, edited by a model."""

    spec = MEMORY_TOOL
    mutating = True

    def __init__(self, store: DocumentStore, remembers: Callable[[str], bool]) -> None:
        """``remembers`` tells whether a role id has the memory tool."""
        self._store = store
        self._remembers = remembers

    def offered(self, who: ActorId) -> bool:
        return self._remembers(who.role)

    def call(self, who: ActorId, call: ToolCall) -> ToolAnswer:
        try:
            edit = parse_call(call.arguments_json).edit
            if edit is None:
                return read_answer(self._store.read(who))
            outcome = self._store.edit(
                who, [edit], expected_version=call.expected_version, idempotency_key=call.idempotency_key
            )
        except (Stale, AlreadyExists):
            raise  # the game's version or key is at fault: the model could not mend it
        except (EditFailed, LorekeeperError) as error:
            return failed_answer(error, self._document(who))
        return edit_answer(outcome, who.role)

    def _document(self, who: ActorId) -> Document | None:
        try:
            return self._store.read(who)
        except Corrupt:
            return None


class Toolbox:
    """All tools, in a fixed order: the list that a model sees must not change from turn to turn."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = sorted(tools, key=lambda tool: tool.spec.name)

    def offered(self, who: ActorId) -> list[Tool]:
        """The tools that the actor's role has, by name."""
        return [tool for tool in self._tools if tool.offered(who)]

    def text_contract(self, who: ActorId) -> str:
        """How a model without native tool calls is told of the tools; empty where the role has none."""
        return text_contract((tool.spec.name, tool.spec.description, _schema(tool)) for tool in self.offered(who))

    def call(self, who: ActorId, call: ToolCall) -> ToolAnswer:
        """Run the tool that the model means: the exact name, else the one that differs in case alone."""
        offered = {tool.spec.name: tool for tool in self.offered(who)}
        alike = [name for name in offered if name.casefold() == call.name.strip().casefold()]
        name = call.name if call.name in offered else alike[0] if len(alike) == 1 else ""
        if not name:
            return _unknown(list(offered))
        return offered[name].call(who, call)


def _schema(tool: Tool) -> str:
    return json.dumps(tool.spec.parameters, ensure_ascii=False, sort_keys=True)


def _unknown(names: list[str]) -> ToolAnswer:
    known = ", ".join(names) or "none"
    error = f"there is no such tool here; your tools: {known}"
    return ToolAnswer({"Success": False, "Error": error, "Reason": str(Reason.TOOL_UNKNOWN)}, succeeded=False)
