"""Reads a SentencePiece model file: a protobuf of pieces, a trainer's and a normaliser's part. Never needs the library.

ModelProto      1: pieces (repeated)   2: trainer_spec   3: normalizer_spec
SentencePiece   1: piece   2: score (float)   3: type
TrainerSpec     3: model_type   24: whitespace as suffix   35: byte fallback
NormalizerSpec  2: compiled rules   3: add a space in front   4: collapse spaces   5: write spaces as ▁
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from sidecar.errors import NotReady, Reason

SPACE = "▁"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FLOAT = struct.Struct("<f")
_LONGEST_VARINT = 70


class PieceType(IntEnum):
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class ModelType(IntEnum):
    UNIGRAM = 1
    BPE = 2


@dataclass(frozen=True)
class Piece:
    text: str
    score: float
    type: PieceType


@dataclass(frozen=True)
class NormaliserSpec:
    """How text is prepared before it is cut into pieces."""

    rules: bytes = b""
    add_front_space: bool = True
    collapse_spaces: bool = True
    escape_spaces: bool = True


@dataclass(frozen=True)
class SentencePieceModel:
    """The pieces in the order of their ids, and how text becomes pieces."""

    pieces: tuple[Piece, ...]
    kind: ModelType
    byte_fallback: bool
    space_behind: bool
    unknown: int
    normaliser: NormaliserSpec


def read_model(data: bytes) -> SentencePieceModel:
    """Raises MODEL_INTEGRITY for bytes that are no such model, UNSUPPORTED_MODEL for word and character models."""
    try:
        return _read(data)
    except (LookupError, struct.error, UnicodeDecodeError, ValueError, TypeError, StopIteration) as error:
        raise NotReady(
            "the SentencePiece model cannot be read: copy the file again", reason=Reason.MODEL_INTEGRITY
        ) from error


def _read(data: bytes) -> SentencePieceModel:
    pieces: list[Piece] = []
    trainer: dict[int, int | bytes] = {}
    normaliser: dict[int, int | bytes] = {}
    for number, value in _fields(data):
        if number == 1:
            pieces.append(_piece(_as_bytes(value)))
        elif number == 2:
            trainer = dict(_fields(_as_bytes(value)))
        elif number == 3:
            normaliser = dict(_fields(_as_bytes(value)))
    return SentencePieceModel(
        pieces=tuple(pieces),
        kind=_kind(int(trainer.get(3, ModelType.UNIGRAM))),
        byte_fallback=bool(trainer.get(35, 0)),
        space_behind=bool(trainer.get(24, 0)),
        unknown=next(number for number, piece in enumerate(pieces) if piece.type is PieceType.UNKNOWN),
        normaliser=_normaliser(normaliser),
    )


def _kind(number: int) -> ModelType:
    if number not in (ModelType.UNIGRAM, ModelType.BPE):
        raise NotReady(
            "the SentencePiece model is a word or character model; only unigram and BPE models are read",
            reason=Reason.UNSUPPORTED_MODEL,
        )
    return ModelType(number)


def _piece(data: bytes) -> Piece:
    values = dict(_fields(data))
    return Piece(
        text=_as_bytes(values[1]).decode("utf-8"),
        score=_FLOAT.unpack(_as_bytes(values.get(2, bytes(4))))[0],
        type=PieceType(int(values.get(3, PieceType.NORMAL))),
    )


def _normaliser(values: dict[int, int | bytes]) -> NormaliserSpec:
    return NormaliserSpec(
        rules=_as_bytes(values.get(2, b"")),
        add_front_space=bool(values.get(3, 1)),
        collapse_spaces=bool(values.get(4, 1)),
        escape_spaces=bool(values.get(5, 1)),
    )


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of one protobuf message: numbers as int, everything else as its bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            length, at = _varint(data, at)
        else:
            length = {_FIXED32: 4, _FIXED64: 8}[wire]
        if at + length > len(data):
            raise ValueError("a field runs over the end")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < _LONGEST_VARINT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number that does not end")


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number where bytes belong")
    return value
