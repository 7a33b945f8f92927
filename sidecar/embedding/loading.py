"""Loads a local model: small files, hashes, tokenizer, graph, one warm-up run. Blocking: for a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sidecar.embedding.batching import BatchBounds
from sidecar.embedding.layouts import SMALL_FILE, TOKENIZER_FILE, declare
from sidecar.embedding.machine import large_blocks_apart
from sidecar.embedding.manifest import ModelDeclaration, ModelManifest, TokenizerKind
from sidecar.embedding.model_files import ExpectedFile, ModelFile, ModelFolder
from sidecar.embedding.onnx_library import onnx_runtime
from sidecar.embedding.onnx_provider import OnnxModel
from sidecar.embedding.session import OnnxSession, SessionOptions, cancelled
from sidecar.embedding.tokenizer import FairseqTokenizer, JsonTokenizer, Tokenizer
from sidecar.errors import NotReady, Reason
from sidecar.settings import EmbeddingSettings


class LoadPhase(Enum):
    HASHING = "hashing"
    LOADING = "loading"
    WARMING = "warming"
    READY = "ready"


@dataclass(frozen=True)
class LoadProgress:
    """How far loading is; ``total`` 0: not known. ``unit`` is ``bytes`` or ``runs``."""

    phase: LoadPhase
    done: int
    total: int
    unit: str


Report = Callable[[LoadProgress], None]


class Loading:
    """One load of one folder. ``stop`` ends it at the next step or megabyte with EMBEDDING_CANCELLED."""

    def __init__(self, folder: ModelFolder, settings: EmbeddingSettings, report: Report) -> None:
        self._folder = folder
        self._settings = settings
        self._report = report
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def model(self) -> OnnxModel:
        """Raises what :func:`declare`, :meth:`ModelFolder.read`, the tokenizer and the session raise."""
        check_installed()
        with large_blocks_apart():
            return self._model()

    def _model(self) -> OnnxModel:
        declared = declare(self._folder, max_tokens=self._settings.max_tokens)
        contents, manifest = self._hashed(declared)
        self._step(LoadPhase.LOADING, 0, "runs")
        tokenizer = tokenizer_of(declared, contents.pop(declared.tokenizer))
        options = SessionOptions(intra_op_threads=self._settings.intra_op_threads)
        session = OnnxSession(contents.pop(declared.weights), declared, options)
        model = OnnxModel(manifest, tokenizer, session, self._bounds(declared, session))
        self._step(LoadPhase.WARMING, 0, "runs")
        model.warm_up()
        self._step(LoadPhase.WARMING, 1, "runs")
        return model

    def _hashed(self, declared: ModelDeclaration) -> tuple[dict[str, bytes], ModelManifest]:
        bounds = {name: file_bound(declared, name, self._settings) for name in declared.files}
        total = sum(self._folder.size(name, most=most) for name, most in bounds.items())
        watch = self._watch(total)
        contents: dict[str, bytes] = {}
        files: list[ModelFile] = []
        for name, most in bounds.items():
            expected = declared.expected.get(name, ExpectedFile())
            contents[name], file = self._folder.read(name, most=most, expected=expected, watch=watch)
            files.append(file)
        return contents, manifest_of(declared, tuple(files), self._settings)

    def _watch(self, total: int) -> Callable[[int], None]:
        """Tells each hundredth of the bytes, and stops when asked to."""
        done = told = 0

        def watch(count: int) -> None:
            nonlocal done, told
            done += count
            if done - told >= total // 100 or done == total:
                told = done
                self._step(LoadPhase.HASHING, done, "bytes", total)

        return watch

    def _step(self, phase: LoadPhase, done: int, unit: str, total: int = 1) -> None:
        if self._stopped.is_set():
            raise cancelled()
        self._report(LoadProgress(phase=phase, done=done, total=total, unit=unit))

    def _bounds(self, declared: ModelDeclaration, session: OnnxSession) -> BatchBounds:
        settings = self._settings
        return BatchBounds(
            texts=1 if session.one_by_one else settings.max_batch_size,
            tokens=min(settings.max_batch_tokens, settings.aimed_batch_tokens),
            tensor_bytes=settings.max_tensor_bytes,
            dimensions=declared.dimensions,
        )


def manifest_of(declared: ModelDeclaration, files: tuple[ModelFile, ...], settings: EmbeddingSettings) -> ModelManifest:
    return ModelManifest(declared, files, max_tokens=min(declared.max_tokens, settings.max_tokens))


def verified(folder: ModelFolder, settings: EmbeddingSettings) -> ModelManifest:
    """Every file hashed, streamed, and compared with what is expected; the graph is not opened."""
    declared = declare(folder, max_tokens=settings.max_tokens)
    files = tuple(
        folder.hash(
            name,
            most=file_bound(declared, name, settings),
            expected=declared.expected.get(name, ExpectedFile()),
            watch=lambda _count: None,
        )
        for name in declared.files
    )
    return manifest_of(declared, files, settings)


def file_bound(declared: ModelDeclaration, name: str, settings: EmbeddingSettings) -> int:
    """The most bytes that this file may have."""
    if name == declared.weights:
        return settings.max_model_bytes
    return TOKENIZER_FILE if name == declared.tokenizer else SMALL_FILE


def tokenizer_of(declared: ModelDeclaration, data: bytes) -> Tokenizer:
    json_file = declared.tokenizer_kind is TokenizerKind.JSON
    tokenizer: Tokenizer = JsonTokenizer(data) if json_file else FairseqTokenizer(data)
    if declared.pad_id is not None:
        tokenizer.pad_id = declared.pad_id
    return tokenizer


def check_installed() -> None:
    """Raises UNSUPPORTED_MODEL where the libraries for local models are not there."""
    try:
        import numpy  # noqa: F401
        import tokenizers  # noqa: F401

        onnx_runtime()
    except ImportError as error:
        raise NotReady(
            f"local models need the package {error.name}: install lorekeeper[onnx]",
            reason=Reason.UNSUPPORTED_MODEL,
            package=error.name,
        ) from error
