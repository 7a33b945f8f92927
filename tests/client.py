"""A client as any game would have one: a channel without proxies, the token on every call, the generated stubs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, memory_pb2_grpc, save_pb2_grpc, system_pb2_grpc

CALL_SECONDS = 20.0
MEMORY = "lorekeeper.v1.MemoryService"


class Client:
    """Stubs of one daemon. A test that needs another service makes its stub on ``channel``."""

    def __init__(self, address: str, token: str) -> None:
        options = (
            ("grpc.enable_http_proxy", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", -1),
        )
        self._plain = grpc.insecure_channel(address, options=options)
        self.channel = grpc.intercept_channel(self._plain, _WithToken(token)) if token else self._plain

    def close(self) -> None:
        self._plain.close()

    @cached_property
    def memory(self) -> Any:
        return memory_pb2_grpc.MemoryServiceStub(self.channel)

    @cached_property
    def saves(self) -> Any:
        return save_pb2_grpc.SaveServiceStub(self.channel)

    @cached_property
    def system(self) -> Any:
        return system_pb2_grpc.SystemServiceStub(self.channel)

    @cached_property
    def health(self) -> Any:
        return health_pb2_grpc.HealthStub(self.channel)

    def raw(self, method: str, request: bytes = b"", *, streams: bool = False) -> bytes | list[bytes]:
        """Any method by its path, with bytes that need not be a message."""
        make = self.channel.unary_stream if streams else self.channel.unary_unary
        answer = make(method)(request, timeout=CALL_SECONDS)
        return list(answer) if streams else answer

    def serving(self, service: str = "") -> bool:
        """What the standard health service says of one service, or of the daemon."""
        answer = self.health.Check(health_pb2.HealthCheckRequest(service=service))
        return answer.status == health_pb2.HealthCheckResponse.SERVING

    def read(self, actor: common_pb2.Actor) -> memory_pb2.GetDocumentResponse:
        return self.memory.GetDocument(memory_pb2.GetDocumentRequest(actor=actor))

    def text(self, actor: common_pb2.Actor) -> str:
        return self.read(actor).text

    def edit(self, actor: common_pb2.Actor, *edits: memory_pb2.Edit, **more: Any) -> memory_pb2.EditDocumentResponse:
        """``more``: expected_version, idempotency_key."""
        return self.memory.EditDocument(memory_pb2.EditDocumentRequest(actor=actor, edits=edits, **more))

    def write(self, actor: common_pb2.Actor, content: str, **more: Any) -> memory_pb2.EditDocumentResponse:
        return self.edit(actor, write(content), **more)

    def append(self, actor: common_pb2.Actor, content: str, **more: Any) -> memory_pb2.EditDocumentResponse:
        return self.edit(actor, append(content), **more)

    def versions(self, actor: common_pb2.Actor, **more: Any) -> memory_pb2.ListDocumentVersionsResponse:
        return self.memory.ListDocumentVersions(memory_pb2.ListDocumentVersionsRequest(actor=actor, **more))

    def call_tool(self, actor: common_pb2.Actor, arguments: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Call the memory tool as a model does; its answer."""
        request = memory_pb2.CallToolRequest(
            actor=actor, name="memory", arguments_json=json.dumps(arguments, ensure_ascii=False), **more
        )
        response = self.memory.CallTool(request)
        payload = json.loads(response.result_json)
        assert payload["Success"] == response.succeeded
        return payload


def write(content: str) -> memory_pb2.Edit:
    return memory_pb2.Edit(write=memory_pb2.Write(content=content))


def append(content: str) -> memory_pb2.Edit:
    return memory_pb2.Edit(append=memory_pb2.Append(content=content))


def clear() -> memory_pb2.Edit:
    return memory_pb2.Edit(clear=memory_pb2.Clear())


def str_replace(old: str, new: str, *, replace_all: bool = False) -> memory_pb2.Edit:
    return memory_pb2.Edit(str_replace=memory_pb2.StrReplace(old_text=old, new_text=new, replace_all=replace_all))


def insert(content: str, **position: Any) -> memory_pb2.Edit:
    return memory_pb2.Edit(insert=memory_pb2.Insert(content=content, **position))


def delete(old: str, *, replace_all: bool = False) -> memory_pb2.Edit:
    return memory_pb2.Edit(delete=memory_pb2.Delete(old_text=old, replace_all=replace_all))


def rename(old: str, new: str) -> memory_pb2.Edit:
    return memory_pb2.Edit(rename=memory_pb2.Rename(old_label=old, new_label=new))


@dataclass(frozen=True)
class Failure:
    """A failed call, with what its details tell."""

    code: grpc.StatusCode
    message: str
    domain: str
    reason: str
    metadata: Mapping[str, str]
    fields: tuple[str, ...]
    edit: memory_pb2.EditFailure | None

    @property
    def kind(self) -> tuple[str, str]:
        """Status and reason, the two that programs look at."""
        return self.code.name, self.reason


def failure(call: Callable[[], object]) -> Failure:
    """How ``call`` fails; it is wrong for it to succeed."""
    try:
        result = call()
    except grpc.RpcError as error:
        return read_failure(error)
    raise AssertionError(f"the call succeeded: {result}")


def read_failure(error: Any) -> Failure:
    """What the status and the trailers of a failed call tell."""
    trailers = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b""))
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    edit = memory_pb2.EditFailure()
    told = {detail.DESCRIPTOR.name for part in status.details for detail in (info, bad, edit) if part.Unpack(detail)}
    return Failure(
        code=error.code(),
        message=error.details(),
        domain=info.domain,
        reason=info.reason,
        metadata=dict(info.metadata),
        fields=tuple(violation.field for violation in bad.field_violations),
        edit=edit if "EditFailure" in told else None,
    )


class _Details(NamedTuple):
    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any


class _Call(_Details, grpc.ClientCallDetails):
    """The details of a call with the token among its metadata."""


class _WithToken(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Puts the token on every call, and a limit on the time of those that end by themselves."""

    def __init__(self, token: str) -> None:
        self._token = ("authorization", f"Bearer {token}")

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with(details, details.timeout or CALL_SECONDS), request)

    def intercept_stream_unary(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(self._with(details, details.timeout or CALL_SECONDS), requests)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(self._with(details, details.timeout), request)

    def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(self._with(details, details.timeout), requests)

    def _with(self, details: Any, timeout: float | None) -> _Call:
        return _Call(
            details.method,
            timeout,
            (*(details.metadata or ()), self._token),
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )
