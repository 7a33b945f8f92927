"""An unforeseen failure: an id for the client, the place in the code for the log, none of its text."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys

import grpc
import pytest

from sidecar.daemon.calls import Edge
from sidecar.daemon.logs import LogWriter
from sidecar.daemon.save_door import SaveDoor
from sidecar.daemon.stats import CallStats
from sidecar.errors import Corrupt, Reason
from sidecar.gen.lorekeeper.v1 import system_pb2, system_pb2_grpc
from sidecar.storage.save_gate import SaveGate

SECRET = "the treasure is under the oak"
SERVICE = "lorekeeper.v1.SystemService"


class Failing:
    """A servicer with a fault in it."""

    async def GetInfo(self, request, context):
        raise RuntimeError(SECRET)

    async def WatchDiagnostics(self, request, context):
        yield system_pb2.WatchDiagnosticsResponse()
        raise RuntimeError(SECRET)


def asked(call, stats, servicers=lambda: [Failing()]):
    """Serve :class:`Failing`, or what ``servicers`` makes, and ``await call(stub)``."""

    async def whole():
        server = grpc.aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        door = SaveDoor(SaveGate(), seconds=1)
        edge = Edge(token="t", stats=stats, services={SERVICE: servicers}, door=door)
        server.add_generic_rpc_handlers((edge,))
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.enable_http_proxy", 0)]) as channel:
                return await call(system_pb2_grpc.SystemServiceStub(channel))
        finally:
            await server.stop(None)

    return asyncio.run(whole())


async def get_info(stub):
    return await stub.GetInfo(system_pb2.GetInfoRequest(), metadata=(("authorization", "Bearer t"),))


async def watch(stub):
    stream = stub.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(), metadata=(("authorization", "Bearer t"),))
    return [response async for response in stream]


@pytest.fixture
def log(tmp_path):
    """The daemon's log, and what stands in it once it is closed."""
    file = tmp_path / "daemon.log"
    writer = LogWriter(level="info", file=file, max_bytes=10_000, files=2)
    yield lambda: (writer.close(), [json.loads(line) for line in file.read_text("utf-8").splitlines()])[1]
    writer.close()
    logging.getLogger("lorekeeper").handlers.clear()


@pytest.mark.parametrize("call", [get_info, watch])
def test_an_unknown_failure_is_internal_with_an_id_that_the_log_repeats_and_without_its_text(log, call, capsys):
    stats = CallStats()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        asked(call, stats)
    error = caught.value
    (line,) = log()
    assert error.code() == grpc.StatusCode.INTERNAL
    assert line["incident"] in error.details()
    assert line["failure"]["kind"] == "RuntimeError"
    assert "test_edge.py" in line["failure"]["at"][-1]
    assert SECRET not in json.dumps(line) + error.details() + str(error.trailing_metadata())
    assert SECRET not in "".join(capsys.readouterr())
    assert [counted.errors for counted in stats.methods().values()] == [1]


@pytest.mark.parametrize("call", [get_info, watch])
def test_a_service_that_cannot_be_opened_says_why_and_is_opened_by_a_later_call(call):
    opened = []

    class Working:
        async def GetInfo(self, request, context):
            return system_pb2.GetInfoResponse()

        async def WatchDiagnostics(self, request, context):
            yield system_pb2.WatchDiagnosticsResponse()

    def servicers():
        opened.append(1)
        if len(opened) == 1:
            raise Corrupt("a file cannot be read", reason=Reason.STORAGE_CORRUPT)
        return [Working()]

    async def twice(stub):
        with pytest.raises(grpc.RpcError) as refused:
            await call(stub)
        return refused.value.code(), await call(stub)

    code, answer = asked(twice, CallStats(), servicers)
    assert code is grpc.StatusCode.DATA_LOSS
    assert answer in (system_pb2.GetInfoResponse(), [system_pb2.WatchDiagnosticsResponse()])


def test_a_log_is_rotated_and_keeps_its_number_of_files(tmp_path):
    writer = LogWriter(level="info", file=tmp_path / "daemon.log", max_bytes=1_000, files=2)
    for number in range(100):
        logging.getLogger("lorekeeper").info("line %s", number)
    writer.close()
    logging.getLogger("lorekeeper").handlers.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["daemon.log", "daemon.log.1", "daemon.log.2"]
    assert "line 99" in (tmp_path / "daemon.log").read_text("utf-8")


# Writes more log lines than a pipe holds, ends the log, and ends.
TALKATIVE = """
import logging, sys
from pathlib import Path
import subprocess
import sys
from sidecar.daemon.logs import LogWriter
writer = LogWriter(level="info", file=Path(sys.argv[1]), max_bytes=1_000_000, files=1)
for number in range(900):
    logging.getLogger("lorekeeper").info("x" * 200)
writer.close(seconds=0.2)
"""


def test_a_client_that_never_reads_standard_error_keeps_no_line_from_the_file_and_the_daemon_from_no_end(tmp_path):
    file = tmp_path / "daemon.log"
    with subprocess.Popen([sys.executable, "-c", TALKATIVE, str(file)], stderr=subprocess.PIPE) as process:
        try:
            assert process.wait(20) == 0
        finally:
            process.kill()
    assert len(file.read_text("utf-8").splitlines()) == 900
