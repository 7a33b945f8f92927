"""The HTTP client against a server that plays scripts, over real sockets."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from wire_server import WAIT_SECONDS, Reply, calls, delta, end, error, event, stream, usage, whole

from sidecar.chat.backends.client import BackendClient
from sidecar.chat.backends.failures import BackendFailed, FailureKind
from sidecar.chat.backends.profile import Backend
from sidecar.chat.backends.wire import Answer, Ask, Tokens, WireCall, WireMessage
from sidecar.settings import BackendSettings

ASK = Ask([WireMessage("user", "Hello")])


@pytest.fixture
def backend(server):
    return Backend("scripted", base_url=server.base_url, model="m")


def asked(backend, ask=ASK, *, key="", limits=None):
    """Pieces of text and the end of one answer."""

    async def ask_once():
        client = BackendClient(limits or BackendSettings())
        try:
            return [part async for part in client.answer(backend, ask, key=key)]
        finally:
            await client.close()

    *texts, answer = asyncio.run(ask_once())
    assert isinstance(answer, Answer)
    return texts, answer


def failed(backend, **more):
    with pytest.raises(BackendFailed) as caught:
        asked(backend, **more)
    return caught.value.failure


def test_each_piece_of_text_comes_on_its_own(server, backend):
    server.play(stream("Good ", "day", ".", tokens=usage(9, 3)))
    assert asked(backend) == (
        ["Good ", "day", "."],
        Answer(finish="stop", tokens=Tokens(9, 3), model="scripted", streamed=True),
    )


@pytest.mark.parametrize("size", [1, 2, 7])
def test_text_and_json_may_be_split_at_every_byte(server, backend, size):
    data = delta(content="Grüße 🐉") + delta(content="勇者") + end()
    server.play(Reply([data[at : at + size] for at in range(0, len(data), size)]))
    assert asked(backend)[0] == ["Grüße 🐉", "勇者"]


def test_calls_are_told_at_the_end(server, backend):
    server.play(calls(("give", {"n": 1}), ("open", {}), text="Here."))
    texts, answer = asked(backend)
    assert (texts, answer.calls) == (["Here."], (WireCall("give", '{"n": 1}', "id0"), WireCall("open", "{}", "id1")))


def test_an_answer_that_is_not_streamed_is_one_piece(server, backend):
    message = {"role": "assistant", "content": "Good day."}
    server.play(whole({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage(5, 2)}))
    assert asked(backend) == (["Good day."], Answer(finish="stop", tokens=Tokens(5, 2)))


def test_a_stream_without_done_ends_when_the_answer_is_complete(server, backend):
    closing = event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    server.play(Reply([delta(content="Hi"), closing], hold=True))
    assert asked(backend, limits=BackendSettings(end_grace_ms=50)) == (
        ["Hi"],
        Answer(finish="stop", model="scripted", streamed=True),
    )


def test_a_stream_that_ends_cleanly_without_any_last_word_is_whole(server, backend):
    server.play(Reply([delta(content="Hi")]))
    assert asked(backend)[0] == ["Hi"]


@pytest.mark.parametrize(
    "broken",
    [
        Reply([delta(content="Hi")], hang_up=True),
        Reply([delta(content="Hi")], chunked=False),
        Reply([delta(content="Hi"), b'data: {"choices":[{"del']),
        Reply([]),
        Reply([], hang_up=True),
    ],
)
def test_a_stream_that_breaks_off_is_a_failure(server, backend, broken):
    server.play(broken)
    assert failed(backend).kind is FailureKind.BACKEND_UNAVAILABLE


@pytest.mark.parametrize(
    "told",
    [
        whole({"error": {"message": "Loading model", "code": 503}}),
        Reply([event({"error": {"message": "Loading model", "code": 503}})]),
        Reply(
            [json.dumps({"error": {"message": "Loading model", "code": 503}}).encode()],
            headers={"content-type": "text/plain"},
        ),
        Reply([delta(content="Hi"), b'event: error\ndata: {"error":{"message":"x","code":500}}\n\n']),
    ],
)
def test_an_error_that_comes_with_status_200_is_a_failure(server, backend, told):
    server.play(told)
    assert failed(backend).kind is FailureKind.BACKEND_UNAVAILABLE


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, FailureKind.AUTH_EXPIRED),
        (402, FailureKind.PAYMENT_REQUIRED),
        (413, FailureKind.CONTEXT_LENGTH_EXCEEDED),
        (429, FailureKind.RATE_LIMITED),
        (500, FailureKind.BACKEND_UNAVAILABLE),
        (302, FailureKind.INVALID_REQUEST),
    ],
)
def test_a_status_tells_what_is_wrong(server, backend, status, kind):
    server.play(error(status, {"error": "x"}, retry_after="3", location="http://127.0.0.1:1/"))
    failure = failed(backend)
    assert (failure.kind, failure.http_status) == (kind, status)
    assert len(server.turns) == 1


def test_the_wait_that_a_server_asks_for_is_told(server, backend):
    server.play(error(429, {"error": "slow down"}, retry_after="3"), error(429, {}, retry_after_ms="150"))
    assert [failed(backend).retry_after_ms for _ in range(2)] == [3_000, 150]


def test_a_server_that_is_not_there_is_unavailable(backend):
    assert failed(replace(backend, base_url="http://127.0.0.1:1/v1")).kind is FailureKind.BACKEND_UNAVAILABLE


def test_a_silent_server_is_a_timeout(server, backend):
    server.play(Reply([], hold=True), Reply([delta(content="Hi")], hold=True))
    silent = replace(backend, idle_timeout_ms=50)
    assert [failed(silent).kind for _ in range(2)] == [FailureKind.TIMEOUT] * 2


def test_an_answer_that_is_too_long_is_refused(server, backend):
    server.play(Reply([delta(content="x" * 1_000)] * 100), Reply([b"data: " + b"x" * 70_000]))
    limits = BackendSettings(max_answer_bytes=65_536, max_event_bytes=65_536)
    assert [failed(backend, limits=limits).kind for _ in range(2)] == [FailureKind.PROVIDER_ERROR] * 2


def test_who_stops_reading_ends_the_request(server, backend):
    server.play(stream("Hi", server.gate(), "never"))

    async def read_one():
        client = BackendClient(BackendSettings())
        answer = client.answer(backend, ASK)
        assert await anext(answer) == "Hi"
        await answer.aclose()
        await client.close()

    asyncio.run(read_one())
    assert server.turns[0].gone.wait(WAIT_SECONDS)


def test_the_key_goes_in_the_header_that_the_profile_names(server, backend):
    asked(backend, key="k1")
    asked(replace(backend, api_key_header="x-key", headers={"x-title": "Game"}), key="k2")
    first, second = (request.headers for request in server.turns)
    assert (first["authorization"], second["x-key"], second["x-title"]) == ("Bearer k1", "k2", "Game")
    assert "authorization" not in second


def test_proxies_of_the_environment_are_not_used_for_this_machine(server, backend, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert asked(backend)[0] == ["You said: Hello"]


def test_the_body_holds_what_was_asked_and_the_profile_fills_the_rest(server, backend):
    profile = replace(
        backend, temperature=0.5, max_output_tokens=99, extra_body_json='{"top_k": 3, "stream_options": null}'
    )
    asked(profile, Ask([WireMessage("user", "Hi")], model="other", temperature=0.1))
    asked(profile)
    first, second = (request.body for request in server.turns)
    assert first == {
        "model": "other",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "temperature": 0.1,
        "max_tokens": 99,
        "top_k": 3,
    }
    assert (second["model"], second["temperature"]) == ("m", 0.5)
