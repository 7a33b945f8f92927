"""Disk work in threads: in turn for one key, side by side for two, and never half abandoned."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sidecar.errors import LimitReached
from sidecar.storage.save_gate import SaveGate
from sidecar.storage.workers import SaveKey, Workers

SECONDS = 10


class Held:
    """Work that says when it has begun and ends when it is told to."""

    def __init__(self):
        self.begun = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._go_on = threading.Event()

    def __call__(self):
        self._loop.call_soon_threadsafe(self.begun.set)
        assert self._go_on.wait(SECONDS)
        return "held"

    def end(self):
        self._go_on.set()


def run(scenario, *, threads=4, queue=100):
    """Run ``scenario(workers)`` with workers that are closed after it."""

    async def whole():
        workers = Workers(SaveGate(), threads=threads, queue=queue)
        try:
            await asyncio.wait_for(scenario(workers), SECONDS)
        finally:
            await workers.close()

    asyncio.run(whole())


def test_work_answers_its_caller():
    async def scenario(workers):
        assert await workers.run(SaveKey("work", "a"), lambda: 7) == 7

    run(scenario)


def test_a_failure_reaches_its_caller_and_the_key_is_free_again():
    async def scenario(workers):
        with pytest.raises(KeyError):
            await workers.run(SaveKey("work", "a"), lambda: {}["missing"])
        assert await workers.run(SaveKey("work", "a"), lambda: 7) == 7

    run(scenario)


def test_work_for_one_key_runs_in_turn_and_in_order():
    order = []

    async def scenario(workers):
        held = Held()
        first = asyncio.create_task(workers.run(SaveKey("work", "a"), held))
        await held.begun.wait()
        others = [asyncio.create_task(workers.run(SaveKey("work", "a"), lambda n=n: order.append(n))) for n in range(5)]
        await workers.run(SaveKey("work", "b"), lambda: order.append("other key"))
        held.end()
        await asyncio.gather(first, *others)

    run(scenario)
    assert order == ["other key", 0, 1, 2, 3, 4]


def test_a_caller_that_goes_away_while_it_waits_changes_nothing():
    done = []

    async def scenario(workers):
        held = Held()
        first = asyncio.create_task(workers.run(SaveKey("work", "a"), held))
        await held.begun.wait()
        waiting = asyncio.create_task(workers.run(SaveKey("work", "a"), lambda: done.append("changed")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        held.end()
        assert await first == "held"
        await workers.run(SaveKey("work", "a"), lambda: done.append("next"))

    run(scenario)
    assert done == ["next"]


def test_work_that_has_begun_is_finished_and_its_key_stays_locked_until_then():
    order = []

    async def scenario(workers):
        held = Held()
        going = asyncio.create_task(workers.run(SaveKey("work", "a"), lambda: order.append(held())))
        await held.begun.wait()
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        after = asyncio.create_task(workers.run(SaveKey("work", "a"), lambda: order.append("after")))
        await workers.run(SaveKey("work", "b"), lambda: None)
        assert order == []
        held.end()
        await after

    run(scenario)
    assert order == ["held", "after"]


def test_more_calls_than_the_queue_takes_are_refused_at_once_and_the_limit_is_named():
    async def scenario(workers):
        held = Held()
        calls = [asyncio.create_task(workers.run(SaveKey("work", "a"), work)) for work in (held, lambda: None)]
        await held.begun.wait()
        with pytest.raises(LimitReached) as caught:
            await workers.run(SaveKey("work", "b"), lambda: None)
        assert caught.value.metadata == {"limit": "storage.max_waiting_calls", "value": "2"}
        held.end()
        await asyncio.gather(*calls)
        await workers.run(SaveKey("work", "b"), lambda: None)

    run(scenario, queue=2)


def test_a_close_waits_for_what_has_begun():
    done = []

    async def scenario():
        workers = Workers(SaveGate(), threads=1, queue=10)
        held = Held()
        call = asyncio.create_task(workers.run(SaveKey("work", "a"), lambda: done.append(held())))
        await held.begun.wait()
        closing = asyncio.create_task(workers.close())
        await asyncio.sleep(0)
        held.end()
        await closing
        assert done == ["held"]
        await call

    asyncio.run(scenario())


def test_nothing_is_kept_of_keys_that_nobody_uses():
    async def scenario(workers):
        for number in range(100):
            await workers.run(SaveKey("work", str(number)), lambda: None)
        assert workers._lines == {}

    run(scenario)


def test_work_that_nobody_waits_for_is_done_in_its_turn_and_its_failure_is_lost():
    done = []

    async def scenario(workers):
        workers.begin(SaveKey("work", "a"), lambda: done.append("begun"))
        workers.begin(SaveKey("work", "a"), lambda: {}["missing"])
        await workers.run(SaveKey("work", "a"), lambda: done.append("waited for"))

    run(scenario)
    assert done == ["begun", "waited for"]


def test_a_close_waits_for_work_whose_caller_went_away():
    done = []

    async def scenario():
        workers = Workers(SaveGate(), threads=1, queue=10)
        held = Held()
        going = asyncio.create_task(workers.run(SaveKey("work", "a"), lambda: done.append(held())))
        await held.begun.wait()
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        closing = asyncio.create_task(workers.close())
        await asyncio.sleep(0)
        assert not closing.done()
        held.end()
        await closing
        assert done == ["held"]

    asyncio.run(scenario())


def test_work_waits_while_its_save_is_still_and_counts_as_waiting():
    async def scenario():
        gate = SaveGate()
        workers = Workers(gate, threads=1, queue=1)
        async with gate.still("a", seconds=SECONDS):
            waiting = asyncio.create_task(workers.run(SaveKey("work", "a"), lambda: 7))
            await asyncio.sleep(0)
            with pytest.raises(LimitReached):
                await workers.run(SaveKey("work", "b"), lambda: 8)
        assert await waiting == 7
        await workers.close()

    asyncio.run(scenario())
