"""Every number, flag and text of every call at its worst: it is answered or refused by name, and nothing hangs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from client import Client, Failure, read_failure
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from sidecar.daemon.contract import SERVICES, descriptor

Path = tuple[FieldDescriptor, ...]
PREFIX = "lorekeeper.v1."
MAX_DEPTH = 5
SECONDS = 10
# The first ends the daemon, the second waits for something to tell: tests of their own.
LEFT_OUT = {"Shutdown", "WatchDiagnostics"}
UNFORESEEN = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED}
WORST = {
    FieldDescriptor.TYPE_ENUM: [99, -1],
    FieldDescriptor.TYPE_INT32: [-(2**31), -1, 2**31 - 1],
    FieldDescriptor.TYPE_INT64: [-(2**63), -1, 2**63 - 1],
    FieldDescriptor.TYPE_DOUBLE: [math.nan, math.inf, -1.0, 1e308],
    FieldDescriptor.TYPE_FLOAT: [math.nan, math.inf, -1.0],
    FieldDescriptor.TYPE_STRING: ["\0", "x" * 600, "[" * 5_000],
}
METHODS = [method for service in SERVICES for method in descriptor(service).methods if method.name not in LEFT_OUT]


def paths(message: Descriptor, before: Path = ()) -> Iterator[Path]:
    """The way to each field that holds a value, through messages and the first of each list."""
    for field in message.fields:
        path = (*before, field)
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            yield path
        elif _leads_on(field, before):
            yield from paths(field.message_type, path)


def _leads_on(field: FieldDescriptor, before: Path) -> bool:
    inner = field.message_type
    known = inner.full_name.startswith(PREFIX) and not inner.GetOptions().map_entry
    return known and len(before) < MAX_DEPTH and all(each.message_type is not inner for each in before)


def with_value(method: MethodDescriptor, path: Path, value: Any) -> Any:
    """A request in which nothing is set but the one field, and what is looked at before it."""
    request = message = GetMessageClass(method.input_type)()
    if method.name == "PutRole":
        request.role.role_id = "Fuzz"
    *way, last = path
    for field in way:
        inner = getattr(message, field.name)
        message = inner.add() if field.is_repeated else inner
        message.SetInParent()
    if last.is_repeated:
        getattr(message, last.name).append(value)
    else:
        setattr(message, last.name, value)
    return request


def refusal(client: Client, method: MethodDescriptor, request: Any) -> Failure | None:
    """How the call fails, None where it does not; of an answer in many messages, the first is enough."""
    kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
    call = getattr(client.channel, kind)(f"/{method.containing_service.full_name}/{method.name}")
    data = request.SerializeToString()
    try:
        answer = call(iter([data]) if method.client_streaming else data, timeout=SECONDS)
        if method.server_streaming:
            next(answer, None)
            answer.cancel()
    except grpc.RpcError as error:
        return read_failure(error)
    return None


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_worst_value_of_a_field_is_answered_or_refused_by_name(shared_daemon, method):
    client = shared_daemon.client
    for path in paths(method.input_type):
        for value in WORST.get(path[-1].type, []):
            refused = refusal(client, method, with_value(method, path, value))
            what = f"{'.'.join(field.name for field in path)} = {str(value)[:20]}"
            assert refused is None or refused.code not in UNFORESEEN, what
            assert refused is None or refused.code != grpc.StatusCode.INVALID_ARGUMENT or refused.fields, what
    assert client.serving()
