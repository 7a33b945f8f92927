"""The servicer of records: what a caller's going away means."""

import asyncio
import threading

import pytest
from record_samples import NoMarks, house_on, owner
from records_client import m

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2
from sidecar.memory.kept_answers import KeptAnswers
from sidecar.memory.record_service import RecordService
from sidecar.storage.save_gate import SaveGate
from sidecar.storage.workers import SaveKey, Workers
from sidecar.wire import Paging


def test_b7_a_call_that_is_cancelled_before_it_begins_changes_nothing(tmp_path):
    house = house_on(tmp_path)
    busy, free = threading.Event(), threading.Event()

    async def scene() -> None:
        workers = Workers(SaveGate(), threads=1, queue=8)
        service = RecordService(
            store=house.store,
            groups=house.groups,
            saves=house.saves,
            workers=workers,
            limits=house.limits,
            answers=KeptAnswers(house.disk, 8),
            paging=Paging(100, 1_000),
            marks=NoMarks(),
            cuts_of=lambda save, one: (),
        )
        other = asyncio.ensure_future(workers.run(SaveKey("work", "other"), lambda: (busy.set(), free.wait(10))))
        await asyncio.to_thread(busy.wait, 10)
        request = memory_pb2.AddRecordsRequest(
            actor=common_pb2.Actor(save_id="session", actor_id="npc"), records=[m("m1")]
        )
        call = asyncio.ensure_future(service.AddRecords(request, None))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        free.set()
        await other
        await workers.close()

    asyncio.run(scene())
    assert house.store.catalog("session").total == 0
    assert house.ids(owner()) == []
