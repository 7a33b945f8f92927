"""The status of a failed call travels in HTTP/2 headers, of which a client takes 8 KB by default: it is never larger,
or the client hears of the headers and not of the failure."""

from __future__ import annotations

import json

import pytest
from client import failure
from turn_client import TurnClient
from wire_server import stream

from sidecar.gen.lorekeeper.v1 import chat_pb2, memory_pb2

LONGEST_ID = "\U0001f600" * 512
SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


def test_an_error_that_repeats_the_longest_id_arrives(shared_daemon, actor):
    chat = TurnClient(shared_daemon.client, actor).stub
    refused = failure(
        lambda: list(chat.Send(chat_pb2.SendRequest(actor=actor, input={"text": "Hi", "backend_id": LONGEST_ID})))
    )
    assert (refused.kind, refused.fields) == (("NOT_FOUND", "BACKEND_NOT_FOUND"), ("backend_id",))


@pytest.mark.parametrize("said", ["words " * 5_000, "\U0001f600" * 5_000])
def test_an_answer_that_breaks_its_schema_arrives_however_long_it_is(shared_daemon, actor, server, said):
    game = TurnClient(shared_daemon.client, actor, server)
    server.play(stream(said), stream(said))
    turn = game.send("Hi", response_schema_json=SCHEMA)
    assert turn.code == "ANSWER_INVALID"
    assert turn.failed.raw_text[:100] == said[:100]
    assert turn.failed.schema_errors


def test_an_edit_that_finds_only_long_lines_arrives(shared_daemon, actor):
    client = shared_daemon.client
    client.write(actor, "\n".join("\U0001f600" * 400 + str(n) for n in range(3)))
    edit = memory_pb2.Edit(delete=memory_pb2.Delete(old_text="\U0001f600" * 399 + "x"))
    refused = failure(lambda: client.edit(actor, edit))
    assert refused.kind == ("NOT_FOUND", "NOT_FOUND")
    assert refused.edit
