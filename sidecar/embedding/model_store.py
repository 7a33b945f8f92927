"""The folder of models: adds one (verified and copied whole or not at all), verifies, removes.

A copy goes into a folder whose name begins with a dot, which nobody loads, and gets its name once it is safe.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path

from sidecar.embedding.catalogue import RESERVED
from sidecar.embedding.declared import TOML
from sidecar.embedding.identity import has_controls
from sidecar.embedding.layouts import RECORD, SMALL_FILE
from sidecar.embedding.loading import Loading, verified
from sidecar.embedding.manifest import ModelManifest
from sidecar.embedding.model_files import CHUNK, ExpectedFile, ModelFile, ModelFolder
from sidecar.errors import AlreadyExists, InvalidInput, LimitReached, NotFound, Reason
from sidecar.settings import EmbeddingSettings
from sidecar.storage.file_disk import sync_folder

_NAME_CHARS = 128


class ModelStore:
    """``root`` is the data folder's ``models``."""

    def __init__(self, root: Path, settings: EmbeddingSettings) -> None:
        self._root = root
        self._settings = settings

    def add(self, source: Path, name: str) -> ModelManifest:
        """Load a model's folder once and copy it under ``name``: only its own files, hashed before and after.

        Raises what loading raises, MODEL_EXISTS, FIELD_INVALID for the name, STORAGE_FULL.
        """
        check_name(name)
        if (self._root / name).exists():
            raise AlreadyExists(
                "a model of this name is there already: remove it first, or give another name",
                reason=Reason.MODEL_EXISTS,
                field="name",
            )
        folder = ModelFolder((source.resolve(),))
        manifest = Loading(folder, self._settings, report=lambda _step: None).model().manifest
        unfinished = self._root / f".adding-{secrets.token_hex(8)}"
        try:
            self._copy(folder, manifest, unfinished)
            unfinished.rename(self._root / name)
            sync_folder(self._root)
        except OSError as error:
            raise LimitReached(
                f"the model cannot be copied: {error.strerror}; make room, then try again", reason=Reason.STORAGE_FULL
            ) from error
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return manifest

    def verify(self, name: str) -> ModelManifest:
        """Every file against the hashes from when it was added. Raises what :func:`verified` raises."""
        return verified(ModelFolder((self._existing(name),)), self._settings)

    def remove(self, name: str) -> None:
        """Raises MODEL_NOT_FOUND."""
        doomed = self._root / f".removing-{secrets.token_hex(8)}"
        self._existing(name).rename(doomed)
        shutil.rmtree(doomed)

    def sweep(self) -> None:
        """Remove what an interrupted add or remove left."""
        for left in (*self._root.glob(".adding-*"), *self._root.glob(".removing-*")):
            shutil.rmtree(left, ignore_errors=True)

    def _existing(self, name: str) -> Path:
        check_name(name)
        folder = self._root / name
        if not folder.is_dir() or folder.is_symlink():
            raise NotFound("no added model has this name", reason=Reason.MODEL_NOT_FOUND, field="name")
        return folder

    def _copy(self, folder: ModelFolder, manifest: ModelManifest, target: Path) -> None:
        target.mkdir(mode=0o700, parents=True)
        for file in manifest.files:
            _copy_file(folder, file, target / file.path)
        if folder.has(TOML):
            data, _ = folder.read(TOML, most=SMALL_FILE, expected=ExpectedFile(), watch=lambda _count: None)
            _write(target / TOML, data)
        record = {file.path: {"bytes": file.bytes, "sha256": file.sha256} for file in manifest.files}
        _write(target / RECORD, json.dumps(record, indent=1).encode("utf-8"))
        for inner in {target, *(path.parent for path in target.rglob("*"))}:
            sync_folder(inner)


def check_name(name: str) -> None:
    """A name that is a folder on every system and stands for nothing else. Raises FIELD_INVALID."""
    bad = set('/\\:*?"<>|')
    plain = name.strip(" .") == name and not bad.intersection(name) and not has_controls(name)
    if not name or len(name) > _NAME_CHARS or not plain or name.lower() in RESERVED:
        raise InvalidInput(
            f"a model's name has 1 to {_NAME_CHARS} characters, none of / \\ : * ? \" < > |, no dot or space at its "
            f"ends, and is none of {', '.join(sorted(RESERVED))}",
            reason=Reason.FIELD_INVALID,
            field="name",
        )


def _copy_file(folder: ModelFolder, file: ModelFile, target: Path) -> None:
    """The copy is hashed again from what was written."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = folder.locate(file.path)
    with source.open("rb") as reading, target.open("xb") as writing:
        shutil.copyfileobj(reading, writing, CHUNK)
        writing.flush()
        os.fsync(writing.fileno())
    ModelFolder((target.parent,)).hash(
        target.name, most=file.bytes, expected=ExpectedFile(file.bytes, file.sha256), watch=lambda _count: None
    )


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
