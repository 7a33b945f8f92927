"""An answer that is asked for before anybody reads it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from sidecar.chat.turns.ahead import Ahead


class Model:
    """Says its words one by one; knows whether it was asked and whether it was ended."""

    def __init__(self, *words: Any) -> None:
        self._words = words
        self.asked = asyncio.Event()
        self.ended = False

    async def answer(self) -> Any:
        self.asked.set()
        try:
            for word in self._words:
                if isinstance(word, Exception):
                    raise word
                if isinstance(word, asyncio.Event):
                    await word.wait()
                else:
                    yield word
        finally:
            self.ended = True


def test_the_model_is_asked_before_anybody_reads():
    async def play():
        model = Model("Good ", "day")
        async with aclosing(Ahead(model.answer())) as ahead:
            await model.asked.wait()
            return [piece async for piece in ahead]

    assert asyncio.run(play()) == ["Good ", "day"]


def test_an_answer_without_pieces_is_empty():
    async def play():
        async with aclosing(Ahead(Model().answer())) as ahead:
            return [piece async for piece in ahead]

    assert asyncio.run(play()) == []


@pytest.mark.parametrize("words", [("Good", "day"), (asyncio.Event(),), (ValueError("broken"),)])
def test_closing_it_unread_ends_the_request(words):
    async def play():
        model = Model(*words)
        ahead = Ahead(model.answer())
        await model.asked.wait()
        await ahead.aclose()
        return model.ended

    assert asyncio.run(play())


def test_what_goes_wrong_is_raised_to_the_reader():
    async def play():
        async with aclosing(Ahead(Model(ValueError("broken")).answer())) as ahead:
            return [piece async for piece in ahead]

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(play())


def test_a_reader_that_is_cancelled_ends_the_request():
    async def play():
        model = Model(asyncio.Event())
        ahead = Ahead(model.answer())

        async def read():
            async with aclosing(ahead):
                return [piece async for piece in ahead]

        reading = asyncio.ensure_future(read())
        await model.asked.wait()
        reading.cancel()
        await asyncio.wait([reading])
        return reading.cancelled(), model.ended

    assert asyncio.run(play()) == (True, True)
