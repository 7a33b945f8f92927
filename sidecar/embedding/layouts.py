"""Finds out what lies in a model's folder and reads its small files: TOML, BGE-M3's configuration, or MiniLM's pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidecar.embedding.declared import TOML, declared_in_toml, expected_files
from sidecar.embedding.manifest import ModelDeclaration, Pooling, TokenizerKind
from sidecar.embedding.model_files import ExpectedFile, ModelFolder, read_json
from sidecar.errors import NotReady, Reason

RECORD = "lorekeeper-files.json"
"""Sizes and hashes, written when a folder is added."""

SMALL_FILE = 1_048_576
TOKENIZER_FILE = 67_108_864

_MINILM_WEIGHTS = "model.onnx"
_BGE_WEIGHTS = "onnx/model_int8.onnx"
_BGE_CONFIGURATION = ("config.json", "tokenizer_config.json")
_SENTENCEPIECE = "sentencepiece.bpe.model"
_JSON_TOKENIZER = "tokenizer.json"
_BGE_FACTS = {
    "model_type": "xlm-roberta",
    "hidden_size": 1024,
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "type_vocab_size": 1,
    "vocab_size": 250_002,
}
_BGE_TOKENIZERS = ("XLMRobertaTokenizer", "XLMRobertaTokenizerFast")
_NOTHING_EXPECTED = ExpectedFile()


def declare(folder: ModelFolder, *, max_tokens: int) -> ModelDeclaration:
    """What the folder's model is; ``max_tokens`` is what the daemon would read of a text.

    Raises MISSING_MODEL_FILE, MODEL_INTEGRITY, UNSUPPORTED_MODEL or EMBEDDING_CONFIGURATION.
    """
    declared = _declare(folder, _recorded(folder), max_tokens)
    for name in declared.expected.keys() - set(declared.files):
        raise NotReady(
            f"{name} is expected but is no file of the model", reason=Reason.EMBEDDING_CONFIGURATION, file=name
        )
    return declared


def _declare(folder: ModelFolder, expected: Mapping[str, ExpectedFile], max_tokens: int) -> ModelDeclaration:
    if folder.has(TOML):
        data, _ = folder.read(TOML, most=SMALL_FILE, expected=_NOTHING_EXPECTED, watch=_unwatched)
        return declared_in_toml(data, expected)
    bge = any(folder.has(name) for name in (_BGE_WEIGHTS, *_BGE_CONFIGURATION, _SENTENCEPIECE))
    if bge and not folder.has(_MINILM_WEIGHTS):
        return _bge_m3(folder, expected, max_tokens)
    return _minilm(expected)


def _minilm(expected: Mapping[str, ExpectedFile]) -> ModelDeclaration:
    return ModelDeclaration(
        model_id="minilm",
        weights=_MINILM_WEIGHTS,
        tokenizer=_JSON_TOKENIZER,
        tokenizer_kind=TokenizerKind.JSON,
        dimensions=384,
        max_tokens=256,
        pooling=Pooling.MEAN,
        expected=expected,
    )


def _bge_m3(folder: ModelFolder, expected: Mapping[str, ExpectedFile], max_tokens: int) -> ModelDeclaration:
    config, tokenizer = (_small_json(folder, name, expected) for name in _BGE_CONFIGURATION)
    _check_bge(config, tokenizer, max_tokens)
    sentencepiece = folder.has(_SENTENCEPIECE) or not folder.has(_JSON_TOKENIZER)
    return ModelDeclaration(
        model_id=config["_name_or_path"],
        variant="int8",
        weights=_BGE_WEIGHTS,
        tokenizer=_SENTENCEPIECE if sentencepiece else _JSON_TOKENIZER,
        tokenizer_kind=TokenizerKind.FAIRSEQ if sentencepiece else TokenizerKind.JSON,
        dimensions=1024,
        max_tokens=max_tokens,
        pooling=Pooling.CLS,
        configuration=_BGE_CONFIGURATION,
        expected=expected,
    )


def _check_bge(config: Mapping[str, Any], tokenizer: Mapping[str, Any], max_tokens: int) -> None:
    name = config.get("_name_or_path")
    if not isinstance(name, str) or not name.strip():
        raise _unsupported("config.json", "_name_or_path must be a text")
    for key, value in _BGE_FACTS.items():
        found = config.get(key)
        if found != value or isinstance(found, bool):
            raise _unsupported("config.json", f"{key} must be {value}")
    if _number(config, "max_position_embeddings") < max_tokens + 2:
        raise _unsupported("config.json", f"max_position_embeddings must be {max_tokens + 2} or more")
    if tokenizer.get("tokenizer_class") not in _BGE_TOKENIZERS:
        raise _unsupported("tokenizer_config.json", "tokenizer_class must be XLMRobertaTokenizer")
    if _number(tokenizer, "model_max_length") < max_tokens:
        raise _unsupported("tokenizer_config.json", f"model_max_length must be {max_tokens} or more")


def _recorded(folder: ModelFolder) -> dict[str, ExpectedFile]:
    """Sizes and hashes from when the folder was added, if it was."""
    if not folder.has(RECORD):
        return {}
    return expected_files(_small_json(folder, RECORD, {}))


def _small_json(folder: ModelFolder, name: str, expected: Mapping[str, ExpectedFile]) -> dict[str, Any]:
    wanted = expected.get(name, _NOTHING_EXPECTED)
    data, _ = folder.read(name, most=SMALL_FILE, expected=wanted, watch=_unwatched)
    return read_json(data, name)


def _number(values: Mapping[str, Any], key: str) -> int:
    value = values.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value < 2**63 else -1


def _unsupported(file: str, rule: str) -> NotReady:
    return NotReady(f"{file}: {rule}; this model is not supported", reason=Reason.UNSUPPORTED_MODEL, file=file)


def _unwatched(_count: int) -> None:
    """Small files are read at once: nobody waits for their progress."""
