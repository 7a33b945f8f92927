"""Server reflection, by which grpcurl and others find out what can be called; imported when somebody asks."""

from __future__ import annotations

import grpc

from sidecar.daemon.contract import SERVICES, descriptor


class Reflection(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers v1 and v1alpha, whose messages are the same."""

    _METHODS = tuple(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo" for version in ("v1", "v1alpha")
    )

    def __init__(self) -> None:
        self._handler: grpc.RpcMethodHandler | None = None

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if handler_call_details.method not in self._METHODS:
            return None
        self._handler = self._handler or _handler()
        return self._handler


def _handler() -> grpc.RpcMethodHandler:
    from grpc_health.v1 import health_pb2
    from grpc_reflection.v1alpha import reflection, reflection_pb2

    for name in SERVICES:
        descriptor(name)
    others = [
        service.full_name for m in (health_pb2, reflection_pb2) for service in m.DESCRIPTOR.services_by_name.values()
    ]
    return grpc.stream_stream_rpc_method_handler(
        reflection.aio.ReflectionServicer([*SERVICES, *others]).ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
