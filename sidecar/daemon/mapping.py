"""The one place where an error becomes a gRPC status."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn
from urllib.parse import quote

import grpc

from sidecar.errors import LorekeeperError, Reason

_DOMAIN = "lorekeeper"
_DETAILS = "grpc-status-details-bin"
# A client takes 8 KB of headers by default, and hears of nothing but these where there are more.
_HEADER_BYTES = 7_000
# How long a text may be where all do not fit, tried one after the other.
_TEXT_BYTES = (2_000, 1_000, 400, 100)


async def abort(context: Any, error: LorekeeperError) -> NoReturn:
    """End the call with the error's status and, as details, ErrorInfo, BadRequest and the error's own detail.

    Texts that would not fit into the headers of an answer end with "…".
    """
    code = getattr(grpc.StatusCode, error.code)
    message, details = _fitting(code, error)
    context.set_trailing_metadata(((_DETAILS, details),))
    await context.abort(code, message)
    raise AssertionError("abort always raises")


def internal(error: BaseException) -> tuple[LorekeeperError, str]:
    """What a client is told of a failure that nobody foresaw, and the id under which the log has it."""
    incident = secrets.token_hex(6)
    told = LorekeeperError(
        f"the daemon failed; its log has the reason under {incident}", reason=Reason.INTERNAL, incident=incident
    )
    return told, incident


def is_cancellation(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError | grpc.aio.AbortError)


def _fitting(code: Any, error: LorekeeperError) -> tuple[str, bytes]:
    """Message and details, each text of them as long as all together may be."""
    from sidecar.daemon.shortening import shortened, shortened_text

    parts = list(_details(error))
    message, details = error.message, _status(code, error.message, parts)
    for most in _TEXT_BYTES:
        if _header_bytes(message, details) <= _HEADER_BYTES:
            break
        message = shortened_text(error.message, most)
        details = _status(code, message, [shortened(part, most) for part in parts])
    return message, details


def _header_bytes(message: str, details: bytes) -> int:
    """What both take on the wire: one percent-encoded, the other in base64."""
    return len(quote(message)) + 4 * len(details) // 3


def _status(code: Any, message: str, parts: Iterable[Any]) -> bytes:
    from google.rpc import status_pb2

    status = status_pb2.Status(code=code.value[0], message=message)
    for part in parts:
        status.details.add().Pack(part)
    return bytes(status.SerializeToString())


def _details(error: LorekeeperError) -> Iterator[Any]:
    from google.protobuf import duration_pb2
    from google.rpc import error_details_pb2

    yield error_details_pb2.ErrorInfo(reason=str(error.reason), domain=_DOMAIN, metadata=error.metadata)
    if error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=error.field, description=error.message, reason=str(error.reason)
        )
        yield error_details_pb2.BadRequest(field_violations=[violation])
    if error.retry_after_ms is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(error.retry_after_ms)
        yield error_details_pb2.RetryInfo(retry_delay=delay)
    if error.detail is not None:
        yield error.detail
