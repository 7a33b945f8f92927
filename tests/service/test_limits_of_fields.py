"""What one field refuses, the field beside it refuses too: below 0, blank, and what no id may hold."""

from __future__ import annotations

from typing import Any

import pytest
from chat_client import Chat
from client import failure

from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2, chat_pb2_grpc, common_pb2, memory_pb2, role_pb2, save_pb2

NOW = common_pb2.Moment(timeline_id="main", tick=5)
NOTE = memory_pb2.NewRecord(scope="personal", kind=memory_pb2.RECORD_KIND_EVENT, moment=NOW)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("moment.timeline_id", {"moment": common_pb2.Moment(tick=5)}),
        ("moment.calendar_json", {"moment": common_pb2.Moment(timeline_id="main", calendar_json="{")}),
        ("input_id", {"input_id": "a\nb"}),
        ("input_id", {"input_id": "x" * 513}),
        ("turn", {"turn": -1}),
        ("call_index", {"call_index": -1}),
    ],
)
def test_what_the_game_says_beside_a_tool_call_is_checked_for_every_tool(shared_daemon, actor, field, values):
    request = memory_pb2.CallToolRequest(actor=actor, name="memory", arguments_json='{"action": "read"}', **values)
    assert failure(lambda: shared_daemon.client.memory.CallTool(request)).fields == (field,)


def test_a_turn_below_zero_makes_no_ids(shared_daemon, actor):
    request = memory_pb2.AddRecordsRequest(actor=actor, records=[NOTE], turn=-1)
    assert failure(lambda: shared_daemon.client.memory.AddRecords(request)).fields == ("turn",)


@pytest.mark.parametrize("call", ["DeleteCheckpoint", "RestoreCheckpoint"])
def test_a_blank_checkpoint_is_none(shared_daemon, actor, call):
    request = getattr(save_pb2, f"{call}Request")(save_id=actor.save_id, checkpoint_id="  ")
    refused = failure(lambda: getattr(shared_daemon.client.saves, call)(request))
    assert (refused.reason, refused.fields) == ("FIELD_REQUIRED", ("checkpoint_id",))


def test_notes_of_a_checkpoint_have_names(shared_daemon, actor):
    request = save_pb2.CreateCheckpointRequest(save_id=actor.save_id, metadata={" ": "day 3"})
    assert failure(lambda: shared_daemon.client.saves.CreateCheckpoint(request)).fields == ("metadata",)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("role.backend_id", {"backend_id": "a\nb"}),
        ("role.summary.backend_id", {"summary": role_pb2.SummaryOptions(backend_id="x" * 513)}),
        ("role.max_document_versions", {"max_document_versions": 1_001}),
        ("role.recall.similarity_floor", {"recall": role_pb2.RecallOptions(similarity_floor=1.01)}),
    ],
)
def test_a_role_that_no_turn_could_use_is_refused(shared_daemon, field, values: dict[str, Any]):
    assert failure(lambda: Chat(shared_daemon.client).put_role("Odd", **values)).fields == (field,)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("backend.model", {"model": "x" * 513}),
        ("backend.base_url", {"base_url": "http://127.0.0.1:1/" + "x" * 2_048}),
        ("backend.fallback_backend_id", {"fallback_backend_id": "x" * 513}),
        ("backend.tokenizer_path", {"tokenizer_path": "x" * 4_097}),
        ("backend.headers", {"headers": {"X-Note": "x" * 4_097}}),
    ],
)
def test_texts_of_a_backend_have_bounds(shared_daemon, field, values):
    chat = chat_pb2_grpc.ChatServiceStub(shared_daemon.client.channel)
    whole = {"backend_id": "long", "base_url": "http://127.0.0.1:1/v1", "model": "m", **values}
    request = chat_pb2.PutBackendRequest(backend=backend_pb2.Backend(**whole))
    refused = failure(lambda: chat.PutBackend(request))
    assert (refused.reason, refused.fields) == ("FIELD_TOO_LONG", (field,))


def test_a_bound_is_told_with_all_its_digits(shared_daemon):
    refused = failure(lambda: Chat(shared_daemon.client).put_role("Odd", max_history_messages=0))
    assert refused.message == "role.max_history_messages is not valid: it must be from 1 to 2147483647."


def test_a_role_in_force_may_be_put_as_it_is(shared_daemon):
    chat = Chat(shared_daemon.client)
    effective = chat.role("Merchant").effective
    put = chat.stub.PutRole(chat_pb2.PutRoleRequest(role=effective)).role
    assert put.effective == effective


def test_a_key_for_a_probe_is_checked_whatever_is_probed(shared_daemon):
    request = chat_pb2.ProbeBackendRequest(backend_id="offline", api_key="a\nb")
    chat = chat_pb2_grpc.ChatServiceStub(shared_daemon.client.channel)
    assert failure(lambda: chat.ProbeBackend(request)).fields == ("api_key",)
