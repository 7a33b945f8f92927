"""Backends over the socket: put, listed, probed, and never a key told."""

from __future__ import annotations

from typing import Any

import pytest
from client import failure
from turn_client import BACKEND, TurnClient
from wire_server import Reply, WireServer, calls, delta, end, error, stream, usage, whole

from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2


@pytest.fixture
def game(daemon: Any, actor: Any) -> TurnClient:
    return TurnClient(daemon.client, actor)


def probe(game: TurnClient, server: WireServer | None = None, **values: Any) -> chat_pb2.ProbeBackendResponse:
    asked = {name: values.pop(name) for name in ("try_model", "timeout_ms", "api_key") if name in values}
    backend = backend_pb2.Backend(**{"base_url": server.base_url if server else "", **values})
    return game.stub.ProbeBackend(chat_pb2.ProbeBackendRequest(backend=backend, **asked))


def problems(found: chat_pb2.ProbeBackendResponse) -> list[str]:
    prefix = "BACKEND_PROBLEM_CODE_"
    return [backend_pb2.BackendProblemCode.Name(each.code).removeprefix(prefix) for each in found.problems]


def test_a_backend_is_put_listed_and_deleted(game):
    game.put_backend("b", base_url="http://127.0.0.1:1/v1", roles=["Guard*"])
    put = game.put_backend("a", base_url="http://127.0.0.1:2/v1/", context_tokens=4_096)
    assert (put.backend.base_url, put.context_tokens, put.key_present) == ("http://127.0.0.1:2/v1", 4_096, False)
    first = game.stub.ListBackends(chat_pb2.ListBackendsRequest(page_size=1))
    second = game.stub.ListBackends(chat_pb2.ListBackendsRequest(page_size=1, page_token=first.next_page_token))
    assert [page.backends[0].backend.backend_id for page in (first, second)] == ["a", "b"]
    assert second.next_page_token == ""
    deleted = [game.stub.DeleteBackend(chat_pb2.DeleteBackendRequest(backend_id="a")).existed for _ in range(2)]
    assert deleted == [True, False]


def test_a_field_that_is_wrong_is_named_with_its_path(game):
    failed = failure(lambda: game.put_backend("a", base_url="https://api.example.com/v1"))
    assert (failed.kind, failed.fields) == (("INVALID_ARGUMENT", "ADDRESS_NOT_ALLOWED"), ("backend.base_url",))


def test_backends_are_there_after_a_restart(game, daemon, actor):
    game.put_backend("a", base_url="http://127.0.0.1:1/v1", roles=["*"])
    listed = TurnClient(daemon.restart().client, actor).stub.ListBackends(chat_pb2.ListBackendsRequest())
    assert [each.backend.backend_id for each in listed.backends] == ["a"]


@pytest.mark.parametrize("content", ["", "{}", '{"backends": [1]}'])
def test_stored_backends_that_cannot_be_read_are_told_and_stop_nothing_else(game, daemon, actor, content):
    game.put_role()
    game.append(("user", "Hello"))
    assert daemon.stop() == 0
    file = daemon.folder / "backends.json"
    file.write_text(content)
    again = TurnClient(daemon.start().client, actor)
    for call in (lambda: again.put_backend(base_url="http://127.0.0.1:1/v1"), lambda: list(again.start("Hi"))):
        assert failure(call).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert (again.messages(), file.read_text()) == ([("user", "Hello"), ("user", "Hi")], content)


def test_the_key_of_an_environment_variable_is_used_and_nowhere_told(start_daemon, actor, server):
    daemon = start_daemon(environment={"SCRIPTED_KEY": "secret-key-1"})
    game = TurnClient(daemon.client, actor)
    info = game.put_backend(base_url=server.base_url, api_key_env="SCRIPTED_KEY")
    server.play(error(401, {"error": {"message": "bad key secret-key-1"}}), stream("Hi"))
    failed, worked = game.send("Hello"), game.send("Hello", api_key="secret-key-2")
    assert [request.headers["authorization"] for request in server.turns] == [
        "Bearer secret-key-1",
        "Bearer secret-key-2",
    ]
    assert info.key_present
    assert worked.completed.text == "Hi"
    daemon.stop()
    stored = b"".join(path.read_bytes() for path in daemon.folder.rglob("*") if path.is_file())
    told = str(failed.failed) + str(info) + daemon.stderr + stored.decode("utf-8", "replace")
    assert "secret-key" not in told


def test_a_key_of_an_environment_variable_that_no_request_can_carry_is_told(start_daemon, actor, server):
    game = TurnClient(start_daemon(environment={"SCRIPTED_KEY": "clé-1"}).client, actor)
    game.put_backend(base_url=server.base_url, api_key_env="SCRIPTED_KEY")
    turn = game.send("Hello")
    assert (turn.code, "clé" in str(turn.failed)) == ("AUTH_EXPIRED", False)
    assert "environment variable" in str(turn.failed)
    assert server.turns == []


def test_the_end_of_a_line_after_a_key_is_no_part_of_it(start_daemon, actor, server):
    game = TurnClient(start_daemon(environment={"SCRIPTED_KEY": "key-1\n"}).client, actor)
    game.put_backend(base_url=server.base_url, api_key_env="SCRIPTED_KEY")
    server.play(stream("Hi"))
    assert game.send("Hello").completed.text == "Hi"
    assert server.turns[0].headers["authorization"] == "Bearer key-1"


def test_a_role_talks_to_the_backend_that_the_routes_name(game, server, actor):
    with WireServer() as other:
        game.put_backend("any", base_url=other.base_url, roles=["*"])
        game.put_backend("mine", base_url=server.base_url, roles=[game.actor.role_id])
        assert game.send("Hello", backend_id="").started.backend_id == "mine"
        assert (len(server.turns), len(other.turns)) == (1, 0)


def test_the_window_is_what_the_server_tells(game, server):
    server.models = whole({"data": [{"id": "scripted", "owned_by": "vllm", "max_model_len": 1_234}]})
    game.put_backend(base_url=server.base_url, context_tokens=0)
    game.send("Hello")
    info = game.stub.ListBackends(chat_pb2.ListBackendsRequest()).backends[0]
    assert info.context_tokens == 1_234


def test_a_summary_is_written_by_the_backend_of_the_compaction_routes(game, server):
    with WireServer() as small:
        small.standing = stream("- Ada came.")
        game.put_backend(base_url=server.base_url)
        game.put_backend("small", base_url=small.base_url, compaction_roles=["*"])
        game.put_role(max_history_messages=2, summary={"background": False})
        for number in range(3):
            game.send(f"Line {number}")
        asked = small.turns[0].body
        assert (asked["temperature"], asked["max_tokens"], "tools" in asked) == (0.15, 512, False)
        assert "Line 0" in small.turns[0].said
        assert "- Ada came." in server.turns[-1].said


def test_history_is_folded_beside_the_next_turns_where_the_role_says_so(game, server):
    game.put_backend(base_url=server.base_url)
    game.put_role(max_history_messages=2)
    done = [game.send(f"Line {number}").completed.compaction_pending for number in range(3)]
    assert done == [False, False, True]


MODELS = {
    "llama.cpp": (
        {"data": [{"id": "m.gguf", "owned_by": "llamacpp"}]},
        ("/props", {"default_generation_settings": {"n_ctx": 4_096}}),
    ),
    "LM Studio": (
        {"data": [{"id": "m.gguf", "owned_by": "organization_owner"}]},
        ("/api/v0/models", {"data": [{"id": "m.gguf", "max_context_length": 9_999, "loaded_context_length": 4_096}]}),
    ),
    "Ollama": (
        {"data": [{"id": "m.gguf", "owned_by": "library"}]},
        ("/api/ps", {"models": [{"name": "m.gguf", "model": "m.gguf", "context_length": 4_096}]}),
    ),
    "vLLM": ({"data": [{"id": "m.gguf", "owned_by": "vllm", "max_model_len": 4_096}]}, ("/x", {})),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_probe_knows_the_usual_servers_and_their_windows(game, server, name):
    listing, (path, details) = MODELS[name]
    server.models, server.routes = whole(listing), {path: whole(details)}
    found = probe(game, server)
    assert (found.reachable, found.server, found.model, found.context_tokens) == (True, name, "m.gguf", 4_096)
    assert problems(found) == (["SILENT_TRUNCATION"] if name == "Ollama" else [])


def test_a_probe_tries_words_tools_and_schemas(game, server):
    server.play(stream("Hello.", tokens=usage(9, 2)), calls(("open_gate", {"gate": "north"})), stream('{"open": true}'))
    found = probe(game, server, try_model=True, context_tokens=8_192)
    assert (found.streaming, found.usage, found.native_tools, found.json_schema) == (True, True, True, True)
    assert problems(found) == []


def test_a_probe_says_what_a_weak_server_cannot_do(game, server):
    message = {"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}
    server.play(whole(message), error(400, {"error": {"message": "m does not support tools"}}), stream("It is open."))
    found = probe(game, server, try_model=True)
    assert (found.streaming, found.usage, found.native_tools, found.json_schema) == (False, False, False, False)
    assert problems(found) == ["WINDOW_UNKNOWN", "NO_STREAMING", "NO_NATIVE_TOOLS", "NO_JSON_SCHEMA"]
    assert all(each.message and each.advice for each in found.problems)


@pytest.mark.parametrize(
    ("models", "values", "expected"),
    [
        (error(401, {"error": "no"}), {}, ["UNAUTHORIZED"]),
        (whole({"hello": "world"}), {}, ["NOT_A_MODEL_SERVER"]),
        (Reply([b"<html>"], headers={"content-type": "text/html"}), {}, ["NOT_A_MODEL_SERVER"]),
        (error(404, {"error": "x"}), {}, ["NOT_A_MODEL_SERVER"]),
        (error(500, {"error": "x"}), {}, ["SERVER_ERROR"]),
        (whole({"data": [{"id": "other"}]}), {"model": "mine"}, ["MODEL_NOT_FOUND"]),
        (whole({"data": []}), {}, ["MODEL_NOT_FOUND"]),
        (Reply([], hold=True), {"timeout_ms": 200}, ["TIMEOUT"]),
        (whole({"data": [{"id": "m", "max_model_len": 512}]}), {}, ["WINDOW_SMALL"]),
    ],
)
def test_a_probe_says_what_is_wrong(game, server, models, values, expected):
    server.models = models
    assert problems(probe(game, server, **values)) == expected


@pytest.mark.parametrize("status", [404, 405])
def test_a_probe_of_a_server_without_a_list_of_models_asks_it_for_words(game, server, status):
    server.models = error(status, {"error": "x"})
    found = probe(game, server, model="mine", context_tokens=8_192)
    assert (found.reachable, found.model, problems(found)) == (True, "mine", [])
    server.play(error(404, {"error": "x"}))
    assert problems(probe(game, server, model="mine")) == ["NOT_A_MODEL_SERVER"]


def test_a_probe_of_nothing_says_so(game):
    found = probe(game, base_url="http://127.0.0.1:1/v1")
    assert (found.reachable, problems(found)) == (False, ["UNREACHABLE"])


def test_a_probe_goes_to_no_other_machine_unasked(game):
    assert problems(probe(game, base_url="http://203.0.113.1/v1")) == ["ADDRESS_NOT_ALLOWED"]


def test_a_backend_that_was_put_is_probed_by_its_id(game, server):
    game.put_backend(base_url=server.base_url)
    request = chat_pb2.ProbeBackendRequest(backend_id=BACKEND)
    assert game.stub.ProbeBackend(request).model == "scripted"
    failed = failure(lambda: game.stub.ProbeBackend(chat_pb2.ProbeBackendRequest(backend_id="nowhere")))
    assert failed.kind == ("NOT_FOUND", "BACKEND_NOT_FOUND")


def test_offline_needs_no_server(game):
    found = game.stub.ProbeBackend(chat_pb2.ProbeBackendRequest(backend_id="offline"))
    assert (found.reachable, found.server, problems(found)) == (True, "offline", [])


def test_a_stream_of_another_server_gives_the_same_events(game, server):
    """Ollama sends whole calls in one piece, with an index of 0 for each and the arguments in one text."""
    game.put_backend(base_url=server.base_url)
    pieces = [
        delta(
            role="assistant",
            content="",
            tool_calls=[
                {
                    "id": f"call_{n}",
                    "index": 0,
                    "type": "function",
                    "function": {"name": "memory", "arguments": '{"action":"read"}'},
                }
            ],
        )
        for n in range(2)
    ]
    server.play(Reply([*pieces, end("stop")]), stream("Read."))
    turn = game.send("Read twice.")
    assert (len(turn.all("tool_call")), turn.completed.text) == (2, "Read.")
