"""Text to token ids: from a ``tokenizer.json``, or from a ``sentencepiece.bpe.model`` with the ids of XLM-RoBERTa.

Never truncates in silence: each answer says how many tokens were left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sidecar.embedding.spm_model import ModelType, PieceType, SentencePieceModel, read_model
from sidecar.embedding.spm_normaliser import Normaliser
from sidecar.embedding.spm_segments import PieceTable, Segment, segments
from sidecar.errors import LorekeeperError, NotReady, Reason

MARKS = 2
_FAIRSEQ_BEGIN, _FAIRSEQ_PAD, _FAIRSEQ_END, _FAIRSEQ_UNKNOWN = 0, 1, 2, 3


@dataclass(frozen=True)
class TokenIds:
    """Ids for one text with the model's marks around them; ``dropped`` tokens did not fit."""

    ids: tuple[int, ...]
    dropped: int


class Tokenizer(Protocol):
    """Safe to call from several threads."""

    pad_id: int

    def encode(self, texts: Sequence[str], max_tokens: int) -> list[TokenIds]:
        """At most ``max_tokens`` ids a text, marks included. Raises TOKENIZATION_FAILED."""
        ...


class JsonTokenizer:
    """A Hugging Face ``tokenizer.json``; its own truncation and padding are switched off."""

    def __init__(self, data: bytes) -> None:
        # Its own threads would take the game's cores: it is called from our bounded pool.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from tokenizers import Tokenizer as FastTokenizer

        try:
            self._fast = FastTokenizer.from_str(data.decode("utf-8"))
        except Exception as error:  # the library raises plain Exception
            raise NotReady(
                "tokenizer.json cannot be read: copy the file again", reason=Reason.MODEL_INTEGRITY
            ) from error
        self._fast.no_truncation()
        self._fast.no_padding()
        self._marks = tuple(self._fast.encode("").ids)
        if len(self._marks) != MARKS:
            raise NotReady(
                f"tokenizer.json puts {len(self._marks)} marks around a text; models with two are supported",
                reason=Reason.UNSUPPORTED_MODEL,
            )
        self.pad_id = self._pad_id()

    def encode(self, texts: Sequence[str], max_tokens: int) -> list[TokenIds]:
        try:
            found = self._fast.encode_batch_fast(list(texts), add_special_tokens=False)
        except Exception as error:  # the library raises plain Exception
            raise tokenization_failed() from error
        begin, end = self._marks
        return [_within(encoding.ids, begin, end, max_tokens) for encoding in found]

    def _pad_id(self) -> int:
        known = (self._fast.token_to_id(name) for name in ("[PAD]", "<pad>"))
        return next((number for number in known if number is not None), 0)


class FairseqTokenizer:
    """A SentencePiece model with XLM-RoBERTa's ids: unknown is 3, every other piece is its own id plus one."""

    pad_id = _FAIRSEQ_PAD

    def __init__(self, data: bytes) -> None:
        model = read_model(data)
        self._kind: ModelType = model.kind
        self._normalise = Normaliser(model)
        self._table = PieceTable(model)
        self._bytes = _byte_pieces(model) if model.byte_fallback else {}

    def encode(self, texts: Sequence[str], max_tokens: int) -> list[TokenIds]:
        return [self._encode(text, max_tokens) for text in texts]

    def pieces(self, text: str) -> list[int]:
        """The model's own ids, without marks; a run of unknown text is one piece."""
        found: list[int] = []
        after_unknown = False
        for segment in segments(self._normalise(text), self._table, self._kind):
            unknown = segment.piece == self._table.unknown
            if unknown and self._bytes:
                found.extend(self._as_bytes(segment))
            elif not (unknown and after_unknown):
                found.append(segment.piece)
            after_unknown = unknown
        return found

    def _encode(self, text: str, max_tokens: int) -> TokenIds:
        ids = [_FAIRSEQ_UNKNOWN if piece == self._table.unknown else piece + 1 for piece in self.pieces(text)]
        return _within(ids, _FAIRSEQ_BEGIN, _FAIRSEQ_END, max_tokens)

    def _as_bytes(self, segment: Segment) -> list[int]:
        return [self._bytes.get(byte, self._table.unknown) for byte in segment.text.encode("utf-8")]


def tokenization_failed() -> LorekeeperError:
    return LorekeeperError(
        "the tokenizer could not read a text; leave it out or change it", reason=Reason.TOKENIZATION_FAILED
    )


def _within(ids: Sequence[int], begin: int, end: int, max_tokens: int) -> TokenIds:
    kept = ids[: max_tokens - MARKS]
    return TokenIds(ids=(begin, *kept, end), dropped=len(ids) - len(kept))


def _byte_pieces(model: SentencePieceModel) -> dict[int, int]:
    """Byte value to piece, from pieces written ``<0x41>``."""
    return {
        int(piece.text[3:5], 16): number for number, piece in enumerate(model.pieces) if piece.type is PieceType.BYTE
    }
