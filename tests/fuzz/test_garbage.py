"""Garbage of every kind: the daemon answers or refuses it, and never fails by it."""

from __future__ import annotations

import json

import grpc
from client import MEMORY
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2
from sidecar.storage.keys import actor_folder, actor_id

ACTOR = common_pb2.Actor(actor_id="fuzz")
FEW = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
ALLOWED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}

TEXT = st.one_of(st.text(max_size=30), st.sampled_from(["a", "a: b", "\n", "\0", "\x85", "😀", "a\r\nb"]))
# What a message can carry: no lone surrogates.
WIRE_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)
ACTIONS = ["read", "write", "append", "clear", "str_replace", "insert", "delete", "rename", " Insert ", "store", ""]
CALL = st.fixed_dictionaries(
    {"action": st.one_of(st.sampled_from(ACTIONS), JSON)},
    optional={
        **dict.fromkeys(["content", "old_text", "new_text", "anchor"], st.one_of(TEXT, JSON)),
        "line": st.one_of(st.integers(), JSON, st.sampled_from(["--1", "9" * 5_000, 1e308, -1e308])),
        "replace_all": st.one_of(st.booleans(), JSON),
        "unknown": JSON,
    },
)
ARGUMENTS = st.one_of(
    CALL.map(json.dumps),
    CALL.map(lambda call: json.dumps(call)[:-2]),
    JSON.map(json.dumps),
    WIRE_TEXT,
    st.sampled_from(["[" * 20_000, '{"action":' * 9_000, '{"action":"insert","line":' + "9" * 5_000 + "}"]),
)


def told(call):
    """The status of a call."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@FEW
@given(arguments=ARGUMENTS, key=st.sampled_from(["", "", "k"]), name=st.one_of(st.just("memory"), WIRE_TEXT))
def test_the_tool_answers_whatever_a_model_writes(client, arguments, key, name):
    request = memory_pb2.CallToolRequest(actor=ACTOR, name=name, arguments_json=arguments, idempotency_key=key)
    status = told(lambda: client.memory.CallTool(request))
    assert status in {grpc.StatusCode.OK, grpc.StatusCode.ALREADY_EXISTS}


@FEW
@given(arguments=CALL)
def test_an_answer_of_the_tool_is_json_with_the_six_keys(client, arguments):
    request = memory_pb2.CallToolRequest(actor=ACTOR, name="memory", arguments_json=json.dumps(arguments))
    answer = client.memory.CallTool(request)
    payload = json.loads(answer.result_json)
    assert {"Success", "Message", "Error", "Version", "MemoryLength", "Memory"} <= set(payload)
    assert payload["Success"] is answer.succeeded is not bool(payload["Error"])


INT32 = st.integers(-(2**31), 2**31 - 1)
EDIT = st.one_of(
    st.builds(lambda c: memory_pb2.Edit(write=memory_pb2.Write(content=c)), WIRE_TEXT),
    st.builds(lambda c: memory_pb2.Edit(append=memory_pb2.Append(content=c)), WIRE_TEXT),
    st.builds(lambda c, n: memory_pb2.Edit(insert=memory_pb2.Insert(content=c, line=n)), WIRE_TEXT, INT32),
    st.builds(lambda c, a: memory_pb2.Edit(insert=memory_pb2.Insert(content=c, anchor=a)), WIRE_TEXT, WIRE_TEXT),
    st.builds(
        lambda o, n, r: memory_pb2.Edit(str_replace=memory_pb2.StrReplace(old_text=o, new_text=n, replace_all=r)),
        WIRE_TEXT,
        WIRE_TEXT,
        st.booleans(),
    ),
    st.builds(lambda o: memory_pb2.Edit(delete=memory_pb2.Delete(old_text=o)), WIRE_TEXT),
    st.builds(lambda o, n: memory_pb2.Edit(rename=memory_pb2.Rename(old_label=o, new_label=n)), WIRE_TEXT, WIRE_TEXT),
    st.sampled_from([memory_pb2.Edit(), memory_pb2.Edit(clear=memory_pb2.Clear())]),
)
ADDRESS = st.builds(
    common_pb2.Actor,
    **dict.fromkeys(["save_id", "actor_id", "role_id", "player_id", "topic_id", "tenant_id"], WIRE_TEXT),
)


@FEW
@given(
    actor=st.one_of(st.just(ACTOR), ADDRESS),
    edits=st.lists(EDIT, max_size=4),
    expected=st.one_of(st.none(), INT32),
    key=WIRE_TEXT,
)
def test_any_batch_of_edits_is_answered_or_refused(client, actor, edits, expected, key):
    more = {} if expected is None else {"expected_version": expected}
    assert told(lambda: client.edit(actor, *edits, idempotency_key=key, **more)) in ALLOWED


@FEW
@given(actor=ADDRESS, version=INT32, size=INT32, token=WIRE_TEXT)
def test_any_other_request_about_documents_is_answered_or_refused(client, actor, version, size, token):
    memory = client.memory
    for call in (
        lambda: memory.GetDocument(memory_pb2.GetDocumentRequest(actor=actor, version=version)),
        lambda: memory.RevertDocument(memory_pb2.RevertDocumentRequest(actor=actor, version=version)),
        lambda: memory.ResetDocument(memory_pb2.ResetDocumentRequest(actor=actor, expected_version=version)),
        lambda: client.versions(actor, page_size=size, page_token=token),
        lambda: memory.ListActors(
            memory_pb2.ListActorsRequest(save_id=actor.save_id, page_size=size, page_token=token)
        ),
        lambda: memory.EraseActor(memory_pb2.EraseActorRequest(actor=actor, idempotency_key=token)),
    ):
        assert told(call) in ALLOWED


@FEW
@given(data=st.binary(max_size=60), method=st.sampled_from(["EditDocument", "CallTool", "GetDocument", "AddRecords"]))
def test_any_bytes_are_answered_or_refused(client, data, method):
    assert told(lambda: client.raw(f"/{MEMORY}/{method}", data)) in {*ALLOWED, grpc.StatusCode.UNIMPLEMENTED}


VERSION = st.fixed_dictionaries(
    {"version": st.one_of(st.integers(-1, 2**40), JSON), "saved_at": st.one_of(st.integers(-1, 2**70), JSON)},
    optional=dict.fromkeys(["action", "note", "content"], st.one_of(TEXT, JSON)),
)
STORED = st.one_of(
    st.binary(max_size=40),
    st.one_of(
        JSON,
        st.fixed_dictionaries(
            {"exists": st.booleans(), "text": TEXT, "versions": st.lists(VERSION, max_size=2), "answers": JSON}
        ),
        st.fixed_dictionaries({"exists": JSON, "text": JSON, "versions": JSON, "answers": st.lists(JSON, max_size=2)}),
    ).map(lambda value: json.dumps(value).encode()),
)


@FEW
@given(stored=STORED)
def test_whatever_stands_in_a_documents_file_is_read_or_data_loss_and_stays(shared_daemon, stored):
    client, damaged = shared_daemon.client, common_pb2.Actor(actor_id="damaged")
    client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=damaged))
    file = actor_folder(shared_daemon.folder, actor_id(actor="damaged")) / "document.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(stored)
    for call in (client.read, client.versions, client.text):
        assert told(lambda call=call: call(damaged)) in {grpc.StatusCode.OK, grpc.StatusCode.DATA_LOSS}
    assert file.read_bytes() == stored
