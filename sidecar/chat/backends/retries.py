"""When a request is made again, and how a prompt that was too long is made smaller. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.chat.backends.failures import Failure, FailureKind

SHRINK = 0.75
_RETRIED = frozenset({FailureKind.RATE_LIMITED, FailureKind.BACKEND_UNAVAILABLE})
_FALLEN_BACK = _RETRIED | {FailureKind.TIMEOUT}
_MIN_MARGIN = 256
_MARGIN_SHARE = 20
_MIN_WINDOW = 256


@dataclass(frozen=True)
class Waits:
    """How long to wait before a retry, in milliseconds: ``first``, doubled each time, at most ``longest``."""

    first: int = 2_000
    longest: int = 30_000

    def wait_ms(self, attempt: int, asked: int | None) -> int | None:
        """The wait before the retry ``attempt`` (from 1); None where the server asks for more than is allowed."""
        if asked is not None:
            return asked if asked <= self.longest else None
        return int(min(self.longest, self.first * 2 ** (attempt - 1)))


def may_retry(failure: Failure) -> bool:
    """Whether the same request may succeed later."""
    return failure.kind in _RETRIED


def may_fall_back(failure: Failure) -> bool:
    """Whether another backend may succeed where this one failed."""
    return failure.kind in _FALLEN_BACK


@dataclass(frozen=True)
class Smaller:
    """A prompt's next try: the window that it must fit, in tokens, and how far its history's budget is scaled."""

    window: int
    scale: float


def smaller(failure: Failure, *, attempt: int, window: int, estimated: int) -> Smaller:
    """After an overflow: the limit that was told, less a margin, else three quarters of what was sent.

    ``attempt`` counts from 1; ``window`` is what was believed, ``estimated`` what the last prompt seemed to take.
    """
    told = failure.window - max(_MIN_MARGIN, failure.window // _MARGIN_SHARE) if failure.window else 0
    guessed = int(estimated * SHRINK)
    allowed = max(_MIN_WINDOW, told if told > 0 else failure.window or guessed)
    return Smaller(min(window, allowed) if window else allowed, SHRINK**attempt)
