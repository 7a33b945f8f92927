"""A save is restored while a game goes on writing, reading and searching: nothing of the abandoned future is seen."""

from __future__ import annotations

import threading

import grpc
import pytest

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2, search_pb2, search_pb2_grpc

ROUNDS = 6


def mira(name="mira"):
    return common_pb2.Actor(save_id="slot", actor_id=name)


def record(text, place):
    return memory_pb2.NewRecord(
        record_id=f"r{place}",
        scope="personal",
        kind=memory_pb2.RECORD_KIND_EVENT,
        payload_json="{}",
        searchable_text=text,
        moment=common_pb2.Moment(timeline_id="world", tick=1),
    )


class Busy(threading.Thread):
    """Does ``work(number)`` over and over; what is answered is kept with the epoch that the answer tells."""

    def __init__(self, work):
        super().__init__()
        self.work = work
        self.stop = threading.Event()
        self.done = []
        self.failed = []

    def run(self):
        number = 0
        while not self.stop.is_set():
            number += 1
            try:
                self.done.append((self.work(number).save.epoch, number))
            except grpc.RpcError as error:
                self.failed.append((error.code().name, error.details()))


@pytest.fixture
def busy():
    threads = []

    def start(work):
        threads.append(Busy(work))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.stop.set()
        thread.join()


def test_what_was_written_before_a_restore_never_comes_back(daemon, busy):
    client = daemon.client
    client.write(mira(), "then")
    kept = client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot")).checkpoint
    writer = busy(lambda number: client.append(mira(), f"line {number}"))
    rememberer = busy(
        lambda number: client.memory.AddRecords(
            memory_pb2.AddRecordsRequest(actor=mira(), records=[record(f"wolf {number}", number)])
        )
    )
    search = search_pb2_grpc.SearchServiceStub(client.channel)
    searcher = busy(lambda _: search.Search(search_pb2.SearchRequest(actor=mira(), text="wolf", limit=5)))
    request = save_pb2.RestoreCheckpointRequest(save_id="slot", checkpoint_id=kept.checkpoint_id)
    epoch = 0
    for _ in range(ROUNDS):
        epoch = client.saves.RestoreCheckpoint(request).save.epoch
    for thread in (writer, rememberer, searcher):
        thread.stop.set()
        thread.join()
        assert all(code in ("ABORTED", "FAILED_PRECONDITION") for code, _ in thread.failed), thread.failed
    read = client.read(mira())
    assert read.save.epoch == epoch == ROUNDS
    written = [f"line {number}" for told, number in writer.done if told == epoch]
    lines = read.text.split("\n")
    assert lines[0] == "then"
    # The last one may have been written before the restore ended its call: it is gone, or it is told in this epoch.
    assert set(lines[1:]) >= set(written)
    assert len(lines) - 1 <= len(written) + 1
    listed = client.memory.ListRecords(memory_pb2.ListRecordsRequest(actor=mira(), page_size=1_000)).records
    remembered = {f"r{number}" for told, number in rememberer.done if told == epoch}
    assert {one.record_id for one in listed} >= remembered


def test_a_call_that_runs_on_while_its_save_is_restored_is_told_so(daemon, busy):
    client = daemon.client
    client.write(mira(), "then")
    kept = client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot")).checkpoint
    request = save_pb2.RestoreCheckpointRequest(save_id="slot", checkpoint_id=kept.checkpoint_id)
    for number in range(3):
        answers = [client.saves.RestoreCheckpoint.future(request) for _ in range(3)]
        epochs = sorted(answer.result().save.epoch for answer in answers)
        assert epochs[-1] == 3 * (number + 1)
    assert client.text(mira()) == "then"
