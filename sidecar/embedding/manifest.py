"""What a model is and what its vectors depend on. Pure: built from data that others have read.

Three layouts are known: a ``lorekeeper-model.toml`` that declares everything; BGE-M3 as its int8 export comes
(``config.json``, ``tokenizer_config.json``, ``sentencepiece.bpe.model`` or ``tokenizer.json``,
``onnx/model_int8.onnx``); and MiniLM (``model.onnx``, ``tokenizer.json``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sidecar.embedding.identity import MODEL_CHARS, EmbeddingIdentity, EmbeddingKind
from sidecar.embedding.model_files import ExpectedFile, ModelFile

PROVIDER = "onnx-in-process"
LAST_HIDDEN_STATE = "last_hidden_state"


class Pooling(StrEnum):
    """How token vectors become one: the first token's, or the mean over the text's tokens."""

    CLS = "cls"
    MEAN = "mean"


class TokenizerKind(StrEnum):
    JSON = "tokenizer-json"
    FAIRSEQ = "xlm-roberta-spm-fairseq-offset"


@dataclass(frozen=True)
class ModelDeclaration:
    """Everything that a model needs to be run; paths are relative to its folder."""

    model_id: str
    weights: str
    tokenizer: str
    tokenizer_kind: TokenizerKind
    dimensions: int
    max_tokens: int
    pooling: Pooling
    variant: str = "onnx"
    normalise: bool = True
    query_prefix: str = ""
    document_prefix: str = ""
    pad_id: int | None = None
    output: str = LAST_HIDDEN_STATE
    configuration: tuple[str, ...] = ()
    expected: Mapping[str, ExpectedFile] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """All files of the model, small ones first."""
        return (*self.configuration, self.tokenizer, self.weights)

    def prefix(self, kind: EmbeddingKind) -> str:
        return self.query_prefix if kind is EmbeddingKind.QUERY else self.document_prefix


@dataclass(frozen=True)
class ModelManifest:
    """A declaration whose files were read and hashed."""

    declaration: ModelDeclaration
    files: tuple[ModelFile, ...]
    max_tokens: int

    @property
    def identity(self) -> EmbeddingIdentity:
        """Changes with the weights, the tokenizer, the pooling, the prefixes and the number of tokens read."""
        declared = self.declaration
        hashes = {file.path: file.sha256[:16] for file in self.files}
        version = f"{declared.variant}-{hashes[declared.weights]}-{hashes[declared.tokenizer]}"
        return EmbeddingIdentity(
            provider=PROVIDER,
            model=declared.model_id[:MODEL_CHARS],
            version=f"{version}+{preprocessing(declared, self.max_tokens)}",
            dimensions=declared.dimensions,
        )


def preprocessing(declared: ModelDeclaration, max_tokens: int) -> str:
    """What happens around the graph, as one word; whatever is not the default adds to it."""
    length = "l2" if declared.normalise else "asis"
    base = f"{declared.tokenizer_kind}-{declared.pooling}-{length}-v1-max{max_tokens}"
    extras = {
        "q": declared.query_prefix,
        "d": declared.document_prefix,
        "o": "" if declared.output == LAST_HIDDEN_STATE else declared.output,
        "p": "" if declared.pad_id is None else str(declared.pad_id),
    }
    return base + "".join(f"-{letter}{_short(text)}" for letter, text in extras.items() if text)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
