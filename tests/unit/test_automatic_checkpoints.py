"""Checkpoints that are made by themselves."""

from __future__ import annotations

import asyncio

from sidecar.daemon.rooms import Rooms
from sidecar.memory.edits import Action, Edit
from sidecar.saves.automatic import AutomaticCheckpoints
from sidecar.settings import Config
from sidecar.storage.disk import FileDisk
from sidecar.storage.keys import actor_id


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
