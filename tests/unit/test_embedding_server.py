"""An OpenAI-compatible server as the source of vectors: addresses, order, and every way to answer wrongly."""

import asyncio
import gzip
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from embedding_server import answer, embedding_server, vectors, well

from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.engine import EmbeddingEngine
from sidecar.embedding.identity import EmbeddingKind
from sidecar.embedding.openai_provider import connect
from sidecar.embedding.openai_wire import endpoint, requests
from sidecar.errors import InvalidInput, LorekeeperError, NotReady, Reason
from sidecar.settings import EmbeddingSettings

QUERY, DOCUMENT = EmbeddingKind.QUERY, EmbeddingKind.DOCUMENT
LOCAL = {"allow_remote": False, "allow_plain_remote": False}


@pytest.fixture
def server():
    with embedding_server() as running:
        yield running


def settings_for(server, **changes):
    base = EmbeddingSettings(model="openai", openai_url=server.address, openai_model="nomic", openai_timeout_seconds=5)
    return replace(base, **changes)


def scene(server, tmp_path, play, **changes):
    async def run():
        settings = settings_for(server, **changes)
        engine = EmbeddingEngine(settings, Catalogue(tmp_path, settings))
        why = await engine.start()
        assert why is None, why
        try:
            return await play(engine)
        finally:
            await engine.close()

    return asyncio.run(run())


def rows(asked, **changes):
    return [{"index": index, "embedding": vector, **changes} for index, vector in enumerate(vectors(asked.texts))]


def unit(text):
    return np.array([len(text), 1.0]) / math.hypot(len(text), 1.0)


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/embeddings"),
        ("http://localhost:1234/", "http://localhost:1234/v1/embeddings"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1/embeddings"),
        ("http://127.0.0.1:8080/api/v1/embeddings", "http://127.0.0.1:8080/api/v1/embeddings"),
    ],
)
def test_an_address_is_completed(given, full):
    assert endpoint(given, **LOCAL) == full


@pytest.mark.parametrize(
    "address",
    [
        "", "ftp://127.0.0.1", "http://", "http://user:key@127.0.0.1", "http://127.0.0.1/?key=1",
        "http://example.org", "https://example.org", "http://localhost.example.org", "http://10.0.0.1", "http://0.0.0.0",
    ],
)  # fmt: skip
def test_an_address_that_is_not_on_this_machine_is_refused(address):
    with pytest.raises(InvalidInput) as refused:
        endpoint(address, **LOCAL)
    assert refused.value.reason is Reason.EMBEDDING_CONFIGURATION
    assert "key" not in refused.value.message.replace("openai_key_env", "").replace("a key", "")


def test_a_remote_server_needs_to_be_allowed_and_without_tls_twice():
    assert endpoint("https://example.org", allow_remote=True, allow_plain_remote=False)
    with pytest.raises(InvalidInput):
        endpoint("http://example.org", allow_remote=True, allow_plain_remote=False)
    assert endpoint("http://example.org", allow_remote=True, allow_plain_remote=True)


def test_texts_are_spread_over_requests_within_both_bounds():
    groups = requests(["猫" * 10] * 7, model="m", max_texts=3, max_bytes=120)
    assert sum(map(len, groups)) == 7
    assert all(len(group) <= 3 for group in groups)
    assert len(groups) > 3


def test_a_text_too_large_for_any_request_is_refused():
    with pytest.raises(InvalidInput) as refused:
        requests(["cat", "x" * 2_000], model="m", max_texts=3, max_bytes=1_024)
    assert (refused.value.reason, refused.value.field) == (Reason.FIELD_TOO_LONG, "texts[1]")


def test_vectors_come_back_as_unit_vectors_in_the_order_of_the_texts(server, tmp_path):
    texts = ["guard" * n for n in range(1, 6)]
    got = scene(server, tmp_path, lambda engine: engine.embed(DOCUMENT, texts))
    assert np.allclose(got.vectors, [unit(text) for text in texts], atol=1e-6)
    assert str(got.identity) == "openai-compatible/nomic@1+l2-v1:2"


def test_an_answer_in_another_order_is_put_right_by_its_indexes(server, tmp_path):
    async def play(engine):
        server.replies.append(lambda asked, handler: answer(handler, {"data": rows(asked)[::-1]}))
        return await engine.embed(DOCUMENT, ["a", "bb", "ccc"])

    got = scene(server, tmp_path, play)
    assert np.allclose(got.vectors, [unit(text) for text in ("a", "bb", "ccc")], atol=1e-6)


def test_prefixes_and_the_key_are_sent_and_part_of_the_identity(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TINY_KEY", "s3cret")
    prefixes = {"openai_query_prefix": "query: ", "openai_document_prefix": "passage: ", "openai_key_env": "TINY_KEY"}

    async def play(engine):
        await engine.embed(QUERY, ["cat"])
        return await engine.embed(DOCUMENT, ["cat"])

    got = scene(server, tmp_path, play, **prefixes)
    assert [asked.texts for asked in server.asked[1:]] == [["query: cat"], ["passage: cat"]]
    assert server.asked[-1].headers["authorization"] == "Bearer s3cret"
    assert server.asked[-1].headers["accept-encoding"] == "identity"
    assert got.identity.version != "1+l2-v1"


def test_the_end_of_a_line_after_a_key_is_no_part_of_it(server, tmp_path, monkeypatch):
    monkeypatch.setenv("TINY_KEY", "s3cret\n")
    scene(server, tmp_path, lambda engine: engine.embed(QUERY, ["cat"]), openai_key_env="TINY_KEY")
    assert server.asked[-1].headers["authorization"] == "Bearer s3cret"


def test_a_key_that_no_request_can_carry_is_told_by_its_variable_alone(server, monkeypatch):
    monkeypatch.setenv("TINY_KEY", "clé")
    with pytest.raises(NotReady) as refused:
        asyncio.run(connect(settings_for(server, openai_key_env="TINY_KEY")))
    assert server.asked == []
    told = refused.value.message
    assert (refused.value.reason, "TINY_KEY" in told, "clé" in told) == (Reason.EMBEDDING_CONFIGURATION, True, False)


def redirect(_asked, handler):
    handler.send_response(307)
    handler.send_header("location", "http://127.0.0.1:1/v1/embeddings")
    handler.send_header("content-length", "0")
    handler.end_headers()


def packed(asked, handler):
    body = gzip.compress(json.dumps({"data": rows(asked)}).encode())
    handler.send_response(200)
    handler.send_header("content-encoding", "gzip")
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def nothing_ever(server):
    return lambda _asked, _handler: server.ended.wait(30)


BAD = {
    "a status of 500": (lambda asked, handler: answer(handler, b"oops", status=500), Reason.INFERENCE_FAILED),
    "a redirect": (redirect, Reason.INFERENCE_FAILED),
    "a packed answer": (packed, Reason.INFERENCE_FAILED),
    "half a body": (lambda asked, handler: answer(handler, {"data": rows(asked)}, cut=9), Reason.INFERENCE_FAILED),
    "a hung-up line": (lambda asked, handler: handler.connection.close(), Reason.INFERENCE_FAILED),
    "no JSON": (lambda asked, handler: answer(handler, b"<html>"), Reason.INVALID_OUTPUT),
    "another shape": (lambda asked, handler: answer(handler, {"data": 5}), Reason.INVALID_OUTPUT),
    "deep JSON": (lambda asked, handler: answer(handler, b"[" * 100_000), Reason.INVALID_OUTPUT),
    "fewer vectors": (lambda asked, handler: answer(handler, {"data": rows(asked)[1:]}), Reason.INVALID_OUTPUT),
    "more vectors": (lambda asked, handler: answer(handler, {"data": rows(asked) * 2}), Reason.INVALID_OUTPUT),
    "one index twice": (lambda asked, handler: answer(handler, {"data": rows(asked, index=0)}), Reason.INVALID_OUTPUT),
    "an index out of range": (
        lambda asked, handler: answer(handler, {"data": [*rows(asked)[:1], {"index": 9, "embedding": [1, 2]}]}),
        Reason.INVALID_OUTPUT,
    ),
    "other dimensions": (
        lambda asked, handler: answer(handler, {"data": rows(asked, embedding=[1.0, 2.0, 3.0])}),
        Reason.INVALID_OUTPUT,
    ),
    "texts for numbers": (
        lambda asked, handler: answer(handler, {"data": rows(asked, embedding=["1", "2"])}),
        Reason.INVALID_OUTPUT,
    ),
    "nothing for numbers": (
        lambda asked, handler: answer(handler, {"data": rows(asked, embedding=None)}),
        Reason.INVALID_OUTPUT,
    ),
    "NaN": (
        lambda asked, handler: answer(handler, json.dumps({"data": rows(asked, embedding=[math.nan, 1.0])}).encode()),
        Reason.INVALID_OUTPUT,
    ),
    "zero": (
        lambda asked, handler: answer(handler, {"data": rows(asked, embedding=[0.0, 0.0])}),
        Reason.INVALID_OUTPUT,
    ),
    "beyond single precision": (
        lambda asked, handler: answer(handler, {"data": rows(asked, embedding=[1e39, 1.0])}),
        Reason.INVALID_OUTPUT,
    ),
    "too much": (lambda asked, handler: answer(handler, b" " * 70_000), Reason.INVALID_OUTPUT),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_answer_is_told_by_its_kind_and_the_next_call_is_answered(server, tmp_path, name):
    reply, expected = BAD[name]

    async def play(engine):
        server.replies.append(reply)
        with pytest.raises(LorekeeperError) as error:
            await engine.embed(DOCUMENT, ["cat", "dog"])
        return error.value.reason, (await engine.embed(DOCUMENT, ["cat"])).vectors.shape

    assert scene(server, tmp_path, play, max_response_bytes=65_536) == (expected, (1, 2))


def test_a_server_that_hangs_is_given_up_after_its_time(server, tmp_path):
    async def play(engine):
        server.replies.append(nothing_ever(server))
        with pytest.raises(LorekeeperError) as error:
            await engine.embed(DOCUMENT, ["cat"])
        return error.value.reason, (await engine.embed(DOCUMENT, ["cat"])).vectors.shape

    assert scene(server, tmp_path, play, openai_timeout_seconds=0.2) == (Reason.INFERENCE_TIMEOUT, (1, 2))


def test_a_cancelled_call_lets_go_of_a_server_that_hangs(server, tmp_path):
    async def play(engine):
        server.replies.append(nothing_ever(server))
        call = asyncio.create_task(engine.embed(DOCUMENT, ["cat"]))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        server.replies.clear()
        return (await engine.embed(QUERY, ["cat"])).vectors.shape

    assert scene(server, tmp_path, play, max_queued=1) == (1, 2)


def test_a_server_that_is_down_leaves_the_daemon_without_a_model(tmp_path):
    async def run():
        settings = EmbeddingSettings(model="openai", openai_url="http://127.0.0.1:9", openai_model="m")
        engine = EmbeddingEngine(settings, Catalogue(tmp_path, settings))
        why = await engine.start()
        await engine.close()
        return why.reason

    assert asyncio.run(run()) is Reason.INFERENCE_FAILED


def test_declared_dimensions_are_compared_when_the_server_is_first_asked(server, tmp_path):
    async def run():
        settings = settings_for(server, openai_dimensions=3)
        engine = EmbeddingEngine(settings, Catalogue(tmp_path, settings))
        return (await engine.start()).reason

    assert asyncio.run(run()) is Reason.INVALID_OUTPUT


def test_a_well_behaved_server_tells_the_tokens_of_a_single_text(server, tmp_path):
    server.replies.append(well)
    assert scene(server, tmp_path, lambda engine: engine.embed(QUERY, ["cat"])).tokens == (7,)
