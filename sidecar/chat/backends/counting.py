"""Who counts tokens for a backend: its own tokenizer where the profile names one, else what the daemon has for all."""

from __future__ import annotations

from sidecar.chat.backends.profile import Backend
from sidecar.compaction.counters import Counters

_MAX_TOKENIZERS = 16


class BackendCounting:
    """Keeps a few tokenizers open; a file that cannot be used is told as a cut, and estimates take its place."""

    def __init__(self, common: Counters) -> None:
        self.common = common
        self._own: dict[str, Counters] = {}

    def of(self, backend: Backend) -> Counters:
        """The counters for a backend."""
        path = backend.tokenizer_path
        if not path:
            return self.common
        if path not in self._own:
            if len(self._own) >= _MAX_TOKENIZERS:
                self._own.clear()
            self._own[path] = Counters(tokenizer=path)
        return self._own[path]
