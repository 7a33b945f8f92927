"""What holds for every call: the token, what is not built, what is no message, and what is never told."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading

import grpc
import psutil
import pytest
from client import MEMORY, Client, failure, write
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from sidecar.daemon.contract import SERVICES, descriptor
from sidecar.gen.lorekeeper.v1 import common_pb2, compaction_pb2, save_pb2, system_pb2

METHODS = [
    (service, method.name, method.client_streaming, method.server_streaming)
    for service in SERVICES
    for method in descriptor(service).methods
]


def called(channel, service, name, sends_many, answers_many, metadata=()):
    """Call a method with an empty message; the message or messages of the answer."""
    kind = f"{'stream' if sends_many else 'unary'}_{'stream' if answers_many else 'unary'}"
    method = getattr(channel, kind)(f"/{service}/{name}")
    answer = method(iter([b""]) if sends_many else b"", timeout=20, metadata=metadata)
    return list(answer) if answers_many else answer


@pytest.fixture(scope="module")
def stranger(shared_daemon):
    """A client without any token."""
    client = Client(shared_daemon.address, "")
    yield client
    client.close()


def ids(row):
    return f"{row[0].rpartition('.')[2]}/{row[1]}" if isinstance(row, tuple) else None


@pytest.mark.parametrize("row", METHODS, ids=ids)
def test_no_method_answers_without_a_token(stranger, row):
    told = failure(lambda: called(stranger.channel, *row))
    assert (*told.kind, told.domain) == ("UNAUTHENTICATED", "TOKEN_INVALID", "lorekeeper")


def test_a_stranger_is_refused_before_its_message_has_come(stranger):
    never = threading.Event()

    def messages():
        yield never.wait() and b""

    call = stranger.channel.stream_stream(f"/{MEMORY}/GetDocument")(messages(), timeout=20)
    assert failure(lambda: next(call)).kind == ("UNAUTHENTICATED", "TOKEN_INVALID")
    never.set()


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer wrong", "bearer {}", "{}", "Bearer {}x", "Bearer  {}"])
def test_a_wrong_token_is_no_token(shared_daemon, stranger, header):
    metadata = (("authorization", header.format(shared_daemon.token)),)
    for row in ((MEMORY, "GetDocument", False, False), ("lorekeeper.v1.ChatService", "Send", False, True)):
        told = failure(lambda row=row: called(stranger.channel, *row, metadata=metadata))
        assert told.kind == ("UNAUTHENTICATED", "TOKEN_INVALID")
        assert shared_daemon.token not in told.message


@pytest.mark.parametrize("row", [row for row in METHODS if "SystemService" not in row[0]], ids=ids)
def test_an_empty_message_is_answered_or_refused_with_a_reason_and_what_is_not_built_says_so(client, row):
    try:
        called(client.channel, *row)
    except grpc.RpcError:
        told = failure(lambda: called(client.channel, *row))
        assert told.code.name not in {"INTERNAL", "UNKNOWN"}
        assert (told.domain, bool(told.reason)) == ("lorekeeper", True)
        assert (told.code.name == "UNIMPLEMENTED") == (told.reason == "NOT_IMPLEMENTED")


def test_a_method_that_the_contract_has_not_is_unimplemented(client):
    for path in (f"/{MEMORY}/Nothing", "/lorekeeper.v1.Nothing/Nothing", "/x", "/"):
        assert failure(lambda path=path: client.raw(path)).code.name == "UNIMPLEMENTED"


# field 1 of GetDocumentRequest is a message of 3 bytes: field 1, a text of one byte that is no UTF-8
NOT_UTF8 = b"\x0a\x03\x0a\x01\xff"


@pytest.mark.parametrize("data", [NOT_UTF8, b"\x0a\xff", b"\xff\xff\xff", b"\x0a" * 3 + b"\x7f"])
def test_bytes_that_are_no_message_are_a_bad_argument(client, data):
    told = failure(lambda: client.raw(f"/{MEMORY}/GetDocument", data))
    assert (*told.kind, told.domain) == ("INVALID_ARGUMENT", "FIELD_INVALID", "lorekeeper")


def test_bytes_that_are_no_message_are_a_bad_argument_of_a_stream_too(client):
    path = "/lorekeeper.v1.SystemService/WatchDiagnostics"
    assert failure(lambda: client.raw(path, b"\xff", streams=True)).kind == ("INVALID_ARGUMENT", "FIELD_INVALID")


def test_nobody_learns_without_a_token_whether_bytes_are_a_message(stranger):
    assert failure(lambda: stranger.raw(f"/{MEMORY}/GetDocument", NOT_UTF8)).code.name == "UNAUTHENTICATED"


def test_a_deadline_that_is_over_ends_the_call(client):
    watch = client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(), timeout=0.2)
    assert failure(lambda: list(watch)).code.name == "DEADLINE_EXCEEDED"


def test_health_needs_no_token_and_knows_every_service(stranger):
    serving = {service: stranger.serving(service) for service in ("", *SERVICES)}
    assert not serving.pop("lorekeeper.v1.EmbeddingService")  # it has no model here
    assert all(serving.values())


def test_health_of_a_service_that_does_not_exist_is_not_found(stranger):
    assert failure(lambda: stranger.serving("lorekeeper.v1.Nothing")).code.name == "NOT_FOUND"


def test_a_watch_of_health_begins_with_the_present_state(stranger):
    watch = stranger.health.Watch(health_pb2.HealthCheckRequest(service=MEMORY))
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()


def test_what_is_no_request_for_health_is_a_bad_argument(stranger):
    for path, streams in (("/grpc.health.v1.Health/Check", False), ("/grpc.health.v1.Health/Watch", True)):
        told = failure(lambda path=path, streams=streams: stranger.raw(path, b"\xff", streams=streams))
        assert told.code.name == "INVALID_ARGUMENT"


def test_more_watchers_of_health_than_the_limit_are_refused(start_daemon):
    daemon = start_daemon("--set", "daemon.max_health_watchers=1")
    request = health_pb2.HealthCheckRequest(service="none of them")
    first = daemon.client.health.Watch(request)
    assert next(first).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    told = failure(lambda: next(daemon.client.health.Watch(request)))
    assert told.code.name == "RESOURCE_EXHAUSTED"


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_lists_the_services_without_a_token(stranger, version):
    method = stranger.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    answer = next(method(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=20))
    listed = {service.name for service in answer.list_services_response.service}
    assert listed >= {*SERVICES, "grpc.health.v1.Health"}


def test_reflection_describes_a_service(stranger):
    stub = reflection_pb2_grpc.ServerReflectionStub(stranger.channel)
    request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=MEMORY)
    answer = next(stub.ServerReflectionInfo(iter([request]), timeout=20))
    assert answer.file_descriptor_response.file_descriptor_proto


@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
def test_plain_http_of_a_web_page_runs_no_handler(shared_daemon, client, method):
    before = calls_counted(client)
    host, _, port = shared_daemon.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as web:
        request = (
            f"{method} /{MEMORY}/GetDocument HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/grpc\r\n"
            f"Authorization: Bearer {shared_daemon.token}\r\nContent-Length: 5\r\n\r\n"
        )
        web.sendall(request.encode() + b"\0" * 5)
        answer = b""
        while chunk := web.recv(4_096):
            answer += chunk
    assert b"grpc-status: 0" not in answer
    assert not answer.startswith(b"HTTP/1.1 200")
    assert calls_counted(client) == before


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, body, flags=0, stream=0):
    """An HTTP/2 frame; ``stream`` 0 is the connection itself."""
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


GREETING, PING = PREFACE + frame(4, b""), frame(6, b"are you?")


def connect(daemon):
    host, _, port = daemon.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def test_standard_error_is_the_logs_alone_whatever_a_stranger_sends(shared_daemon):
    with connect(shared_daemon) as stranger:
        stranger.sendall(GREETING + frame(7, struct.pack(">II", 0, 7) + b"a secret") + PING)
        heard = b""
        while frame(6, b"are you?", flags=1) not in heard:
            more = stranger.recv(4_096)
            assert more, "the daemon hung up"
            heard += more
    assert all(json.loads(line) for line in shared_daemon.stderr.splitlines())


def test_a_stranger_who_watches_and_never_reads_does_not_keep_the_daemon_from_ending(daemon):
    assert daemon.client.serving()
    no_room = frame(4, struct.pack(">HI", 4, 0))
    path = b"/grpc.health.v1.Health/Watch"
    head = b"\x83\x86\x41\x01x\x44" + bytes([len(path)]) + path + b"\x40\x02te\x08trailers"
    head += b"\x5f\x10application/grpc"
    with connect(daemon) as stranger:
        stranger.sendall(PREFACE + no_room + frame(1, head, flags=4, stream=1) + frame(0, b"\0" * 5, flags=1, stream=1))
        heard = b""
        while b"application/grpc" not in heard:  # the head of the answer, which needs no room
            more = stranger.recv(4_096)
            assert more, heard
            heard += more
        assert daemon.stop() == 0


def test_connections_beyond_the_limit_are_closed_and_leave_the_others_alone(start_daemon, actor):
    daemon = start_daemon("--set", "daemon.max_connections=8")
    daemon.client.write(actor, "before")
    with contextlib.ExitStack() as held:
        strangers = [held.enter_context(connect(daemon)) for _ in range(40)]
        kept = sum(answers(stranger) for stranger in strangers)
        assert 1 <= kept <= 8
        assert daemon.client.write(actor, "meanwhile").version == 2


def answers(stranger):
    """Whether the daemon takes a new connection: it greets, or it closes."""
    with contextlib.suppress(ConnectionError):
        stranger.sendall(GREETING)
        return stranger.recv(4_096) != b""
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="only there one process sees another's limits")
def test_a_daemon_may_open_more_files_than_a_shell_gives_it(make_daemon):
    import resource

    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, usual[1]), usual[1]))
    try:
        daemon = make_daemon().start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert psutil.Process(daemon.pid).rlimit(psutil.RLIMIT_NOFILE)[0] == min(8_192, usual[1])


def calls_counted(client):
    """Calls of MemoryService so far."""
    methods = client.system.GetStats(system_pb2.GetStatsRequest()).methods
    return sum(method.count for method in methods if "MemoryService" in method.method)


def test_info_tells_version_contract_capabilities_and_every_limit(client, shared_daemon):
    info = client.system.GetInfo(system_pb2.GetInfoRequest())
    assert (info.version, info.data_dir) == (shared_daemon.handshake["version"], shared_daemon.handshake["data_dir"])
    assert (info.contract_version, info.persistent, info.store_format_version) == ("1.0", True, 1)
    assert list(info.capabilities) == sorted(info.capabilities)
    assert {"memory.documents", "memory.tool"} <= set(info.capabilities)
    limits = {limit.name: limit for limit in info.limits}
    assert (limits["memory.max_versions"].value, limits["memory.max_versions"].origin) == (30, "default")
    assert all(limit.minimum <= limit.value <= limit.maximum and limit.meaning for limit in info.limits)


def test_an_instance_id_tells_a_restart(daemon):
    first = daemon.client.system.GetInfo(system_pb2.GetInfoRequest()).instance_id
    daemon.restart()
    assert daemon.client.system.GetInfo(system_pb2.GetInfoRequest()).instance_id != first


def test_stats_count_calls_and_errors_of_each_method_under_its_full_name(daemon, actor):
    daemon.client.write(actor, "one")
    daemon.client.text(actor)
    failure(lambda: daemon.client.write(actor, ""))
    stats = daemon.client.system.GetStats(system_pb2.GetStatsRequest())
    methods = {method.method: method for method in stats.methods}
    edit = methods[f"/{MEMORY}/EditDocument"]
    assert (edit.count, edit.errors, methods[f"/{MEMORY}/GetDocument"].count) == (2, 1, 1)
    assert 0 < edit.p50_ms <= edit.p99_ms <= edit.max_ms
    assert (stats.running_calls, stats.resident_bytes > 10_000_000, stats.uptime_seconds > 0) == (1, True, True)
    assert stats.cpu_seconds > 0
    assert stats.counts["cached_documents"] == 1


def test_a_watch_of_diagnostics_begins_with_what_is_kept(client):
    watch = client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(after_sequence=0))
    first = next(watch)
    watch.cancel()
    assert (first.diagnostic.code, first.diagnostic.sequence, first.dropped) == ("daemon_started", 1, 0)
    assert first.diagnostic.severity == system_pb2.DIAGNOSTIC_SEVERITY_INFORMATION


def test_a_watch_of_diagnostics_may_ask_for_codes_and_severity_and_ends_with_the_daemon(daemon):
    def watch(**wish):
        return daemon.client.system.WatchDiagnostics(
            system_pb2.WatchDiagnosticsRequest(after_sequence=0, **wish), timeout=20
        )

    stopping = watch(codes=["daemon_stopping"])
    warnings = watch(minimum_severity=system_pb2.DIAGNOSTIC_SEVERITY_WARNING)
    everything = watch()
    next(everything)
    refused = failure(lambda: daemon.client.system.Shutdown(system_pb2.ShutdownRequest(reason="x" * 513)))
    assert refused.fields == ("reason",)
    daemon.client.system.Shutdown(system_pb2.ShutdownRequest(reason="the player quit"))
    told = [(one.diagnostic.code, dict(one.diagnostic.details)) for one in stopping]
    assert told == [("daemon_stopping", {"why": "shutdown_call", "reason": "the player quit"})]
    assert list(warnings) == []
    assert daemon.wait() == 0


def test_more_watchers_than_the_limit_are_refused(start_daemon):
    daemon = start_daemon("--set", "daemon.max_watchers=1")
    request = system_pb2.WatchDiagnosticsRequest(after_sequence=0)
    first = daemon.client.system.WatchDiagnostics(request)
    next(first)
    told = failure(lambda: next(daemon.client.system.WatchDiagnostics(request)))
    assert (*told.kind, told.metadata["limit"]) == ("RESOURCE_EXHAUSTED", "TOO_MANY_CALLS", "daemon.max_watchers")


SECRETS = ("treasure under the oak", "Željko the smuggler", "key-of-the-quest", "slot of the thief")


def test_no_text_token_key_or_id_is_in_any_log_or_name(start_daemon):
    daemon = start_daemon("--set", "daemon.log_level=debug")
    text, name, key, save = SECRETS
    actor = common_pb2.Actor(save_id=save, actor_id=name, role_id="Merchant")
    daemon.client.write(actor, text, idempotency_key=key)
    failure(lambda: daemon.client.write(actor, text + " again", idempotency_key=key))
    failure(lambda: daemon.client.edit(actor, write(text + "\0")))
    daemon.client.call_tool(actor, {"action": "delete", "old_text": text + "?"})
    corrupt = next(daemon.folder.rglob("document.json"))
    token = daemon.token
    daemon.restart()
    corrupt.write_text(f'{{"text": "{text}', encoding="utf-8")
    failure(lambda: daemon.client.text(actor))
    daemon.stop()
    written = daemon.stderr + (daemon.folder / "logs" / "daemon.log").read_text("utf-8")
    names = "\n".join(str(path.relative_to(daemon.folder)) for path in daemon.folder.rglob("*"))
    for secret in (*SECRETS, token, daemon.token):
        assert secret not in written
        assert secret.encode("ascii", "backslashreplace").decode() not in written
        assert secret not in names


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"after_sequence": -1}, "after_sequence"),
        ({"minimum_severity": 99}, "minimum_severity"),
        ({"codes": ["x"] * 257}, "codes"),
    ],
)
def test_a_watch_that_can_tell_nothing_is_refused_by_name(client, wish, field):
    told = failure(lambda: next(client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(**wish))))
    assert (told.code, told.fields) == (grpc.StatusCode.INVALID_ARGUMENT, (field,))


def test_a_watch_with_a_number_of_an_earlier_run_is_told_all_and_holds_nobody_up(client):
    request = system_pb2.WatchDiagnosticsRequest(after_sequence=2**63 - 1)
    watch = client.system.WatchDiagnostics(request, timeout=20)
    assert next(watch).diagnostic.sequence == 1
    assert client.serving()


@pytest.mark.parametrize(
    ("method", "request_", "field"),
    [
        ("Compaction/Compact", compaction_pb2.CompactRequest(strategy=99), "strategy"),
        ("Compaction/CountTokens", compaction_pb2.CountTokensRequest(texts=["x"], counter=99), "counter"),
        ("Save/ListCheckpoints", save_pb2.ListCheckpointsRequest(kind=99), "kind"),
        (
            "Save/PutSaveSettings",
            save_pb2.PutSaveSettingsRequest(settings={"fusion": {"mode": 99}}),
            "settings.fusion.mode",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_that_the_contract_does_not_have_is_refused_by_name(client, method, request_, field):
    service, name = method.split("/")
    path = f"/lorekeeper.v1.{service}Service/{name}"
    told = failure(lambda: client.raw(path, request_.SerializeToString()))
    assert (told.code, told.fields) == (grpc.StatusCode.INVALID_ARGUMENT, (field,))
