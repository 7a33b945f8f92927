"""Putting a turn's prompt together from all that an actor has. It reads and never writes.

What a turn sends and what ``BuildPrompt`` shows come from here alone, so that they cannot differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sidecar.chat.history_store import HistoryStore
from sidecar.chat.memory_view import view_memory
from sidecar.chat.prompt import (
    Declaration,
    Frame,
    Line,
    PromptMessage,
    Section,
    assemble,
    conversation_messages,
    payload,
    prefix_text,
    recalled_text,
    summary_overhead,
    tail_messages,
    tool_tokens,
)
from sidecar.chat.prompt_request import PromptRequest
from sidecar.chat.roles import Role, for_source
from sidecar.chat.tool_offers import Offer, ToolOffers
from sidecar.compaction.budget import Budget, share_window
from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.compaction.fold_memo import FoldMemo
from sidecar.compaction.marker import StoredSummary
from sidecar.compaction.messages import USER, Message
from sidecar.compaction.rollup import Policy, Snapshot, roll_up
from sidecar.compaction.summaries import SummaryStore
from sidecar.compaction.tokens import TokenCounter
from sidecar.compaction.windows import Asked, CompactionRules, policy_for
from sidecar.memory.document_store import DocumentStore
from sidecar.memory.toolbox import Toolbox
from sidecar.settings import CompactionSettings
from sidecar.storage.keys import ActorId

_QUICK_CHARS = 262_144


@dataclass(frozen=True)
class SectionSize:
    """What one part of a prompt takes."""

    section: Section
    tokens: int
    code_points: int
    messages: int


@dataclass(frozen=True)
class Prompt:
    """Exactly what a turn sends, with what each part takes and everything that was cut."""

    messages: tuple[PromptMessage, ...]
    tools: tuple[Declaration, ...]
    """Those that go out as the wire has them."""
    must_call: str | None
    """As the request has it."""
    sections: tuple[SectionSize, ...]
    budget: Budget
    snapshot: Snapshot
    stored: int
    """Messages that the history held."""
    newest: int
    """The number of the newest of them that counted; 0: none did."""
    resend: bool
    """Whether the line repeats the last stored one, whose copy was left out."""
    recalled: int
    counter: TokenCounter
    cuts: tuple[Cut, ...]

    def after_fold(self, anew: Prompt, folded: Snapshot) -> Prompt:
        """The prompt ``anew`` in the place of this one, whose history was folded before it: with what that cut."""
        return replace(anew, resend=self.resend, cuts=(*folded.fold_cuts, *anew.cuts))

    @property
    def tokens(self) -> int:
        """All tokens of the prompt."""
        return sum(size.tokens for size in self.sections)


@dataclass(frozen=True)
class Window:
    """The limits under which a conversation is compacted, and what surrounds it."""

    frame: Frame
    budget: Budget
    policy: Policy
    recalled: int = 0
    cuts: tuple[Cut, ...] = ()


class Prompts:
    """Builds prompts and windows. Calls for one actor are made one at a time by the caller."""

    def __init__(
        self,
        *,
        histories: HistoryStore,
        summaries: SummaryStore,
        documents: DocumentStore,
        toolbox: Toolbox,
        settings: CompactionSettings,
        folds: FoldMemo,
    ) -> None:
        self._histories = histories
        self._summaries = summaries
        self._documents = documents
        self._offers = ToolOffers(toolbox)
        self._settings = settings
        self._folds = folds

    def build(self, who: ActorId, role: Role, request: PromptRequest, counter: TokenCounter) -> Prompt:
        """The prompt of a turn. Raises Corrupt where something that it needs cannot be read."""
        role = for_source(role, request.line.source)
        window = self.window(who, role, request, counter)
        messages = self._histories.read(who).messages() if role.history else ()
        resend = not request.line_kept and repeats_last(messages, request.line)
        copies = int(resend or (request.line_kept and _ends_with(messages, request.line)))
        summary = request.summary or self._summary(who, role)
        policy = replace(window.policy, wants_model=False)
        sent_before = messages[: len(messages) - copies]
        snapshot = roll_up(sent_before, summary, policy, counter, fold=self._folds.of(who))
        conversation = conversation_messages(snapshot.summary, snapshot.recent, as_system=request.tail_as_system)
        assembled = assemble(window.frame, conversation)
        sent = tuple(PromptMessage(m.role, m.content, m.section, counter.count(m.content), m.once) for m in assembled)
        sizes = _sizes(sent, window.frame.tools, counter)
        return Prompt(
            messages=sent,
            tools=window.frame.tools,
            must_call=request.must_call,
            sections=sizes,
            budget=window.budget,
            snapshot=snapshot,
            stored=len(messages),
            newest=sent_before[-1].number if sent_before else 0,
            resend=resend,
            recalled=window.recalled,
            counter=counter,
            cuts=(*window.cuts, *_overflow(window.budget, sizes), *snapshot.cuts),
        )

    def _summary(self, who: ActorId, role: Role) -> StoredSummary:
        """The stored summary, where the role shows one. Raises Corrupt."""
        return self._summaries.read(who).stored if role.history and role.summary.enabled else StoredSummary()

    def offer(self, who: ActorId, role: Role, request: PromptRequest) -> Offer:
        """The tools of a turn. Raises InvalidInput where one must be called that is not among them."""
        return self._offers.of(who, role, request)

    def in_memory(self, who: ActorId) -> bool:
        """Whether a prompt can be built without the disk and in little time."""
        history = self._histories.cached(who)
        if history is None or history.weight > _QUICK_CHARS:
            return False
        return self._summaries.cached(who) is not None and self._documents.cached(who) is not None

    def window(
        self, who: ActorId, role: Role, request: PromptRequest, counter: TokenCounter, asked: Asked | None = None
    ) -> Window:
        """What surrounds the conversation in a prompt, and what is left for it."""
        frame, recalled, cuts = self._frame(who, role, request, counter)
        options = role.summary
        budget = share_window(
            window=request.context_tokens or role.context_tokens or self._settings.window_tokens,
            fixed=frame.tokens(counter),
            max_output=request.max_output_tokens or role.max_output_tokens,
            summary_cap=options.max_summary_tokens,
            recent_cap=options.recent_token_budget,
            summarize=options.enabled,
            summary_overhead=summary_overhead(counter),
        )
        policy = policy_for(_rules(role), budget, asked or Asked())
        return Window(frame, budget, policy, recalled, cuts)

    def _frame(
        self, who: ActorId, role: Role, request: PromptRequest, counter: TokenCounter
    ) -> tuple[Frame, int, tuple[Cut, ...]]:
        recalled, count, cuts = recalled_text(request.recalled, max_tokens=request.recall_tokens, counter=counter)
        offer = self.offer(who, role, request)
        memory = view_memory(self._documents.read(who), request.memory_snapshot) if role.memory_tool else None
        tail = tail_messages(
            instructions=request.instructions,
            memory=memory,
            recalled=recalled,
            tools=offer.note,
            world_state=request.world_state,
            must_call=request.must_call if request.text_tools else None,
            as_system=request.tail_as_system,
        )
        contract = offer.contract() if request.text_tools else ""
        prefix = prefix_text(role, system_prompt=request.system_prompt, tool_contract=contract)
        declared = () if request.text_tools else offer.allowed
        return Frame(prefix, tail, payload(request.line, role.payload_template), declared), count, cuts


def repeats_last(messages: Sequence[Message], line: Line) -> bool:
    """Whether the line is the last stored one once more: its turn failed, and the player tries again."""
    if not messages or line.attachments or not line.text:
        return False
    return messages[-1].role == USER and messages[-1].content == line.text


def _ends_with(messages: Sequence[Message], line: Line) -> bool:
    return bool(messages) and messages[-1].role == USER and messages[-1].content == line.said()


def _rules(role: Role) -> CompactionRules:
    options = role.summary
    return CompactionRules(
        max_messages=role.max_history_messages,
        ratio=options.trigger_ratio,
        summary_cap=options.max_summary_tokens,
        kept_tool_results=options.max_tool_messages,
        prune=options.prune,
        summarize=options.enabled,
        use_model=options.enabled and options.use_model,
    )


def _overflow(budget: Budget, sizes: Sequence[SectionSize]) -> tuple[Cut, ...]:
    excess = budget.excess(sum(size.tokens for size in sizes))
    if not excess:
        return ()
    detail = "the parts that are always sent are larger than the window; shorten them or give a larger window"
    return (Cut(CutKind.WINDOW, Unit.TOKENS, budget.window, excess, detail),)


def _sizes(
    messages: Sequence[PromptMessage], tools: Sequence[Declaration], counter: TokenCounter
) -> tuple[SectionSize, ...]:
    sizes: dict[Section, list[int]] = {}
    if tools:
        points = sum(len(tool.name) + len(tool.description) + len(tool.parameters) for tool in tools)
        sizes[Section.TOOLS] = [tool_tokens(tools, counter), points, 0]
    for message in messages:
        size = sizes.setdefault(message.section, [0, 0, 0])
        size[0] += message.tokens
        size[1] += len(message.content)
        size[2] += 1
    return tuple(SectionSize(section, *sizes[section]) for section in sorted(sizes))
