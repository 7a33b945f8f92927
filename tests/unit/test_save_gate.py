"""Many use a save together; a checkpoint has it still, and an exchange has it alone."""

from __future__ import annotations

import asyncio

import pytest

from sidecar.errors import NotReady, Reason, Stale
from sidecar.storage.save_gate import SaveGate

SECONDS = 5


def run(scenario):
    async def whole():
        gate = SaveGate()
        await asyncio.wait_for(scenario(gate), SECONDS)
        assert gate._saves == {}

    asyncio.run(whole())


async def settled():
    """Let everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


class Call:
    """A call that stays in a save until it is let go."""

    def __init__(self, gate, save="s"):
        self.inside, self.go = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._run(gate, save))

    async def _run(self, gate, save):
        with await gate.enter(save, seconds=SECONDS):
            self.inside.set()
            await self.go.wait()
        return "done"


def test_calls_are_together_in_a_save():
    async def scenario(gate):
        calls = [Call(gate) for _ in range(3)]
        for call in calls:
            await call.inside.wait()
            call.go.set()
        assert [await call.task for call in calls] == ["done"] * 3

    run(scenario)


def test_an_exchange_waits_for_a_call_that_ends_in_time():
    async def scenario(gate):
        call = Call(gate)
        await call.inside.wait()
        asyncio.get_running_loop().call_soon(call.go.set)
        async with gate.alone("s", seconds=SECONDS, grace_seconds=SECONDS) as ended:
            assert ended == 0
        assert await call.task == "done"

    run(scenario)


def test_an_exchange_ends_a_call_that_goes_on_and_tells_it_why():
    async def scenario(gate):
        call = Call(gate)
        await call.inside.wait()
        async with gate.alone("s", seconds=SECONDS, grace_seconds=0) as ended:
            assert ended == 1
        with pytest.raises(Stale) as failed:
            await call.task
        assert failed.value.reason is Reason.SAVE_RESTORED

    run(scenario)


def test_a_call_waits_while_its_save_is_exchanged_and_one_on_another_save_does_not():
    async def scenario(gate):
        async with gate.alone("s", seconds=SECONDS, grace_seconds=0):
            waiting, other = Call(gate), Call(gate, "other")
            await other.inside.wait()
            await settled()
            assert not waiting.inside.is_set()
            assert gate.shut("s")
        await waiting.inside.wait()
        for call in (waiting, other):
            call.go.set()
            assert await call.task == "done"

    run(scenario)


def test_a_call_that_cannot_wait_any_longer_is_told_that_the_save_is_busy():
    async def scenario(gate):
        async with gate.alone("s", seconds=SECONDS, grace_seconds=0):
            for wanted in (
                gate.enter("s", seconds=0),
                gate.still("s", seconds=0).__aenter__(),
                gate.alone("s", seconds=0, grace_seconds=0).__aenter__(),
            ):
                with pytest.raises(NotReady) as failed:
                    await wanted
                assert failed.value.reason is Reason.SAVE_BUSY

    run(scenario)


def test_a_checkpoint_waits_for_work_that_has_begun_and_holds_up_what_has_not():
    async def scenario(gate):
        begun = []
        gate.begin_work("s", lambda: begun.append("first"))
        checkpoint = asyncio.create_task(gate.still("s", seconds=SECONDS).__aenter__())
        await settled()
        assert begun == ["first"]
        assert not checkpoint.done()
        gate.end_work("s")
        await checkpoint

    run(scenario)


def test_work_that_a_checkpoint_held_up_begins_after_it():
    async def scenario(gate):
        begun = []
        async with gate.still("s", seconds=SECONDS):
            gate.begin_work("s", lambda: begun.append("held"))
            gate.begin_work("another", lambda: begun.append("another save's"))
            assert begun == ["another save's"]
        assert begun == ["another save's", "held"]
        second = asyncio.create_task(gate.still("s", seconds=SECONDS).__aenter__())
        await settled()
        assert not second.done()
        gate.end_work("s")
        await second
        gate.end_work("another")

    run(scenario)


def test_a_checkpoint_lets_calls_go_on():
    async def scenario(gate):
        call = Call(gate)
        await call.inside.wait()
        async with gate.still("s", seconds=SECONDS):
            other = Call(gate)
            await other.inside.wait()
        for one in (call, other):
            one.go.set()
            assert await one.task == "done"

    run(scenario)


def test_two_exchanges_take_turns():
    async def scenario(gate):
        inside = []

        async def exchange():
            async with gate.alone("s", seconds=SECONDS, grace_seconds=0):
                inside.append(1)
                assert len(inside) == 1
                await settled()
                inside.clear()

        await asyncio.gather(*(exchange() for _ in range(5)))

    run(scenario)


def test_a_waiting_call_that_goes_away_is_forgotten():
    async def scenario(gate):
        async with gate.alone("s", seconds=SECONDS, grace_seconds=0):
            waiting = Call(gate)
            await settled()
            waiting.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting.task

    run(scenario)
