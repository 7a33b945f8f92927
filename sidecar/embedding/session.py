"""One ONNX graph: checked, loaded from bytes, run on a padded batch, pooled. Synchronous, for the model's threads.

Spinning is off (it eats idle cores), the arena is off (it keeps the largest batch's memory for ever).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar.embedding.identity import unit_vectors
from sidecar.embedding.manifest import ModelDeclaration, Pooling
from sidecar.embedding.onnx_library import onnx_runtime
from sidecar.errors import LorekeeperError, NotReady, Reason, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sidecar.embedding.identity import FloatVectors

_REQUIRED = {"input_ids", "attention_mask"}
_ALLOWED = _REQUIRED | {"token_type_ids"}
_SCALED_BY_BATCH = b"DynamicQuantize"
"""Operators of this name scale by the whole batch, so that a text's vector would depend on its neighbours."""

_CHUNK = 1 << 20


class RunControl:
    """Stops a run: between batches by a flag, within one through ONNX Runtime."""

    def __init__(self) -> None:
        self.options = onnx_runtime().RunOptions()
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True
        self.options.terminate = True


@dataclass(frozen=True)
class SessionOptions:
    intra_op_threads: int = 1


class OnnxSession:
    """Raises MODEL_INTEGRITY for bytes that are no graph, UNSUPPORTED_MODEL for a graph of another shape."""

    def __init__(self, weights: bytes, declared: ModelDeclaration, options: SessionOptions) -> None:
        self._declared = declared
        self.one_by_one = _has_operator(weights, _SCALED_BY_BATCH)
        self._session = _open(weights, options)
        self._inputs = _checked_inputs(self._session)
        _check_output(self._session, declared)

    def vectors(self, batch: Sequence[Sequence[int]], pad_id: int, control: RunControl) -> FloatVectors:
        """One unit vector a text (rows in order), shape (texts, dimensions).

        Raises INFERENCE_FAILED, INVALID_OUTPUT, EMBEDDING_CANCELLED.
        """
        states = self._run(_padded(batch, pad_id), control)
        if states.ndim != 3 or states.shape[:2] != (len(batch), max(map(len, batch))):
            raise LorekeeperError(
                f"the model returned a tensor of shape {states.shape}; load another model",
                reason=Reason.INVALID_OUTPUT,
            )
        pooled = _pooled(states, batch, self._declared.pooling)
        return unit_vectors(pooled, self._declared.dimensions, rescale=self._declared.normalise)

    def _run(self, inputs: dict[str, NDArray[np.int64]], control: RunControl) -> NDArray[np.float32]:
        if control.stopped:
            raise cancelled()
        feed = {name: inputs[name] for name in self._inputs}
        try:
            (states,) = self._session.run([self._declared.output], feed, control.options)
        except Exception as error:  # the library's errors share no base of their own
            if control.stopped:
                raise cancelled() from None
            raise LorekeeperError(
                "the model failed on a batch; load another model", reason=Reason.INFERENCE_FAILED
            ) from error
        result: NDArray[np.float32] = states
        return result


def cancelled() -> LorekeeperError:
    return Unavailable(
        "the run was stopped because the model is unloaded or the daemon ends; try again later",
        reason=Reason.EMBEDDING_CANCELLED,
    )


def _open(weights: bytes, options: SessionOptions) -> Any:
    onnxruntime = onnx_runtime()
    wanted = onnxruntime.SessionOptions()
    wanted.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    wanted.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    wanted.intra_op_num_threads = options.intra_op_threads
    wanted.inter_op_num_threads = 1
    wanted.enable_cpu_mem_arena = False
    wanted.log_severity_level = 4
    wanted.add_session_config_entry("session.intra_op.allow_spinning", "0")
    wanted.add_session_config_entry("session.inter_op.allow_spinning", "0")
    try:
        with _readable(weights) as model:
            return onnxruntime.InferenceSession(model, wanted, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library's errors share no base of their own
        raise NotReady(
            "the model's weights are not a graph that ONNX Runtime can load: copy the file again",
            reason=Reason.MODEL_INTEGRITY,
        ) from error


@contextmanager
def _readable(weights: bytes) -> Iterator[bytes | str]:
    """The weights as ONNX Runtime may read them without stopping every other Python thread.

    It copies bytes while it holds the interpreter's lock, a file it reads without: on Linux, a file in memory.
    """
    if not (hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir()):
        yield weights
        return
    with os.fdopen(os.memfd_create("model"), "wb") as file:
        for start in range(0, len(weights), _CHUNK):
            file.write(weights[start : start + _CHUNK])
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _has_operator(weights: bytes, name: bytes) -> bool:
    """Whether the name stands anywhere in the graph; in steps, so that other threads run in between."""
    return any(weights.find(name, start, start + _CHUNK + len(name)) >= 0 for start in range(0, len(weights), _CHUNK))


def _checked_inputs(session: Any) -> tuple[str, ...]:
    inputs = {value.name: value.type for value in session.get_inputs()}
    if not inputs.keys() >= _REQUIRED or inputs.keys() - _ALLOWED:
        raise _unsupported(f"it must take {', '.join(sorted(_REQUIRED))} and may take token_type_ids")
    if set(inputs.values()) != {"tensor(int64)"}:
        raise _unsupported("its inputs must be int64 tensors")
    return tuple(inputs)


def _check_output(session: Any, declared: ModelDeclaration) -> None:
    outputs = {value.name: value for value in session.get_outputs()}
    output = outputs.get(declared.output)
    if output is None or output.type != "tensor(float)" or len(output.shape) != 3:
        raise _unsupported(f"its output {declared.output} must be a float tensor (batch, tokens, dimensions)")
    last = output.shape[-1]
    if isinstance(last, int) and last != declared.dimensions:
        raise _unsupported(f"its vectors have {last} dimensions, not {declared.dimensions}")


def _unsupported(rule: str) -> NotReady:
    return NotReady(f"the model's graph is not supported: {rule}", reason=Reason.UNSUPPORTED_MODEL)


def _padded(batch: Sequence[Sequence[int]], pad_id: int) -> dict[str, NDArray[np.int64]]:
    import numpy as np

    shape = (len(batch), max(map(len, batch)))
    ids = np.full(shape, pad_id, np.int64)
    mask = np.zeros(shape, np.int64)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}


def _pooled(states: NDArray[np.float32], batch: Sequence[Sequence[int]], pooling: Pooling) -> NDArray[np.float32]:
    """Padding never takes part: each row is cut to its own tokens first."""
    import numpy as np

    if pooling is Pooling.CLS:
        return states[:, 0, :]
    rows = [states[row, : len(tokens)].mean(axis=0) for row, tokens in enumerate(batch)]
    return np.stack(rows)
