"""The one place where an error becomes a gRPC status."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, NoReturn

import grpc

from sidecar.errors import LorekeeperError, Reason

_DOMAIN = "lorekeeper"
_DETAILS = "grpc-status-details-bin"


async def abort(context: Any, error: LorekeeperError) -> NoReturn:
    """End the call with the error's status and, as details, ErrorInfo, BadRequest and the error's own detail."""
    code = getattr(grpc.StatusCode, error.code)
    context.set_trailing_metadata(((_DETAILS, _details(code, error)),))
    await context.abort(code, error.message)
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


def _details(code: grpc.StatusCode, error: LorekeeperError) -> bytes:
    from google.protobuf import duration_pb2
    from google.rpc import error_details_pb2, status_pb2

    status = status_pb2.Status(code=code.value[0], message=error.message)
    info = error_details_pb2.ErrorInfo(reason=str(error.reason), domain=_DOMAIN, metadata=error.metadata)
    status.details.add().Pack(info)
    if error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=error.field, description=error.message, reason=str(error.reason)
        )
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    if error.retry_after_ms is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(error.retry_after_ms)
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    if error.detail is not None:
        status.details.add().Pack(error.detail)
    return bytes(status.SerializeToString())
