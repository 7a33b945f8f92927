"""Reads ``lorekeeper-model.toml``: what a model is, by its author. Strict: unknown or wrong keys are refused."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from sidecar.embedding.identity import MAX_DIMENSIONS
from sidecar.embedding.manifest import LAST_HIDDEN_STATE, ModelDeclaration, Pooling, TokenizerKind
from sidecar.embedding.model_files import ExpectedFile, integrity, relative_name
from sidecar.errors import NotReady, Reason

TOML = "lorekeeper-model.toml"
MODEL_MAX_TOKENS = 8_192
PREFIX_CHARS = 10_000


def declared_in_toml(data: bytes, expected: Mapping[str, ExpectedFile]) -> ModelDeclaration:
    """The declaration; ``expected`` holds what is known of the files besides. Raises EMBEDDING_CONFIGURATION."""
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except ValueError as error:
        raise integrity(TOML, "is not valid TOML") from error
    table = _Table(_table(document, "model"))
    prefixes = _Table(_table(document, "prefixes"))
    tokenizer = relative_name(table.text("tokenizer", "tokenizer.json"))
    declared = ModelDeclaration(
        model_id=table.text("id"),
        variant=table.text("variant", "onnx", longest=64),
        weights=relative_name(table.text("weights", "model.onnx")),
        tokenizer=tokenizer,
        tokenizer_kind=TokenizerKind.JSON if tokenizer.endswith(".json") else TokenizerKind.FAIRSEQ,
        dimensions=table.number("dimensions", 1, MAX_DIMENSIONS),
        max_tokens=table.number("max_tokens", 3, MODEL_MAX_TOKENS),
        pooling=table.pooling("pooling"),
        normalise=table.switch("normalise", True),
        query_prefix=prefixes.text("query", "", longest=PREFIX_CHARS),
        document_prefix=prefixes.text("document", "", longest=PREFIX_CHARS),
        pad_id=table.number("pad_id", 0, 2**31 - 1) if "pad_id" in table.values else None,
        output=table.text("output", LAST_HIDDEN_STATE),
        expected={**expected, **expected_files(_table(document, "files"))},
    )
    table.check_empty()
    prefixes.check_empty()
    return declared


class _Table:
    """One table of the manifest; values are taken out, so that what is left is unknown."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)

    def text(self, key: str, default: str | None = None, *, longest: int = 512) -> str:
        value = self.values.pop(key, default)
        if not isinstance(value, str) or len(value) > longest or (default != "" and not value.strip()):
            raise _wrong(key, f"must be a text of at most {longest} characters")
        return value

    def number(self, key: str, low: int, high: int) -> int:
        value = self.values.pop(key, None)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise _wrong(key, f"must be a whole number from {low} to {high}")
        return value

    def switch(self, key: str, default: bool) -> bool:
        value = self.values.pop(key, default)
        if not isinstance(value, bool):
            raise _wrong(key, "must be true or false")
        return value

    def pooling(self, key: str) -> Pooling:
        value = self.values.pop(key, None)
        if value not in list(Pooling):
            raise _wrong(key, "must be one of " + ", ".join(Pooling))
        return Pooling(value)

    def check_empty(self) -> None:
        for key in self.values:
            raise _wrong(key, "is not known; see docs/embedding.md")


def expected_files(files: Mapping[str, Any]) -> dict[str, ExpectedFile]:
    """Sizes and hashes by path. Raises EMBEDDING_CONFIGURATION for a path twice or one that leads outside."""
    expected: dict[str, ExpectedFile] = {}
    for name, values in files.items():
        path = relative_name(name)
        if path in expected or not isinstance(values, dict) or values.keys() - {"bytes", "sha256"}:
            raise _wrong(f"files.{name}", "must be named once and hold bytes and sha256 only")
        expected[path] = ExpectedFile(
            bytes=_Table(values).number("bytes", 1, 2**40) if "bytes" in values else None,
            sha256=_sha256(name, values["sha256"]) if "sha256" in values else None,
        )
    return expected


def _sha256(name: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise _wrong(f"files.{name}.sha256", "must be 64 hex digits")
    return value.lower()


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise _wrong(key, "must be a table")
    return value


def _wrong(key: str, rule: str) -> NotReady:
    return NotReady(f"{TOML}: {key} {rule}", reason=Reason.EMBEDDING_CONFIGURATION, key=key)
