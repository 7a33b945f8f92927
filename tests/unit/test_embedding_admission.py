"""The door before a model: bounds, order, waits, and what happens to runs that nobody waits for."""

import asyncio

import pytest

from sidecar.embedding.admission import Admission, AdmissionBounds
from sidecar.errors import LorekeeperError, Reason


class Run:
    """A run that ends when the test says so."""

    def __init__(self):
        self.begun = asyncio.Event()
        self.stopped = asyncio.Event()
        self.future = asyncio.get_running_loop().create_future()

    def begin(self):
        self.begun.set()
        return self.future

    async def by(self, admission):
        async with admission.lane() as lane:
            return await lane.run(self.begin, self.stopped.set)


def door(*, concurrent=1, queued=4, queue_seconds=60.0, run_seconds=60.0):
    return Admission(AdmissionBounds(concurrent, queued, queue_seconds, run_seconds))


async def begun(admission):
    run = Run()
    task = asyncio.create_task(run.by(admission))
    await run.begun.wait()
    return run, task


async def waiting(admission):
    run, before = Run(), admission.queued
    task = asyncio.create_task(run.by(admission))
    await asyncio.sleep(0)
    assert admission.queued == before + 1
    return run, task


async def reason_of(task):
    with pytest.raises(LorekeeperError) as error:
        await task
    return error.value.reason


def test_a_run_gives_its_answer():
    async def scene():
        run, task = await begun(door())
        run.future.set_result("vector")
        assert await task == "vector"

    asyncio.run(scene())


def test_a_call_without_a_place_is_refused_at_once_and_nothing_of_it_runs():
    async def scene():
        admission = door(queued=0)
        run, task = await begun(admission)
        refused = Run()
        assert await reason_of(refused.by(admission)) is Reason.QUEUE_FULL
        assert not refused.begun.is_set()
        run.future.set_result(None)
        await task

    asyncio.run(scene())


def test_a_call_that_waits_too_long_is_told_so_and_never_runs():
    async def scene():
        admission = door(queue_seconds=0.001)
        run, task = await begun(admission)
        late = Run()
        assert await reason_of(late.by(admission)) is Reason.QUEUE_TIMEOUT
        run.future.set_result(None)
        await task
        assert not late.begun.is_set()
        assert admission.running == admission.queued == 0

    asyncio.run(scene())


def test_calls_run_in_the_order_in_which_they_came():
    async def scene():
        admission = door()
        first, first_task = await begun(admission)
        second, second_task = await waiting(admission)
        third, third_task = await waiting(admission)
        first.future.set_result(None)
        await second.begun.wait()
        assert not third.begun.is_set()
        second.future.set_result(None)
        await third.begun.wait()
        third.future.set_result(None)
        await asyncio.gather(first_task, second_task, third_task)

    asyncio.run(scene())


def test_another_call_gets_its_turn_between_two_runs_of_one_call():
    async def scene():
        admission = door()
        runs = [Run(), Run()]

        async def documents():
            async with admission.lane() as lane:
                for run in runs:
                    await lane.run(run.begin, run.stopped.set)

        call = asyncio.create_task(documents())
        await runs[0].begun.wait()
        other, other_task = await waiting(admission)
        runs[0].future.set_result(None)
        await other.begun.wait()
        assert not runs[1].begun.is_set()
        other.future.set_result(None)
        await other_task
        await runs[1].begun.wait()
        runs[1].future.set_result(None)
        await call

    asyncio.run(scene())


def test_a_cancelled_call_leaves_the_line_at_once():
    async def scene():
        admission = door()
        run, task = await begun(admission)
        queued, queued_task = await waiting(admission)
        queued_task.cancel()
        await asyncio.wait([queued_task])
        assert queued_task.cancelled()
        assert admission.queued == 0
        run.future.set_result(None)
        await task
        assert not queued.begun.is_set()

    asyncio.run(scene())


def test_a_slot_stays_held_until_a_cancelled_run_has_really_ended():
    async def scene():
        admission = door()
        run, task = await begun(admission)
        task.cancel()
        await asyncio.wait([task])
        assert run.stopped.is_set()
        assert admission.running == 1
        after, after_task = await waiting(admission)
        assert not after.begun.is_set()
        run.future.set_exception(RuntimeError("stopped"))
        await after.begun.wait()
        after.future.set_result(None)
        await after_task

    asyncio.run(scene())


def test_a_stuck_run_keeps_its_place_too_so_that_calls_cannot_pile_up():
    async def scene():
        admission = door(queued=0, run_seconds=0.001)
        stuck, task = await begun(admission)
        assert await reason_of(task) is Reason.INFERENCE_TIMEOUT
        assert await reason_of(Run().by(admission)) is Reason.QUEUE_FULL
        stuck.future.set_result(None)
        await asyncio.sleep(0)
        fresh, fresh_task = await begun(admission)
        fresh.future.set_result("again")
        assert await fresh_task == "again"

    asyncio.run(scene())


def test_a_run_that_takes_too_long_is_stopped():
    async def scene():
        run, task = await begun(door(run_seconds=0.001))
        assert await reason_of(task) is Reason.INFERENCE_TIMEOUT
        assert run.stopped.is_set()
        run.future.set_result(None)

    asyncio.run(scene())


def test_closing_turns_waiting_calls_away_and_stops_what_runs():
    async def scene():
        admission = door()
        run, task = await begun(admission)
        queued, queued_task = await waiting(admission)
        closing = asyncio.create_task(admission.close(grace=0))
        assert await reason_of(queued_task) is Reason.MODEL_UNLOADED
        await run.stopped.wait()
        run.future.cancel()
        await closing
        assert await reason_of(task) is Reason.MODEL_UNLOADED
        assert not queued.begun.is_set()
        assert await reason_of(Run().by(admission)) is Reason.MODEL_UNLOADED

    asyncio.run(scene())


def test_closing_with_grace_lets_a_run_end_by_itself():
    async def scene():
        admission = door()
        run, task = await begun(admission)
        closing = asyncio.create_task(admission.close(grace=60))
        await asyncio.sleep(0)
        run.future.set_result("done")
        await closing
        assert await task == "done"
        assert not run.stopped.is_set()

    asyncio.run(scene())


def test_slots_are_never_lost_whatever_ends_in_the_same_moment():
    async def scene():
        admission = door(concurrent=2, queued=50)
        runs = [Run() for _ in range(40)]
        tasks = [asyncio.create_task(run.by(admission)) for run in runs]
        for index, (run, task) in enumerate(zip(runs, tasks, strict=True)):
            await asyncio.sleep(0)
            if not run.future.done():
                run.future.set_result(index)
            if index % 3 == 0:
                task.cancel()
        await asyncio.wait(tasks)
        assert admission.running == admission.queued == 0
        last, task = await begun(admission)
        last.future.set_result(None)
        await task

    asyncio.run(scene())
