"""Where a history is split: what is folded into the summary and what stays word for word.

    ├── folded already ──┼── to fold now ──┼── recent, sent verbatim ──┤
    0               fold start           split                        now

The split moves in blocks. A split that moved with every message would change the beginning of every prompt and so
empty the model server's prompt cache at every turn; in blocks it does so once in several turns. Blocks are counted
by message number, so that the same history is split at the same place whether or not a fold was saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.compaction.marker import StoredSummary, fold_start
from sidecar.compaction.messages import Message
from sidecar.compaction.tokens import TokenCounter
from sidecar.compaction.tool_blocks import flat_text

_SHORT = 6


@dataclass(frozen=True)
class WindowLimits:
    """What the verbatim window may hold. ``ratio`` of the token budget is where folding is first considered."""

    tokens: int
    messages: int
    ratio: float


@dataclass(frozen=True)
class Partition:
    """The parts of a history, as indexes into it. Everything from ``split`` on is sent verbatim."""

    fold_start: int
    split: int
    too_many: bool = False
    too_long: bool = False
    marker_lost: bool = False

    @property
    def triggered(self) -> bool:
        """Whether the window was found too full to be sent as it is."""
        return self.too_many or self.too_long

    @property
    def folds(self) -> int:
        """Messages to fold now."""
        return self.split - self.fold_start


def partition(
    messages: Sequence[Message], stored: StoredSummary, limits: WindowLimits, counter: TokenCounter
) -> Partition:
    """Splits the history (oldest first). The newest message always stays, however long it is."""
    start = fold_start(messages, stored)
    open_messages = messages[start.index :]
    too_many = len(open_messages) > limits.messages
    too_long = _reaches(open_messages, limits.tokens * limits.ratio, counter)
    if not too_many and not too_long:
        return Partition(start.index, start.index)
    split = start.index + split_index(open_messages, limits, counter)
    return Partition(start.index, split, too_many, too_long, marker_lost=start.lost and split > 0)


def split_index(messages: Sequence[Message], limits: WindowLimits, counter: TokenCounter) -> int:
    """The index of the first message that stays verbatim."""
    before = max(0, len(messages) - limits.messages)
    first = before + _first_that_fits(messages[before:], limits.tokens, counter)
    return _at_block_end(messages, first) if first > 0 else 0


def cost(message: Message, counter: TokenCounter) -> int:
    """Tokens of a message in a prompt."""
    return counter.count(flat_text(message))


def _reaches(messages: Sequence[Message], tokens: float, counter: TokenCounter) -> bool:
    """Whether the messages take that many tokens; the newest decide it soonest."""
    taken = 0
    for message in reversed(messages):
        taken += cost(message, counter)
        if taken >= tokens:
            return True
    return taken >= tokens


def _first_that_fits(messages: Sequence[Message], tokens: int, counter: TokenCounter) -> int:
    index = max(0, len(messages) - 1)
    left = tokens - (cost(messages[index], counter) if messages else 0)
    while index > 0:
        left -= cost(messages[index - 1], counter)
        if left < 0:
            break
        index -= 1
    return index


def _at_block_end(messages: Sequence[Message], first: int) -> int:
    """The end of the block of messages that ``first`` falls into; at most half of the tail is given up."""
    block = _block_size(len(messages) - first)
    for index in range(first, min(first + block, len(messages))):
        if messages[index].number // block != messages[index - 1].number // block:
            return index
    return first


def _block_size(kept: int) -> int:
    """A power of two, so that larger blocks end where smaller ones do: 16 of 30 messages, which is eight turns.

    A short tail is kept to the message: who asks for four gets four.
    """
    return 1 << ((kept // 2 + 1).bit_length() - 1) if kept >= _SHORT else 1
