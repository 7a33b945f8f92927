"""What a game does first with the program that it ships; run again wherever such a program may lie."""

from __future__ import annotations

import psutil
from client import failure
from daemon_process import DaemonProcess

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, search_pb2, search_pb2_grpc


def test_what_was_remembered_is_there_after_a_restart(daemon: DaemonProcess, actor: common_pb2.Actor):
    daemon.client.append(actor, "Ada likes saffron.")
    daemon.restart()
    assert daemon.client.text(actor) == "Ada likes saffron."


def test_the_tool_is_offered_and_answers(daemon: DaemonProcess, actor: common_pb2.Actor):
    tools = daemon.client.memory.ListTools(memory_pb2.ListToolsRequest(actor=actor)).tools
    assert "memory" in [tool.name for tool in tools]
    assert daemon.client.call_tool(actor, {"action": "append", "content": "猫は門にいる"})["Success"]


def test_what_happened_is_found(daemon: DaemonProcess, actor: common_pb2.Actor):
    moment = common_pb2.Moment(timeline_id="world", tick=1)
    record = memory_pb2.NewRecord(
        scope="personal", kind=memory_pb2.RECORD_KIND_EVENT, payload_json="{}", searchable_text="A wolf", moment=moment
    )
    daemon.client.memory.AddRecords(memory_pb2.AddRecordsRequest(actor=actor, records=[record]))
    search = search_pb2_grpc.SearchServiceStub(daemon.client.channel)
    (hit,) = search.Search(search_pb2.SearchRequest(actor=actor, text="wolves")).hits
    assert hit.record.searchable_text == "A wolf"


def test_what_is_wrong_is_said_with_a_reason(daemon: DaemonProcess, actor: common_pb2.Actor):
    refused = failure(lambda: daemon.client.edit(actor))
    assert refused.kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")


def test_the_daemon_is_one_process(daemon: DaemonProcess, actor: common_pb2.Actor):
    daemon.client.append(actor, "A line.")
    process = psutil.Process(daemon.pid)
    assert process.pid == daemon.handshake["pid"]
    assert process.children(recursive=True) == []


def test_it_ends_with_the_game(daemon: DaemonProcess):
    assert daemon.stop() == 0
    assert not daemon.left_over()
