"""Which counter counts for whom: an exact one where a tokenizer is at hand, else the calibrated estimate.

Scales are learnt from what backends report, one for each model, and live as long as the process. Counts follow in
steps: a number that moved with every answer would move what fits a prompt, and empty the model server's prompt cache.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.compaction.tokens import (
    CalibratingCounter,
    CounterKind,
    HeuristicCounter,
    RememberingCounter,
    TokenCounter,
    TokenizerCounter,
    next_scale,
)
from sidecar.errors import NotReady, Reason

DEFAULT_MODEL = "default"
_MAX_MODELS = 1_000
# How far, as a share, the learnt scale may be from the one that counts.
_STEP = 0.04


class Counters:
    """Hands out counters; each remembers what it has counted. Thread-safe."""

    def __init__(self, *, tokenizer: str = "") -> None:
        """``tokenizer`` is the path of a ``tokenizer.json`` that counts for all; empty: estimates."""
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._scales: dict[str, float] = {}
        self._used: dict[str, float] = {}
        self._counters: dict[str, TokenCounter] = {}
        self._unusable = ""

    def best(self, model: str = "") -> TokenCounter:
        """The best counter for a model; it tells its kind."""
        if self._tokenizer and not self._unusable:
            try:
                return self.exact()
            except NotReady as error:
                self._unusable = error.message
        return self.calibrated(model)

    def calibrated(self, model: str = "") -> TokenCounter:
        """The estimate with the scale that was learnt for this model."""
        key = model.strip() or DEFAULT_MODEL
        with self._lock:
            if key not in self._counters:
                self._make_room()
                self._counters[key] = RememberingCounter(CalibratingCounter(self._used.get(key, 1.0)))
            return self._counters[key]

    def exact(self) -> TokenCounter:
        """The exact counter. Raises NotReady where there is none, or it cannot be used."""
        if not self._tokenizer:
            raise NotReady(
                "no tokenizer.json is configured; set compaction.tokenizer_path, or ask for an estimate",
                reason=Reason.TOKENIZER_UNUSABLE,
            )
        with self._lock:
            if _EXACT not in self._counters:
                self._counters[_EXACT] = RememberingCounter(TokenizerCounter(Path(self._tokenizer)))
            return self._counters[_EXACT]

    def heuristic(self) -> TokenCounter:
        """A quarter of the characters."""
        return HeuristicCounter()

    def scale(self, model: str = "") -> float:
        """The scale that was learnt for this model."""
        return self._scales.get(model.strip() or DEFAULT_MODEL, 1.0)

    def report(self, model: str, *, estimated: int, reported: int) -> None:
        """A backend told the true number of tokens of a prompt that was estimated by :meth:`calibrated`."""
        key = model.strip() or DEFAULT_MODEL
        with self._lock:
            self._make_room()
            learnt, used = self._scales.get(key, 1.0), self._used.get(key, 1.0)
            learnt = next_scale(learnt, estimated=round(estimated * learnt / used), reported=reported)
            self._scales[key] = learnt
            if abs(learnt - used) > _STEP * used:
                self._used[key] = learnt
                self._counters.pop(key, None)

    def cuts(self, counter: TokenCounter) -> tuple[Cut, ...]:
        """Tells when a configured tokenizer does not count."""
        if not self._tokenizer or counter.kind is CounterKind.TOKENIZER:
            return ()
        return (Cut(CutKind.TOKENIZER, Unit.TOKENS, 0, 0, f"estimated instead: {self._unusable}"),)

    def _make_room(self) -> None:
        if len(self._scales) >= _MAX_MODELS or len(self._counters) >= _MAX_MODELS:
            self._scales.clear()
            self._used.clear()
            self._counters.clear()


_EXACT = "\0exact"
