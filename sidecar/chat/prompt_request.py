"""One turn, as far as its prompt is concerned. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field

from sidecar.chat.memory_view import MemorySnapshot
from sidecar.chat.prompt import Declaration, Line
from sidecar.compaction.marker import StoredSummary


@dataclass(frozen=True)
class PromptRequest:
    """``None``: what the role says."""

    line: Line = field(default_factory=Line)
    system_prompt: str | None = None
    instructions: str = ""
    world_state: str = ""
    recalled: tuple[str, ...] = ()
    recall_tokens: int = 0
    game_tools: tuple[Declaration, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    must_call: str | None = None
    """The tool that the first answer must call; empty: any of them; None: it need not call one."""
    text_tools: bool = False
    """Whether the model is told of its tools in the prefix, and of none on the wire."""
    knows_moment: bool = False
    """Whether the turn says when it is; without that the tools for records are not offered."""
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    tail_as_system: bool = False
    memory_snapshot: MemorySnapshot | None = None
    summary: StoredSummary | None = None
    """What stands for the stored summary; None: that itself."""
    line_kept: bool = False
    """Whether the line is stored already, so that the history's copy is not sent beside it."""
