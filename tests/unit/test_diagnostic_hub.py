"""Diagnostics on their way to whoever watches: in order, bounded, and with what was missed."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sidecar.daemon.diagnostic_hub import DiagnosticHub
from sidecar.diagnostics import Diagnostic
from sidecar.errors import LimitReached

SECONDS = 10


def hub_with(*codes, kept=100, max_watchers=4):
    hub = DiagnosticHub(kept=kept, max_watchers=max_watchers)
    for code in codes:
        hub.report(Diagnostic(code, "something happened"))
    return hub


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario(), SECONDS))


async def taken(hub, count, *, after):
    seen = []
    async for numbered, missed in hub.watch(after):
        seen.append((numbered.sequence, numbered.diagnostic.code, missed))
        if len(seen) == count:
            break
    return seen


def test_a_late_watcher_is_told_what_is_kept():
    async def scenario():
        assert await taken(hub_with("a", "b"), 2, after=0) == [(1, "a", 0), (2, "b", 0)]

    run(scenario)


def test_a_watcher_of_an_earlier_run_is_told_what_is_kept_and_holds_nobody_up():
    async def scenario():
        assert await taken(hub_with("a", "b"), 2, after=2**63 - 1) == [(1, "a", 0), (2, "b", 0)]

    run(scenario)


def test_a_watcher_that_was_there_before_goes_on_after_what_it_saw():
    async def scenario():
        assert await taken(hub_with("a", "b", "c"), 1, after=2) == [(3, "c", 0)]

    run(scenario)


def test_what_is_not_kept_any_more_is_counted_as_missed():
    async def scenario():
        assert await taken(hub_with("a", "b", "c", "d", kept=2), 2, after=0) == [(3, "c", 2), (4, "d", 0)]

    run(scenario)


def test_what_is_routine_takes_the_place_of_nothing_else():
    async def scenario():
        hub = hub_with("grave", kept=2)
        watching = asyncio.create_task(taken(hub, 4, after=0))
        await asyncio.sleep(0)
        for _ in range(3):
            hub.report(Diagnostic("search", "something happened", routine=True))
        hub.report(Diagnostic("grave too", "something happened"))
        assert await taken(hub, 4, after=0) == [
            (1, "grave", 0),
            (3, "search", 1),
            (4, "search", 0),
            (5, "grave too", 0),
        ]
        watching.cancel()

    run(scenario)


def test_a_watcher_hears_what_is_reported_from_any_thread_in_order_and_completely():
    async def scenario():
        hub = hub_with(kept=10_000)
        hub.attach(asyncio.get_running_loop())
        watching = asyncio.create_task(taken(hub, 800, after=0))
        await asyncio.sleep(0)
        reports = [
            threading.Thread(target=lambda: [hub.report(Diagnostic("x", "")) for _ in range(100)]) for _ in range(8)
        ]
        for thread in reports:
            thread.start()
        seen = await watching
        assert [(sequence, missed) for sequence, _, missed in seen] == [(number, 0) for number in range(1, 801)]

    run(scenario)


def test_a_new_watcher_without_a_wish_hears_only_what_is_new():
    async def scenario():
        hub = hub_with("old")
        hub.attach(asyncio.get_running_loop())
        watching = asyncio.create_task(taken(hub, 1, after=None))
        await asyncio.sleep(0)
        hub.report(Diagnostic("new", ""))
        assert await watching == [(2, "new", 0)]

    run(scenario)


def test_too_many_watchers_are_refused_and_a_place_is_free_again_after_one_leaves():
    async def scenario():
        hub = hub_with(max_watchers=1)
        hub.attach(asyncio.get_running_loop())
        first = asyncio.create_task(taken(hub, 1, after=0))
        await asyncio.sleep(0)
        with pytest.raises(LimitReached) as caught:
            await taken(hub, 1, after=0)
        assert caught.value.metadata == {"limit": "daemon.max_watchers", "value": "1"}
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        hub.report(Diagnostic("a", ""))
        assert await taken(hub, 1, after=0) == [(1, "a", 0)]

    run(scenario)


def test_every_watch_ends_when_the_daemon_ends():
    async def scenario():
        hub = hub_with("a")
        hub.attach(asyncio.get_running_loop())
        watching = asyncio.create_task(taken(hub, 5, after=0))
        await asyncio.sleep(0)
        hub.close()
        assert await watching == [(1, "a", 0)]

    run(scenario)
