"""Roles: how an actor behaves, as data. The nine built-in roles and the rules by which an id becomes a role.

It never reads or writes anything; ``chat/role_store.py`` keeps the roles that a game defines.

    id of a call ──trim──> blank? Creator ──> the game's own role, else a built-in one, else the defaults
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

DEFAULT_ROLE_ID = "Creator"
CHAT_SOURCE = "chat"

UNIVERSAL_PROMPT = """\
Use a tool when the task needs it, and only the tools you are offered.
Do what was asked: no more, no less.
Keep answers as short as the task allows.
When a tool has succeeded, do not call it again for the same thing."""


class ToolResults(StrEnum):
    """How much of a turn's tool results is kept in the history."""

    NONE = "none"
    ERRORS_ONLY = "errors_only"
    COMPACT = "compact"
    FULL = "full"


class MemoryAction(StrEnum):
    """What a bare fenced memory block does, for models that cannot call tools."""

    APPEND = "append"
    WRITE = "write"


@dataclass(frozen=True)
class Role:
    """A behaviour profile. Where a number may be 0, 0 means "the daemon's setting decides"."""

    role_id: str
    prompt: str = ""
    """The base of the system prefix; empty: ``You are agent "<id>".``"""
    extra_prompt: str = ""
    """Further standing instructions, after the base prompt. Part of the cacheable prefix."""
    universal_prompt: bool = True
    """Whether the prefix begins with the rules that all roles share."""

    memory_tool: bool = True
    """Whether the model is offered the memory tool and shown its document."""
    memory_action: MemoryAction = MemoryAction.APPEND
    allowed_tools: tuple[str, ...] | None = None
    """Names of the tools the role may use; ``None``: all, empty: none."""
    max_roundtrips: int = 20
    """Tool rounds in one turn; 0: no limit."""
    tool_results: ToolResults = ToolResults.COMPACT

    history: bool = True
    """Whether earlier messages go into the prompt and new ones are kept."""
    persist: bool = False
    """Whether kept messages reach the disk; otherwise they live as long as the process."""
    max_history_messages: int = 0
    """The newest messages that may be sent verbatim."""
    recent_tokens: int = 0
    """Upper bound of the verbatim tail in tokens, at least 32; 0: what the window leaves."""

    summarize: bool = True
    """Whether folded messages live on in a rolling summary."""
    llm_compaction: bool = True
    """Whether a model may write the summary, where the daemon allows that at all."""
    trigger_ratio: float = 0.0
    """The share of the history budget at which folding starts; outside of (0, 1]: the daemon's setting."""
    summary_tokens: int = 0
    """The longest stored summary in tokens."""
    prune: bool = True
    """Whether repeated and old tool results are left out of the prompt copy."""
    kept_tool_results: int | None = None
    """Tool messages kept in the prompt copy; 0 keeps none, ``None``: the daemon's setting."""

    context_tokens: int = 0
    """The model's window in tokens."""
    max_output_tokens: int = 0
    """Tokens kept free for the answer."""
    temperature: float | None = None
    """Sent to the backend only when set."""
    backend_id: str = ""
    """The backend profile of turns; empty: the default one."""
    compaction_backend_id: str = ""
    """The backend profile that writes summaries, for example a small model; empty: the role's own."""

    recall_limit: int = 0
    """Records that a search brings into each prompt; 0: no search."""
    recall_tokens: int = 0
    """Upper bound of the recalled text in tokens."""

    def base_prompt(self) -> str:
        """The role's own prompt, or the sentence that stands in for it."""
        return self.prompt or f'You are agent "{self.role_id}".'


_PROMPTS = {
    "Creator": (
        "You shape the game world. Turn each request into concrete content: places, people, items, events. "
        "Stay consistent with what already exists, and name what you changed."
    ),
    "Builder": (
        "You assemble structures and scenes from the parts that the game offers. Plan briefly, build with "
        "the tools, check the result, and say what stands now."
    ),
    "Analyzer": (
        "You study what happens in the game and explain it. Tell facts apart from guesses, give numbers "
        "where there are any, and end with the one conclusion that matters most."
    ),
    "Programmer": (
        "You write and repair small scripts for the game. Return working code that uses only the interfaces "
        "you were shown, and mention every assumption."
    ),
    "CoreMechanicAI": (
        "You resolve the rules of the game. Decide outcomes from the rules and the current state alone, be "
        "fair to all sides, and answer in exactly the form that is asked for."
    ),
    "AINpc": (
        "You are a character who lives in the game world. Speak in the first person, know only what your "
        "character saw or was told, and never mention models, prompts or tools."
    ),
    "Merchant": (
        "You are a trader in the game world. Bargain in character, quote only the goods and prices you were "
        "given, keep your promises, and remember your customers."
    ),
    "PlainChat": "You are a friendly conversation partner inside a game. Answer in plain, natural language.",
    "SmartChat": (
        "You are a helpful companion inside a game. Answer in plain language, use tools when they help, and "
        "remember what the player tells you about themselves."
    ),
}


def _built_in(role_id: str) -> Role:
    return Role(role_id=role_id, prompt=_PROMPTS[role_id])


def _built_in_roles() -> Iterable[Role]:
    yield replace(_built_in("Creator"), max_roundtrips=0)
    yield replace(_built_in("Builder"), max_roundtrips=0)
    yield _built_in("Analyzer")
    yield replace(
        _built_in("Programmer"),
        history=False,
        llm_compaction=False,
        tool_results=ToolResults.FULL,
        max_roundtrips=0,
    )
    yield replace(_built_in("CoreMechanicAI"), tool_results=ToolResults.FULL)
    yield _built_in("AINpc")
    yield _built_in("Merchant")
    yield replace(_built_in("PlainChat"), memory_tool=False, persist=True)
    yield replace(_built_in("SmartChat"), persist=True)


BUILT_IN_ROLES: Mapping[str, Role] = MappingProxyType({role.role_id: role for role in _built_in_roles()})


def normal_role_id(role_id: str) -> str:
    """The id that is looked up: trimmed, and ``Creator`` when nothing is left."""
    return role_id.strip() or DEFAULT_ROLE_ID


def role_policy(role_id: str, own_roles: Mapping[str, Role] = MappingProxyType({})) -> Role:
    """The role of an id: the game's own, else a built-in one, else the defaults under that id."""
    wanted = normal_role_id(role_id)
    return own_roles.get(wanted) or BUILT_IN_ROLES.get(wanted) or Role(role_id=wanted)


def for_source(role: Role, source: str) -> Role:
    """The role as a call from ``source`` sees it.

    A chat window lends its history to a role that has none, for this process only.
    """
    if role.history or source.strip().casefold() != CHAT_SOURCE:
        return role
    return replace(role, history=True, persist=False)
