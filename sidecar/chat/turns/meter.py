"""What a turn has used so far: time and tokens. No I/O but the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sidecar.chat.backends.wire import Tokens
from sidecar.chat.turns.events import Spent, Timings
from sidecar.compaction.tokens import CounterKind

_CUT_SHARE = 0.6
_CUT_MARGIN = 64


class Meter:
    """Begins with the turn."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._times = {"prompt": 0.0, "model": 0.0, "tools": 0.0, "compaction": 0.0}
        self._first_text: float | None = None
        self.spent = Spent()
        self.asked = 0

    @contextmanager
    def timing(self, what: str) -> Iterator[None]:
        """Counts the time within it as ``prompt``, ``model``, ``tools`` or ``compaction``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._times[what] += 1_000 * (time.perf_counter() - began)

    def text_came(self) -> None:
        """A piece of text is about to be told."""
        if self._first_text is None:
            self._first_text = self._elapsed()

    def answered(self, tokens: Tokens | None, *, estimated: int, said: int, counter: CounterKind) -> None:
        """One request is over; ``said`` are the tokens of the answer where the backend does not report them."""
        told = tokens or Tokens(estimated, said)
        cached = self.spent.cached
        if told.cached is not None:
            cached = (cached or 0) + told.cached
        self.spent = Spent(
            self.spent.prompt + told.read(),
            self.spent.completion + told.completion,
            cached,
            tokens is not None,
            estimated,
            counter,
            told.read() if tokens else 0,
        )

    def timings(self) -> Timings:
        """As they stand now."""
        return Timings(**self._times, first_text=self._first_text, total=self._elapsed())

    def _elapsed(self) -> float:
        return 1_000 * (time.perf_counter() - self._began)


def cut_in_silence(tokens: Tokens | None, estimated: int) -> bool:
    """Whether the backend read so many fewer tokens than were sent that it must have cut the prompt."""
    if tokens is None or tokens.read() <= 0:
        return False
    return tokens.read() < _CUT_SHARE * estimated and estimated - tokens.read() >= _CUT_MARGIN
