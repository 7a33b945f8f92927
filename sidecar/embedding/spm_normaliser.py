"""Prepares text exactly as SentencePiece does, from the rules compiled into the model. Pure.

The rules are a double-array trie over UTF-8 bytes whose leaves point into a list of replacements, each ended by NUL:

    4 bytes, little endian: size of the trie | the trie, 4 bytes a unit | the replacements
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from functools import cached_property

from sidecar.embedding.spm_model import SPACE, NormaliserSpec, PieceType, SentencePieceModel
from sidecar.errors import NotReady, Reason

_SPACES = re.compile(" {2,}")
_LABEL = (1 << 31) | 0xFF


class CompiledRules:
    """The longest rule that matches at a place in the text."""

    def __init__(self, blob: bytes) -> None:
        size = int.from_bytes(blob[:4], "little")
        if len(blob) <= 4 or size % 4 or 4 + size >= len(blob):
            raise NotReady("the model's normalisation rules are cut off", reason=Reason.MODEL_INTEGRITY)
        self._units: Sequence[int] = _units(blob[4 : 4 + size])
        self._replacements = blob[4 + size :]

    def match(self, data: bytes, at: int) -> tuple[int, int]:
        """Length in bytes of the longest rule that matches at ``at``, and its value; length 0: none."""
        units = self._units
        unit = units[0]
        node = _offset(unit)
        length = value = 0
        for here in range(at, len(data)):
            node ^= data[here]
            if node >= len(units):
                break
            unit = units[node]
            if unit & _LABEL != data[here]:
                break
            node ^= _offset(unit)
            if unit >> 8 & 1 and node < len(units):
                length, value = here + 1 - at, units[node] & 0x7FFFFFFF
        return length, value

    def replacement(self, value: int) -> str:
        end = self._replacements.find(b"\0", value)
        return self._replacements[value : end if end >= 0 else None].decode("utf-8", "replace")


class Normaliser:
    """Text to the string that is cut into pieces: rules applied, spaces collapsed and written as ▁."""

    def __init__(self, model: SentencePieceModel) -> None:
        spec = model.normaliser
        self._spec: NormaliserSpec = spec
        self._behind = model.space_behind
        self._space = SPACE if spec.escape_spaces else " "
        self._rules = CompiledRules(spec.rules) if spec.rules else None
        kept = [p.text for p in model.pieces if p.type is PieceType.USER_DEFINED]
        self._kept = sorted((text.encode("utf-8") for text in kept), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        parts = self._ascii_parts(text) if text.isascii() and not self._kept else self._parts(text)
        return self._joined(parts)

    @cached_property
    def _ascii_table(self) -> dict[int, str]:
        """What each ASCII character becomes on its own; pairs need a combining mark, which is not ASCII."""
        return {code: part for code in range(128) for part in self._parts(chr(code))}

    def _ascii_parts(self, text: str) -> list[str]:
        changed = text.translate(self._ascii_table)
        return list(_SPACES.sub(" ", changed) if self._spec.collapse_spaces else changed)

    def _parts(self, text: str) -> list[str]:
        data = text.encode("utf-8")
        parts: list[str] = []
        at = 0
        while at < len(data):
            length, part = self._part(data, at)
            parts.append(part)
            at += length
        return parts

    def _part(self, data: bytes, at: int) -> tuple[int, str]:
        for kept in self._kept:
            if data.startswith(kept, at):
                return len(kept), kept.decode("utf-8")
        if self._rules:
            length, value = self._rules.match(data, at)
            if length:
                return length, self._rules.replacement(value)
        length = _char_bytes(data[at])
        return length, data[at : at + length].decode("utf-8", "replace")

    def _joined(self, parts: list[str]) -> str:
        collapse = self._spec.collapse_spaces
        start = 0
        while collapse and start < len(parts) and parts[start] == " ":
            start += 1
        if start == len(parts):
            return ""
        body = "".join(_without_double_spaces(parts[start:]) if collapse else parts).replace(" ", self._space)
        edge = self._space if self._spec.add_front_space else ""
        body = body if self._behind else edge + body
        if collapse:
            body = body.rstrip(self._space)
        return body + edge if self._behind else body


def _without_double_spaces(parts: list[str]) -> list[str]:
    """A part that follows a space loses the spaces at its own front."""
    kept: list[str] = []
    after_space = True
    for part in parts:
        rest = part.lstrip(" ") if after_space else part
        if rest:
            kept.append(rest)
            after_space = rest.endswith(" ")
    return kept


def _units(trie: bytes) -> array[int]:
    import sys

    units = array("I")
    units.frombytes(trie)
    if sys.byteorder == "big":
        units.byteswap()
    return units


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & (1 << 9)) >> 6)


def _char_bytes(first: int) -> int:
    """Bytes of the UTF-8 character that begins with this byte."""
    if first < 0x80:
        return 1
    return 2 if first < 0xE0 else 3 if first < 0xF0 else 4
