"""Which texts are given up: those that the model cannot embed, never those that met an outage."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from sidecar.embedding.engine import EmbeddingAnswer
from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.vectors import VectorStore
from sidecar.errors import LorekeeperError, Reason, TimedOut, Unavailable
from sidecar.search.vector_feed import VectorFeed
from sidecar.search.vector_maker import Made, VectorMaker


class Server:
    """An engine whose server fails on some calls, counted from 0, and on each batch with the text "bad"."""

    identity = EmbeddingIdentity("p", "m", "1", 2)

    def __init__(self, down: Callable[[int], bool] = lambda call: False) -> None:
        self.down = down
        self.asked: list[list[str]] = []

    def error(self, texts):
        """What is raised instead of an answer; None: nothing."""

    async def embed(self, kind, texts):
        self.asked.append(texts)
        if error := self.error(texts):
            raise error
        if self.down(len(self.asked) - 1) or "bad" in texts:
            raise Unavailable("the server failed", reason=Reason.BACKEND_UNAVAILABLE)
        return EmbeddingAnswer(self.identity, np.array([[1, 0]] * len(texts), np.float32), (0,) * len(texts), ())


@pytest.fixture
def store():
    opened = VectorStore(None)
    yield opened
    opened.close()


@pytest.fixture
def told():
    return []


@pytest.fixture
def maker_of(store, told):
    return lambda server: VectorMaker(server, VectorFeed(store, told.append), told.append)


def keyed(*texts: str) -> dict[bytes, str]:
    return {bytes([number]) * 32: text for number, text in enumerate(texts)}


def made(maker: VectorMaker, texts: dict[bytes, str]) -> Made:
    return asyncio.run(maker.make(texts))


def test_a_text_that_fails_wherever_it_stands_is_given_up_alone(maker_of, told):
    texts = keyed("a", "bad", "c", "d")
    maker = maker_of(Server())
    assert made(maker, texts) == Made(done=3, failed=1)
    assert [text for text in texts if maker.has_failed(text)] == [bytes([1]) * 32]
    assert [one.code for one in told] == ["texts_not_embedded"]


def test_two_texts_that_fail_one_after_the_other_do_not_stop_the_rest(maker_of):
    texts = keyed("bad", "bad", "c", "d")
    maker = maker_of(Server())
    assert made(maker, texts) == Made(done=2, failed=2)
    assert [text for text in texts if maker.has_failed(text)] == list(texts)[:2]


def test_a_server_that_comes_back_during_the_halving_costs_no_text(maker_of, told):
    texts = keyed("a", "b", "c", "d")
    maker = maker_of(Server(lambda call: call < 3))  # the batch, a half of it, and a text alone
    assert made(maker, texts) == Made(done=4)
    assert (maker.failed, told) == ({}, [])


def test_a_server_that_goes_away_during_the_halving_costs_no_text(maker_of, told):
    texts = keyed("a", "b", "c", "d")
    maker = maker_of(Server(lambda call: call == 0 or call > 1))  # one half is embedded, then nothing
    with pytest.raises(Unavailable):
        made(maker, texts)
    assert (maker.failed, told) == ({}, [])


def test_a_server_that_goes_away_while_a_text_is_tried_again_costs_no_text(maker_of, store, told):
    texts = keyed("a", "bad")
    server = Server()
    server.down = lambda call: ["ok"] in server.asked and server.asked.index(["ok"]) < call
    maker = maker_of(server)
    with pytest.raises(Unavailable):
        made(maker, texts)
    assert (maker.failed, told) == ({}, [])
    assert store.missing(server.identity, list(texts)) == [bytes([1]) * 32]


def test_a_batch_that_takes_too_long_is_made_smaller(maker_of):
    server = Server()
    server.error = lambda texts: TimedOut("too slow", reason=Reason.INFERENCE_TIMEOUT) if len(texts) > 2 else None
    assert made(maker_of(server), keyed("a", "b", "c", "d")) == Made(done=4)


@pytest.mark.parametrize("reason", [Reason.QUEUE_TIMEOUT, Reason.QUEUE_FULL, Reason.STORE_FAILED])
def test_no_text_is_blamed_for_a_full_queue_or_disk(maker_of, reason):
    server = Server()
    server.error = lambda texts: LorekeeperError("not now", reason=reason) if "ok" not in texts else None
    maker = maker_of(server)
    with pytest.raises(LorekeeperError):
        made(maker, keyed("a"))
    assert (maker.failed, len(server.asked)) == ({}, 1)


def test_a_lone_text_is_given_up_only_where_the_model_works(maker_of):
    assert made(maker_of(Server()), keyed("bad")) == Made(failed=1)
    with pytest.raises(Unavailable):
        made(maker_of(Server(lambda call: True)), keyed("bad"))
