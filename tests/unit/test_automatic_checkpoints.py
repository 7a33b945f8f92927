"""Checkpoints that are made by themselves."""

from __future__ import annotations

import asyncio

from record_samples import record

from sidecar.daemon.rooms import Rooms
from sidecar.memory.edits import Action, Edit
from sidecar.memory.moments import Moment
from sidecar.saves.automatic import AutomaticCheckpoints
from sidecar.saves.checkpoint import Kind, Wish
from sidecar.settings import Config
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.keys import actor_id


def ticking(tmp_path, **wanted):
    """A save that asks for checkpoints by game time; a function that has something happen at a tick, and one that looks
    for checkpoints that are due: it tells the moments of those that are kept, newest first."""
    rooms = Rooms(FileDisk(tmp_path), Config(), serving=lambda *_: None, report=lambda _: None)
    rooms.save.settings.put("s", {"automatic_checkpoints": wanted})
    files = rooms.save.files

    def happens(tick, timeline="world"):
        one = record(f"{timeline} {tick}", moment=Moment(timeline, tick))
        rooms.records.store.add("s", [(actor_id(save="s", actor="mira"), one)])

    def look():
        async def looked():
            automatic = AutomaticCheckpoints(
                files, rooms.save.settings, rooms.save.access, lambda _: None, poll_seconds=1
            )
            await automatic.make_due()

        asyncio.run(looked())
        kept = [(one.wish.kind, one.wish.moment) for one in files.checkpoints.of_save("s")]
        return [(moment.timeline, moment.tick) for kind, moment in kept if kind is Kind.AUTOMATIC]

    return files, happens, look


def test_checkpoints_by_game_time_are_made_after_so_many_ticks_of_any_timeline(tmp_path):
    _, happens, look = ticking(tmp_path, every_ticks=10, keep=3)
    assert look() == []
    happens(5)
    assert look() == [("world", 5)]
    happens(14)
    assert look() == [("world", 5)]
    happens(15)
    assert look() == [("world", 15), ("world", 5)]
    assert look() == [("world", 15), ("world", 5)]
    happens(1, "dreams")
    assert look() == [("dreams", 1), ("world", 15), ("world", 5)]
    happens(25)
    assert look() == [("world", 25), ("dreams", 1), ("world", 15)]


def test_game_time_of_an_abandoned_future_holds_no_checkpoint_back(tmp_path):
    files, happens, look = ticking(tmp_path, every_ticks=10)
    happens(5)
    early = files.checkpoint("s", Wish(name="by hand", moment=Moment("world", 5)))
    happens(100)
    assert look() == [("world", 100)]
    files.restore("s", early.checkpoint_id, Wish(kind=Kind.SAFETY))
    happens(16)
    assert look() == [("world", 16), ("world", 100)]


def test_automatic_checkpoints_are_made_where_something_changed_and_the_newest_are_kept(tmp_path):
    now = [1_000_000.0]
    rooms = Rooms(FileDisk(tmp_path), Config(), serving=lambda *_: None, report=lambda _: None)
    rooms.save.settings.put("s", {"automatic_checkpoints": {"every_minutes": 5, "keep": 2}})
    rooms.save.settings.put("other", {"name": "asks for none"})
    files = rooms.save.files

    def look(minutes, *, change):
        now[0] += 60 * minutes
        if change:
            rooms.documents.edit(actor_id(save="s", actor="mira"), [Edit(Action.APPEND, content=str(now[0]))])
        asyncio.run(looked())
        return len(files.checkpoints.ids("s"))

    async def looked():
        automatic = AutomaticCheckpoints(
            files, rooms.save.settings, rooms.save.access, lambda _: None, poll_seconds=1, clock=lambda: now[0]
        )
        await automatic.make_due()

    files.checkpoints._clock = lambda: int(now[0] * 1_000_000_000)
    assert look(0, change=False) == 1
    assert look(6, change=False) == 1
    assert look(0, change=True) == 2
    assert look(4, change=True) == 2
    assert look(2, change=False) == 2
    assert files.checkpoints.ids("other") == []
