"""How a turn that failed is told: as an event where the conversation goes on, as an error where the call ends."""

from __future__ import annotations

import logging
import secrets

from sidecar.chat.backends.failures import Failure, FailureKind
from sidecar.chat.turns.events import Failed, TurnFailed, turn_failure
from sidecar.errors import (
    InvalidInput,
    LimitReached,
    LorekeeperError,
    NotFound,
    NotReady,
    Reason,
    Stale,
    TimedOut,
    Unavailable,
)

_log = logging.getLogger("lorekeeper")
_K = FailureKind
_ERRORS: dict[FailureKind, tuple[type[LorekeeperError], Reason]] = {
    _K.AUTH_EXPIRED: (NotReady, Reason.AUTH_EXPIRED),
    _K.PAYMENT_REQUIRED: (NotReady, Reason.PAYMENT_REQUIRED),
    _K.QUOTA_EXCEEDED: (LimitReached, Reason.QUOTA_EXCEEDED),
    _K.RATE_LIMITED: (LimitReached, Reason.RATE_LIMITED),
    _K.INVALID_REQUEST: (NotReady, Reason.INVALID_REQUEST),
    _K.CONTEXT_LENGTH_EXCEEDED: (LimitReached, Reason.CONTEXT_LENGTH_EXCEEDED),
    _K.BACKEND_UNAVAILABLE: (Unavailable, Reason.BACKEND_UNAVAILABLE),
    _K.TIMEOUT: (TimedOut, Reason.TIMEOUT),
    _K.EMPTY_RESPONSE: (Unavailable, Reason.EMPTY_RESPONSE),
    _K.PROVIDER_ERROR: (Unavailable, Reason.PROVIDER_ERROR),
    _K.ANSWER_INVALID: (NotReady, Reason.ANSWER_INVALID),
    _K.SAVE_CHANGED: (Stale, Reason.SAVE_CHANGED),
}


def cancelled() -> Failure:
    """The game has ended the turn."""
    return turn_failure(FailureKind.CANCELLED, "the game ended the turn; the player's line is kept")


def error_of(failed: Failed) -> LorekeeperError:
    """The error that ends a call whose turn failed."""
    cls, reason = _ERRORS[failed.failure.kind]
    error = cls(failed.failure.message, reason=reason)
    error.metadata |= {"backend": failed.backend_id} if failed.backend_id else {}
    error.metadata |= {"http_status": str(failed.failure.http_status)} if failed.failure.http_status else {}
    return error


def failed_of(error: BaseException) -> Failed:
    """The event that ends a turn, where the conversation goes on."""
    if isinstance(error, TurnFailed):
        return error.told
    if isinstance(error, LorekeeperError):
        return Failed(turn_failure(_kind(error), error.message), reason=str(error.reason))
    incident = secrets.token_hex(6)
    _log.error("a turn failed", exc_info=error, extra={"code": "internal_failure", "incident": incident})
    message = f"the daemon failed; its log has the reason under {incident}"
    return Failed(turn_failure(FailureKind.INTERNAL, message), reason=str(Reason.INTERNAL))


def _kind(error: LorekeeperError) -> FailureKind:
    if isinstance(error, InvalidInput | NotFound):
        return FailureKind.INVALID_INPUT
    if isinstance(error, Stale):
        return FailureKind.SAVE_CHANGED
    return FailureKind.LIMIT_REACHED if isinstance(error, LimitReached) else FailureKind.INTERNAL
