"""From a role and a window to the limits of one compaction. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.compaction.budget import HISTORY_FLOOR, Budget, trigger_ratio
from sidecar.compaction.partition import WindowLimits
from sidecar.compaction.rollup import Policy

FORCED_KEPT = 2
"""Messages that a forced compaction leaves when the call names no number: a line and its answer."""


@dataclass(frozen=True)
class CompactionRules:
    """What a role says of its compaction."""

    max_messages: int = 30
    ratio: float = 0.8
    summary_cap: int = 2_048
    kept_tool_results: int = 3
    prune: bool = True
    summarize: bool = True
    use_model: bool = True


@dataclass(frozen=True)
class Asked:
    """What one call asks for beside the role. ``None``: what the role and its window say."""

    history_tokens: int | None = None
    max_messages: int | None = None
    use_model: bool | None = None
    force: bool = False
    through: int | None = None
    """The number of the newest message that counts: what was said later is passed over."""


def policy_for(rules: CompactionRules, budget: Budget, asked: Asked) -> Policy:
    """The limits for one compaction."""
    tokens = budget.history if asked.history_tokens is None else max(HISTORY_FLOOR, asked.history_tokens)
    kept = min(rules.max_messages, FORCED_KEPT) if asked.force else rules.max_messages
    messages = kept if asked.max_messages is None else max(1, asked.max_messages)
    use_model = rules.use_model if asked.use_model is None else asked.use_model
    return Policy(
        limits=WindowLimits(tokens, messages, trigger_ratio(rules.ratio)),
        summary_cap=rules.summary_cap,
        summary_reserve=budget.summary,
        kept_tool_results=rules.kept_tool_results,
        prune=rules.prune,
        summarize=rules.summarize,
        wants_model=use_model,
    )
