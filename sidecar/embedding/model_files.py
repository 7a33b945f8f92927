"""Reads a model's files safely: bounded, hashed, nothing outside the folder, no links. Never downloads.

A model may lie in two folders (the built-in one: weights from a package, tokenizer from ours); they are searched in
order, and every path is relative to one of them.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sidecar.errors import NotReady, Reason

CHUNK = 1 << 20
MAX_JSON_DEPTH = 32

Watch = Callable[[int], None]
"""Told how many more bytes were hashed; it may raise to stop the work."""


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: relative path with forward slashes, size in bytes, SHA-256 in lower-case hex."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ExpectedFile:
    """What a file must be; ``None`` where nothing was said."""

    bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class ModelFolder:
    """The folders that hold a model's files, searched in order."""

    roots: tuple[Path, ...]

    def has(self, name: str) -> bool:
        return any((root / name).exists() for root in self.roots)

    def size(self, name: str, *, most: int) -> int:
        """Size in bytes of a regular file of 1 to ``most`` bytes that no link leads to."""
        return _checked_size(self.locate(name), name, most)

    def read(self, name: str, *, most: int, expected: ExpectedFile, watch: Watch) -> tuple[bytes, ModelFile]:
        """The bytes of a file, and what they are: hashed in memory, so that no other bytes can be loaded.

        Raises MISSING_MODEL_FILE, MODEL_INTEGRITY (a link, a size out of bounds, another size or hash than expected).
        """
        self.size(name, most=most)
        try:
            data = self.locate(name).read_bytes()
        except OSError as error:
            raise integrity(name, "cannot be read") from error
        view = memoryview(data)
        digest = hashlib.sha256()
        for start in range(0, len(view), CHUNK):
            digest.update(view[start : start + CHUNK])
            watch(len(view[start : start + CHUNK]))
        return data, _as_expected(ModelFile(name, len(data), digest.hexdigest()), expected)

    def hash(self, name: str, *, most: int, expected: ExpectedFile, watch: Watch) -> ModelFile:
        """The same checks as :meth:`read`, streamed: the file is never whole in memory."""
        size = self.size(name, most=most)
        digest = hashlib.sha256()
        try:
            with self.locate(name).open("rb") as file:
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
                    watch(len(chunk))
        except OSError as error:
            raise integrity(name, "cannot be read") from error
        return _as_expected(ModelFile(name, size, digest.hexdigest()), expected)

    def locate(self, name: str) -> Path:
        """Where the file lies. Raises MISSING_MODEL_FILE, MODEL_INTEGRITY for a link on the way."""
        for root in self.roots:
            if _has_link(root, name):
                raise integrity(name, "is a link: put the file itself there")
            if (root / name).exists():
                return root / name
        raise NotReady(
            f"the model's file {name} is missing: copy it into the model's folder",
            reason=Reason.MISSING_MODEL_FILE,
            file=name,
        )


def relative_name(text: str) -> str:
    """A path within a model's folder, with forward slashes. Raises EMBEDDING_CONFIGURATION where it leads outside."""
    path = PurePosixPath(text.replace("\\", "/"))
    if not text or path.is_absolute() or ".." in path.parts or ":" in text or "\0" in text:
        raise NotReady("the model's manifest names a file outside its folder", reason=Reason.EMBEDDING_CONFIGURATION)
    return str(path)


def read_json(data: bytes, name: str) -> dict[str, Any]:
    """A JSON object of at most 32 levels. Raises MODEL_INTEGRITY."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise integrity(name, "is not valid JSON") from error
    if not isinstance(value, dict) or _too_deep(value, MAX_JSON_DEPTH):
        raise integrity(name, f"is not a JSON object of at most {MAX_JSON_DEPTH} levels")
    return value


def integrity(name: str, what: str) -> NotReady:
    return NotReady(f"the model's file {name} {what}", reason=Reason.MODEL_INTEGRITY, file=name)


def _as_expected(file: ModelFile, expected: ExpectedFile) -> ModelFile:
    if expected.bytes is not None and expected.bytes != file.bytes:
        raise integrity(file.path, f"has {file.bytes} bytes, not {expected.bytes}: copy it again")
    if expected.sha256 is not None and expected.sha256.lower() != file.sha256:
        raise integrity(file.path, "has another SHA-256 than expected: copy it again")
    return file


def _checked_size(path: Path, name: str, most: int) -> int:
    try:
        state = path.lstat()
    except OSError as error:
        raise integrity(name, "cannot be read") from error
    if not stat.S_ISREG(state.st_mode):
        raise integrity(name, "is not a regular file")
    if not 1 <= state.st_size <= most:
        raise integrity(name, f"has {state.st_size} bytes; 1 to {most} are allowed")
    return state.st_size


def _has_link(root: Path, name: str) -> bool:
    """Whether a link stands anywhere between the root (which may be reached through one) and the file."""
    here = root
    for part in PurePosixPath(name).parts:
        here /= part
        if here.is_symlink():
            return True
    return False


def _too_deep(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_too_deep(item, levels - 1) for item in inner)
