"""Cuts prepared text into the pieces of a SentencePiece model, piece for piece as its own library does. Pure.

Unigram: the path with the highest sum of scores. Sums are rounded to single precision at each step as the library
does, because texts such as ``hahaha`` have many paths that differ by nothing else.
BPE: the two neighbours whose joined piece scores highest are joined first, the left one where two are equal.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from sidecar.embedding.spm_model import ModelType, PieceType, SentencePieceModel

_SINGLE = struct.Struct("<f")
_UNKNOWN_PENALTY = 10.0
_RESET_BEYOND = 100_000.0
_NOWHERE = -1


@dataclass(frozen=True)
class Segment:
    """A piece's id (the model's own) and the text that it covers."""

    piece: int
    text: str


def single(value: float) -> float:
    """The value rounded to single precision."""
    return float(_SINGLE.unpack(_SINGLE.pack(value))[0])


class PieceTable:
    """The pieces that text is cut into, by their text."""

    def __init__(self, model: SentencePieceModel) -> None:
        self.unknown = model.unknown
        self.ids: dict[str, int] = {}
        self.unused: set[int] = set()
        self.frozen: dict[str, int] = {}
        self.scores = [_score(piece.text, piece.score, piece.type) for piece in model.pieces]
        for number, piece in enumerate(model.pieces):
            if piece.type in (PieceType.NORMAL, PieceType.USER_DEFINED, PieceType.UNUSED):
                self.ids[piece.text] = number
            if piece.type is PieceType.UNUSED:
                self.unused.add(number)
            if piece.type is PieceType.USER_DEFINED:
                self.frozen[piece.text] = number
        self.longest = max(map(len, self.ids), default=1)
        normal = [piece.score for piece in model.pieces if piece.type is PieceType.NORMAL]
        self.unknown_score = single(min(normal, default=0.0) - _UNKNOWN_PENALTY)


def segments(text: str, table: PieceTable, kind: ModelType) -> list[Segment]:
    """The text as pieces, from left to right; none for the empty text."""
    if not text:
        return []
    return best_path(text, table) if kind is ModelType.UNIGRAM else joined_pairs(text, table)


def best_path(text: str, table: PieceTable) -> list[Segment]:
    """The unigram model's best path (Viterbi)."""
    size = len(text)
    best = [0.0] * (size + 1)
    starts = [_NOWHERE] * (size + 1)
    chosen = [table.unknown] * (size + 1)
    for start in range(size):
        so_far = _reset(best, starts, start)
        single_char_known = False
        for end in range(start + 1, min(start + table.longest, size) + 1):
            piece = table.ids.get(text[start:end])
            if piece is None or piece in table.unused:
                continue
            single_char_known = single_char_known or end == start + 1
            _offer(best, starts, chosen, start, end, piece, single(table.scores[piece] + so_far))
        if not single_char_known:
            score = single(table.unknown_score + so_far)
            _offer(best, starts, chosen, start, start + 1, table.unknown, score)
    return _walk_back(text, starts, chosen)


def _offer(
    best: list[float],
    starts: list[int],
    chosen: list[int],
    start: int,
    end: int,
    piece: int,
    score: float,
) -> None:
    """Keep the path that ends here through this piece if it beats the one that is known."""
    if starts[end] == _NOWHERE or score > best[end]:
        best[end], starts[end], chosen[end] = score, start, piece


def _reset(best: list[float], starts: list[int], start: int) -> float:
    """The best score so far; set to zero, with all behind it, before a long text makes it coarse."""
    so_far = best[start]
    if abs(so_far) <= _RESET_BEYOND:
        return so_far
    for place in range(start, len(best)):
        if place == start or starts[place] != _NOWHERE:
            best[place] = single(best[place] - so_far)
    return 0.0


def _walk_back(text: str, starts: Sequence[int], chosen: Sequence[int]) -> list[Segment]:
    found: list[Segment] = []
    end = len(text)
    while end > 0:
        found.append(Segment(piece=chosen[end], text=text[starts[end] : end]))
        end = starts[end]
    return found[::-1]


def joined_pairs(text: str, table: PieceTable) -> list[Segment]:
    """The BPE model's joins, best first."""
    return _Joins(text, table).run()


class _Joins:
    """The text as a linked list of symbols; each join shortens it by one."""

    def __init__(self, text: str, table: PieceTable) -> None:
        self._table = table
        self._symbols, self._frozen = _symbols(text, table.frozen)
        count = len(self._symbols)
        self._next = [*range(1, count), _NOWHERE]
        self._before = [_NOWHERE, *range(count - 1)]
        self._queue: list[tuple[float, int, int, int]] = []
        self._parts: dict[str, tuple[str, str]] = {}

    def run(self) -> list[Segment]:
        for left in range(len(self._symbols) - 1):
            self._consider(left, left + 1)
        while self._queue:
            _, left, right, size = heapq.heappop(self._queue)
            if self._is_current(left, right, size):
                self._join(left, right)
        return self._result()

    def _consider(self, left: int, right: int) -> None:
        if _NOWHERE in (left, right) or self._frozen[left] or self._frozen[right]:
            return
        joined = self._symbols[left] + self._symbols[right]
        piece = self._table.ids.get(joined)
        if piece is None:
            return
        heapq.heappush(self._queue, (-self._table.scores[piece], left, right, len(joined)))
        if piece in self._table.unused:
            self._parts[joined] = (self._symbols[left], self._symbols[right])

    def _is_current(self, left: int, right: int, size: int) -> bool:
        one, other = self._symbols[left], self._symbols[right]
        return bool(one and other) and len(one) + len(other) == size

    def _join(self, left: int, right: int) -> None:
        self._symbols[left] += self._symbols[right]
        self._symbols[right] = ""
        after = self._next[left] = self._next[right]
        if after != _NOWHERE:
            self._before[after] = left
        self._consider(self._before[left], left)
        self._consider(left, after)

    def _result(self) -> list[Segment]:
        found: list[Segment] = []
        at = 0
        while at != _NOWHERE:
            found.extend(self._without_unused(self._symbols[at]))
            at = self._next[at]
        return found

    def _without_unused(self, text: str) -> list[Segment]:
        """A piece that the model does not use is taken apart again."""
        piece = self._table.ids.get(text)
        if piece is not None and piece not in self._table.unused:
            return [Segment(piece=piece, text=text)]
        if piece is None or text not in self._parts:
            return [Segment(piece=self._table.unknown, text=text)]
        left, right = self._parts[text]
        return [*self._without_unused(left), *self._without_unused(right)]


def _symbols(text: str, frozen: dict[str, int]) -> tuple[list[str], list[bool]]:
    """Single characters, and whole user-defined pieces, which never join."""
    longest_first = sorted(frozen, key=len, reverse=True)
    symbols: list[str] = []
    at = 0
    while at < len(text):
        symbols.append(next((piece for piece in longest_first if text.startswith(piece, at)), text[at]))
        at += len(symbols[-1])
    return symbols, [symbol in frozen for symbol in symbols]


def _score(text: str, score: float, kind: PieceType) -> float:
    """A user-defined piece gets a bonus by its length in bytes, so that it is always taken."""
    if kind is PieceType.USER_DEFINED:
        return single(0.1 * (len(text.encode("utf-8")) - 1))
    return score
