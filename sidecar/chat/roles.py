"""Roles: how an actor behaves, as data, and the rule by which an id becomes a role.

It never reads or writes anything; ``chat/role_store.py`` keeps the roles that a game defines.

    id of a call ──trim──> blank? Creator ──> put by a call ──> from the game's file ──> built in ──> the defaults
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from sidecar.chat.role_prompts import BUILT_IN_PROMPTS
from sidecar.compaction.summariser import INSTRUCTIONS
from sidecar.settings import limit as bounded
from sidecar.settings import option

DEFAULT_ROLE_ID = "Creator"
CHAT_SOURCE = "chat"
MAX_PROMPT_CHARS = 200_000
_MANY = 2_147_483_647
# By whether a role keeps an archive, and a summary.
_LEFT_FOR = {
    (True, True): "held by the rolling summary and, where they may be stored, by the archive",
    (True, False): "held by the archive where they may be stored: this role keeps no summary",
    (False, True): "held by the rolling summary: this role keeps no archive",
    (False, False): "gone: this role keeps no summary and no archive",
}


class ToolResults(StrEnum):
    """How much of a turn's tool results is kept in the history."""

    NONE = "none"
    ERRORS_ONLY = "errors_only"
    COMPACT = "compact"
    FULL = "full"


class MemoryAction(StrEnum):
    """What a bare memory directive in a model's text does."""

    APPEND = "append"
    WRITE = "write"


@dataclass(frozen=True)
class SummaryOptions:
    """How history is pruned and summarised."""

    enabled: bool = option(True, "whether folded messages live on in a rolling summary")
    use_model: bool = option(True, "whether a model writes the summary, where a backend can")
    trigger_ratio: float = bounded(
        0.8, 1e-6, 1, "of the budget", "how full the history is before folding is considered"
    )
    recent_token_budget: int = bounded(0, 0, _MANY, "tokens", "the most for messages sent verbatim; 0: what fits")
    max_summary_tokens: int = bounded(2_048, 0, _MANY, "tokens", "the longest stored summary; 0: no bound of its own")
    prune: bool = option(True, "whether repeats and old tool results are left out of the prompt")
    max_tool_messages: int = bounded(3, 0, _MANY, "messages", "tool messages that pruning keeps")
    backend_id: str = option("", "the backend that writes summaries; empty: the one that the routes name")
    system_prompt: str = option(INSTRUCTIONS, "the instructions of the summariser")
    max_output_tokens: int = bounded(512, 32, 8_192, "tokens", "the longest answer of the summariser")
    temperature: float = bounded(0.15, 0, 2, "", "the temperature of the summariser")
    max_payload_chars: int = bounded(12_000, 1_000, 1_000_000, "code points", "what one call of the summariser carries")
    max_message_chars: int = bounded(800, 0, 1_000_000, "code points", "of one message in it")
    max_summary_chars: int = bounded(4_000, 200, 1_000_000, "code points", "the longest summary that is taken")
    background: bool = option(True, "whether folding runs after a turn where the prompt fits as it is")


@dataclass(frozen=True)
class RecallOptions:
    """What a search brings into each prompt. ``owners`` and ``filter`` are in the contract's JSON form."""

    enabled: bool = option(True, "whether to recall")
    text: str = option("", "what to look for; empty: the player's line")
    limit: int = bounded(8, 1, 64, "hits", "how many")
    max_tokens: int = bounded(512, 0, _MANY, "tokens", "the most for all hits")
    mode: str = option("", "how to search; empty: the best way there is")
    owners: tuple[Mapping[str, Any], ...] = ()
    filter: Mapping[str, Any] | None = None
    similarity_floor: float | None = None
    include_archive: bool | None = None


@dataclass(frozen=True)
class Role:
    """A behaviour profile with every value filled in."""

    role_id: str
    display_name: str = option("", "a name for people")

    system_prompt: str = option("", 'the base of the prefix; empty: You are agent "<id>".')
    additional_prompt: str = option("", "added to the base")
    use_universal_prefix: bool = option(True, "whether the rules that all roles share come first")
    payload_template: str = option("", "how the player's line is put; empty: as it is")

    memory_tool: bool = option(True, "whether the memory tool is offered and the document shown")
    memory_default_action: MemoryAction = MemoryAction.APPEND
    remember_tool: bool | None = None
    search_tool: bool | None = None
    text_directives: bool = option(False, "whether memory directives in a model's text are obeyed")
    sources: tuple[Mapping[str, Any], ...] = ()
    recall: RecallOptions | None = None

    history: bool = option(True, "whether the prompt holds history")
    persist_history: bool = option(False, "whether history survives the daemon")
    archive: bool = option(True, "whether turns that leave the history can be searched")
    max_history_messages: int = bounded(30, 1, _MANY, "messages", "the most that are sent verbatim")
    tool_results: ToolResults = ToolResults.COMPACT

    context_tokens: int = bounded(0, 0, _MANY, "tokens", "the model's window; 0: the backend's")
    max_output_tokens: int = bounded(0, 0, _MANY, "tokens", "the longest answer; 0: the backend's")
    temperature: float | None = None
    max_response_chars: int = bounded(0, 0, _MANY, "code points", "the longest answer; 0: no bound")

    summary: SummaryOptions = field(default_factory=SummaryOptions)

    max_roundtrips: int = bounded(20, 0, _MANY, "rounds", "tool rounds in one turn; 0: no bound")
    max_failed_rounds: int = bounded(3, 1, _MANY, "rounds", "rounds in a row that may fail in every call")
    max_parallel_calls: int = bounded(4, 1, 64, "calls", "calls of one answer side by side")
    tool_timeout_ms: int = bounded(30_000, 0, _MANY, "ms", "how long one tool may take; 0: no bound")
    max_tool_result_chars: int = bounded(8_000, 0, _MANY, "code points", "of a tool's result that the model sees")
    max_tool_messages: int = bounded(20, 0, _MANY, "messages", "tool messages that a turn keeps; 0: all")
    suppress_duplicate_calls: bool = option(True, "whether a call that succeeded is not run again in its turn")
    allowed_tools: tuple[str, ...] | None = None
    max_overflow_retries: int = bounded(3, 0, 10, "retries", "how often a prompt that was too long is built again")

    backend_id: str = option("", "the backend; empty: the one that the routes name")
    offline_lines: tuple[str, ...] = ()
    max_document_versions: int = bounded(0, 0, 1_000, "versions", "kept of the document; 0: the daemon's setting")

    @property
    def offers_memory(self) -> bool:
        """Whether a model may call the memory tool."""
        return self.memory_tool and (self.allowed_tools is None or "memory" in self.allowed_tools)

    @property
    def left_for(self) -> str:
        """Where messages are that left the history because it is full, in words."""
        return _LEFT_FOR[self.archive, self.summary.enabled]

    def base_prompt(self) -> str:
        """The role's own prompt, or the sentence that stands in for it."""
        return self.system_prompt or f'You are agent "{self.role_id}".'


def _built_in(role_id: str, **values: Any) -> Role:
    return replace(Role(role_id=role_id, system_prompt=BUILT_IN_PROMPTS[role_id]), **values)


_BUILT_IN = (
    _built_in("Creator", max_roundtrips=0),
    _built_in("Builder", max_roundtrips=0),
    _built_in("Analyzer"),
    _built_in(
        "Programmer",
        history=False,
        summary=SummaryOptions(use_model=False),
        tool_results=ToolResults.FULL,
        max_roundtrips=0,
    ),
    _built_in("CoreMechanicAI", tool_results=ToolResults.FULL),
    _built_in("AINpc"),
    _built_in("Merchant"),
    _built_in("PlainChat", memory_tool=False, persist_history=True),
    _built_in("SmartChat", persist_history=True),
)

BUILT_IN_ROLES: Mapping[str, Role] = MappingProxyType({role.role_id: role for role in _BUILT_IN})


def normal_role_id(role_id: str) -> str:
    """The id that is looked up: trimmed, and ``Creator`` when nothing is left."""
    return role_id.strip() or DEFAULT_ROLE_ID


def role_policy(role_id: str) -> Role:
    """What an id means when no game says otherwise: the built-in role, or the defaults under that id."""
    wanted = normal_role_id(role_id)
    return BUILT_IN_ROLES.get(wanted) or Role(role_id=wanted)


def borrows_history(role: Role, source: str) -> bool:
    """Whether a call from ``source`` is lent the history that its role does not have: a chat window is."""
    return not role.history and source.strip().casefold() == CHAT_SOURCE


def for_source(role: Role, source: str) -> Role:
    """The role as a call from ``source`` sees it. What is lent to it lasts as long as this process."""
    return replace(role, history=True, persist_history=False) if borrows_history(role, source) else role
