"""Between the contract's messages about embedding and this room's own types."""

from __future__ import annotations

import time

from sidecar.embedding.catalogue import ModelSource
from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.listing import ListedModel
from sidecar.embedding.loading import LoadPhase, LoadProgress
from sidecar.embedding.manifest import ModelDeclaration
from sidecar.embedding.model_host import HostState
from sidecar.embedding.stats import Latency, Operation, WorkFigures
from sidecar.embedding.texts import TextCut
from sidecar.errors import Reason
from sidecar.gen.lorekeeper.v1 import common_pb2
from sidecar.gen.lorekeeper.v1 import embedding_pb2 as pb

_SOURCES = {
    ModelSource.PACKAGE: pb.MODEL_SOURCE_PACKAGE,
    ModelSource.FOLDER: pb.MODEL_SOURCE_FOLDER,
    ModelSource.SERVER: pb.MODEL_SOURCE_SERVER,
}
_STATES = {
    HostState.NONE: pb.MODEL_STATE_UNLOADED,
    HostState.LOADING: pb.MODEL_STATE_LOADING,
    HostState.READY: pb.MODEL_STATE_READY,
    HostState.FAILED: pb.MODEL_STATE_FAILED,
}
_PHASES = {
    LoadPhase.HASHING: pb.LOAD_PHASE_HASHING,
    LoadPhase.LOADING: pb.LOAD_PHASE_LOADING,
    LoadPhase.WARMING: pb.LOAD_PHASE_WARMING,
    LoadPhase.READY: pb.LOAD_PHASE_READY,
}
_OPERATIONS = {
    Operation.MODEL_LOAD: pb.EMBEDDING_OPERATION_MODEL_LOAD,
    Operation.QUERY: pb.EMBEDDING_OPERATION_QUERY,
    Operation.DOCUMENTS: pb.EMBEDDING_OPERATION_DOCUMENTS,
}
_FAILURES = {
    Reason.EMBEDDING_CONFIGURATION: pb.EMBEDDING_FAILURE_INVALID_CONFIGURATION,
    Reason.NO_MODEL: pb.EMBEDDING_FAILURE_INVALID_CONFIGURATION,
    Reason.MODEL_NOT_FOUND: pb.EMBEDDING_FAILURE_INVALID_CONFIGURATION,
    Reason.FIELD_TOO_LONG: pb.EMBEDDING_FAILURE_INVALID_CONFIGURATION,
    Reason.MISSING_MODEL_FILE: pb.EMBEDDING_FAILURE_MISSING_MODEL_FILE,
    Reason.MODEL_INTEGRITY: pb.EMBEDDING_FAILURE_MODEL_INTEGRITY,
    Reason.UNSUPPORTED_MODEL: pb.EMBEDDING_FAILURE_UNSUPPORTED_MODEL,
    Reason.QUEUE_FULL: pb.EMBEDDING_FAILURE_QUEUE_FULL,
    Reason.QUEUE_TIMEOUT: pb.EMBEDDING_FAILURE_QUEUE_TIMEOUT,
    Reason.INFERENCE_TIMEOUT: pb.EMBEDDING_FAILURE_TIMEOUT,
    Reason.MODEL_LOAD_TIMEOUT: pb.EMBEDDING_FAILURE_TIMEOUT,
    Reason.EMBEDDING_CANCELLED: pb.EMBEDDING_FAILURE_CANCELLED,
    Reason.TOKENIZATION_FAILED: pb.EMBEDDING_FAILURE_TOKENIZATION,
    Reason.INFERENCE_FAILED: pb.EMBEDDING_FAILURE_INFERENCE,
    Reason.INVALID_OUTPUT: pb.EMBEDDING_FAILURE_INVALID_OUTPUT,
    Reason.MODEL_UNLOADED: pb.EMBEDDING_FAILURE_DISPOSED,
}


def failure_to(reason: Reason) -> pb.EmbeddingFailure.ValueType:
    """The contract's kind; what nobody foresaw counts as inference."""
    return _FAILURES.get(reason, pb.EMBEDDING_FAILURE_INFERENCE)


def identity_to(identity: EmbeddingIdentity) -> pb.EmbeddingIdentity:
    return pb.EmbeddingIdentity(
        provider_id=identity.provider,
        model_id=identity.model,
        version=identity.version,
        dimensions=identity.dimensions,
    )


def cut_to(cut: TextCut, max_chars: int) -> common_pb2.Cut:
    by_chars = cut.unit == "code_points"
    limit = f"embedding.max_text_chars is {max_chars}" if by_chars else "the model reads no more tokens"
    return common_pb2.Cut(
        what="embedding_input",
        unit=cut.unit,
        kept=cut.kept,
        dropped=cut.dropped,
        detail=f"the end of texts[{cut.index}]: {limit}",
    )


def progress_to(step: LoadProgress, *, began: float, resident: int) -> pb.LoadModelResponse:
    return pb.LoadModelResponse(
        phase=_PHASES[step.phase],
        done=step.done,
        total=step.total,
        unit=step.unit,
        elapsed_ms=(time.monotonic() - began) * 1_000,
        resident_bytes=resident,
    )


def model_to(model: ListedModel, state: HostState) -> pb.Model:
    message = pb.Model(
        name=model.entry.name,
        source=_SOURCES[model.entry.source],
        state=_STATES[state],
        files=[pb.ModelFile(path=file.path, bytes=file.bytes, sha256=file.sha256) for file in model.files],
        location=model.entry.location,
        selected=model.selected,
        selection_reason=model.why,
        max_tokens=model.max_tokens,
    )
    if model.declared:
        _declare(message, model.declared)
    if model.manifest:
        message.identity.CopyFrom(identity_to(model.manifest.identity))
    if model.problem:
        message.state = pb.MODEL_STATE_FAILED
        message.failure = failure_to(model.problem.reason)
        message.problem = model.problem.message
    return message


def work_to(figures: WorkFigures) -> pb.EmbeddingWork:
    return pb.EmbeddingWork(
        operation=_OPERATIONS[figures.operation],
        count=figures.count,
        failures=[
            pb.EmbeddingFailureCount(failure=failure_to(reason), count=count)
            for reason, count in figures.failures.items()
        ],
        texts=figures.texts,
        batches=figures.batches,
        largest_batch=figures.largest_batch,
        tokens=figures.tokens,
        truncated_texts=figures.cut_texts,
        total=_latency_to(figures.total),
        queue=_latency_to(figures.queue),
        tokenization=_latency_to(figures.tokenization),
        inference=_latency_to(figures.inference),
    )


def _declare(message: pb.Model, declared: ModelDeclaration) -> None:
    message.pooling = declared.pooling
    message.query_prefix = declared.query_prefix
    message.document_prefix = declared.document_prefix


def _latency_to(latency: Latency) -> pb.Latency:
    return pb.Latency(
        p50_ms=latency.p50 * 1_000,
        p95_ms=latency.p95 * 1_000,
        p99_ms=latency.p99 * 1_000,
        max_ms=latency.longest * 1_000,
    )
