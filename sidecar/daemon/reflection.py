"""Server reflection, by which grpcurl and others find out what can be called; imported when somebody asks."""

from __future__ import annotations

import grpc


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

    from sidecar.gen.lorekeeper.v1 import memory_pb2, system_pb2

    modules = (memory_pb2, system_pb2, health_pb2, reflection_pb2)
    names = [service.full_name for module in modules for service in module.DESCRIPTOR.services_by_name.values()]
    return grpc.stream_stream_rpc_method_handler(
        reflection.aio.ReflectionServicer(names).ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
