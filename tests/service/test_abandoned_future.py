"""A save is restored while a turn, a summary, an embedding and a search of it are under way: each ends or is thrown
away, and nothing of the abandoned future is seen again, neither at once nor after a restart."""

from __future__ import annotations

import threading

import grpc
import pytest
from chat_client import Chat
from client import failure
from fake_meaning import fake_meaning
from records_client import Records, m
from turn_client import BACKEND, Turn, TurnClient
from wire_server import calls, stream

from sidecar.gen.lorekeeper.v1 import common_pb2, compaction_pb2, memory_pb2, role_pb2, save_pb2, search_pb2

MIRA = common_pb2.Actor(save_id="slot", actor_id="mira", role_id="mira")
MODEL = compaction_pb2.COMPACTION_STRATEGY_MODEL
FUTURE = "zyxq"


@pytest.fixture
def meaning():
    with fake_meaning() as server:
        yield server


@pytest.fixture
def game(daemon, server):
    """Turns with a scripted model, in which the actor has its memory tool."""
    game = TurnClient(daemon.client, MIRA, server)
    game.put_role(memory_tool=True, summary=role_pb2.SummaryOptions(use_model=True, backend_id=BACKEND))
    game.send("Before")
    daemon.client.write(MIRA, "then")
    return game


def checkpoint(client):
    return client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot")).checkpoint


def restore(client, kept):
    request = save_pb2.RestoreCheckpointRequest(save_id="slot", checkpoint_id=kept.checkpoint_id)
    return client.saves.RestoreCheckpoint(request)


def nothing_of_the_future(daemon):
    """Whether the files of the save, its safety checkpoints left out, have no word of it."""
    files = [path for path in (daemon.folder / "saves").rglob("*") if path.is_file()]
    return bool(files) and not any(FUTURE.encode() in path.read_bytes() for path in files)


def test_a_turn_that_waits_for_its_model_ends_and_stores_nothing(daemon, game, server):
    kept = checkpoint(daemon.client)
    gate = server.gate()
    edit = {"action": "append", "content": f"{FUTURE} memory"}
    server.play(calls(("memory", edit)), stream(f"{FUTURE} answer", gate, " and more"))
    turn = game.start(f"{FUTURE} question")
    kinds = iter(turn)
    while next(kinds).event.WhichOneof("event") != "text":
        pass
    assert FUTURE in daemon.client.text(MIRA)
    assert restore(daemon.client, kept).ended >= 1
    gate.open()
    with pytest.raises(grpc.RpcError) as ended:
        list(kinds)
    assert ended.value.code().name in ("ABORTED", "FAILED_PRECONDITION")
    for _ in range(2):
        again = TurnClient(daemon.client, MIRA)
        assert again.messages() == [("user", "Before"), ("assistant", "You said: Before")]
        assert [content for _, _, content in again.transcript()] == ["Before", "You said: Before"]
        assert daemon.client.text(MIRA) == "then"
        assert nothing_of_the_future(daemon)
        daemon.restart()


def test_a_refused_restore_fork_or_import_ends_no_turn(daemon, game, server):
    saves, kept = daemon.client.saves, checkpoint(daemon.client)
    exported = [each.chunk for each in saves.ExportSave(save_pb2.ExportSaveRequest(save_id="slot"))]
    messages = [save_pb2.ImportSaveRequest(header=save_pb2.ImportHeader())]  # as the save that it was
    messages += [save_pb2.ImportSaveRequest(chunk=chunk) for chunk in exported if chunk]
    restored = save_pb2.RestoreCheckpointRequest(save_id="slot", checkpoint_id=kept.checkpoint_id, expected_epoch=7)
    forked = save_pb2.ForkSaveRequest(save_id="slot", new_save_id="slot")
    gate = server.gate()
    server.play(stream("Well", gate, " met."))
    turn = game.start("Hello")
    assert next(turn).event.HasField("started")
    refused = [
        failure(lambda: saves.RestoreCheckpoint(restored)).reason,
        failure(lambda: restore(daemon.client, save_pb2.Checkpoint(checkpoint_id="none"))).reason,
        failure(lambda: saves.ForkSave(forked)).reason,
        failure(lambda: saves.ImportSave(iter(messages))).reason,
    ]
    assert refused == ["EPOCH_MISMATCH", "CHECKPOINT_NOT_FOUND", "SAVE_EXISTS", "SAVE_EXISTS"]
    gate.open()
    assert list(turn)[-1].event.completed.text == "Well met."


def test_a_turn_whose_game_does_not_read_its_answer_ends_too(daemon, game, server):
    kept = checkpoint(daemon.client)
    server.play(stream(*[f"{FUTURE} {'long ' * 20_000}"] * 150, server.gate()))
    turn = game.start(f"{FUTURE} question")
    next(iter(turn))
    assert restore(daemon.client, kept).ended == 1
    told = Turn()
    with pytest.raises(grpc.RpcError) as ended:
        list(turn)
    told.error = ended.value
    assert ended.value.code().name == "ABORTED"
    assert (told.code, told.failed.reason) == ("SAVE_CHANGED", "SAVE_RESTORED")
    assert TurnClient(daemon.client, MIRA).messages() == [("user", "Before"), ("assistant", "You said: Before")]


@pytest.mark.parametrize("strategy", [MODEL, compaction_pb2.COMPACTION_STRATEGY_UNSPECIFIED])
def test_a_summary_that_a_model_writes_is_thrown_away(daemon, game, server, strategy):
    chat = Chat(daemon.client)
    for number in range(20):
        chat.append(MIRA, ("user", f"common past {number}"), persist=True)
    kept = checkpoint(daemon.client)
    before, messages = chat.summary(MIRA), chat.texts(MIRA)
    for number in range(20):
        chat.append(MIRA, ("user", f"{FUTURE} {number}"), persist=True)
    gate = server.gate()
    server.play(stream(gate, f"{FUTURE} summary"))
    asked = len(server.turns)
    outcome = []

    def compact():
        outcome.append(failure(lambda: chat.compact(MIRA, strategy=strategy, force=True)))

    compacting = threading.Thread(target=compact)
    compacting.start()
    server.wait_for(asked + 1)
    restore(daemon.client, kept)
    gate.open()
    compacting.join()
    assert outcome[0].reason == "SAVE_RESTORED"
    for _ in range(2):
        chat = Chat(daemon.client)
        assert chat.summary(MIRA) == before
        assert chat.texts(MIRA) == messages
        assert nothing_of_the_future(daemon)
        daemon.restart()


@pytest.mark.embeds
def test_a_text_that_is_being_embedded_is_never_found(meaning, start_daemon):
    daemon = start_daemon(*meaning.settings())
    records = Records(daemon.client, MIRA)
    records.add(m("past", "feline"))
    records.until_ready(1)
    kept = checkpoint(daemon.client)
    meaning.hangs = lambda asked: any(FUTURE in text for text in asked.texts)
    records.add(m("future", f"feline {FUTURE}"))
    meaning.until_asked(FUTURE)
    restore(daemon.client, kept)
    meaning.released.set()
    records.add(m("present", "another feline"))
    for _ in range(2):
        records = Records(daemon.client, MIRA)
        found = []
        while found != ["past", "present"]:  # the second one once it has its vector
            found = sorted(records.found("cat", mode=search_pb2.SEARCH_MODE_HYBRID))
            assert "future" not in found
        assert records.found(FUTURE, mode=search_pb2.SEARCH_MODE_LEXICAL) == []
        assert records.status().ready == 2
        assert nothing_of_the_future(daemon)
        daemon.restart()


@pytest.mark.embeds
def test_every_search_tells_of_the_state_whose_epoch_it_names(meaning, start_daemon):
    daemon = start_daemon(*meaning.settings())
    client, records = daemon.client, Records(daemon.client, MIRA)
    records.add(m("past", "feline"))
    records.until_ready(1)
    kept = checkpoint(client)
    answers, failed, stop = [], [], threading.Event()

    def look():
        while not stop.is_set():
            try:
                answer = records.search("cat feline", limit=20)
                answers.append((answer.save.epoch, {hit.record.record_id for hit in answer.hits}))
            except grpc.RpcError as error:
                failed.append(error.code().name)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    epoch = 0
    for epoch in range(8):
        for number in range(3):
            records.add(m(f"future {epoch}", "feline") if not number else m(f"{epoch} {number}", "feline"))
        restored = restore(client, kept)
        assert restored.save.epoch == epoch + 1
        assert records.found("cat feline", limit=20) == ["past"]
    stop.set()
    for looker in lookers:
        looker.join()
    assert set(failed) <= {"ABORTED", "FAILED_PRECONDITION"}
    assert answers
    for told, ids in answers:
        assert ids <= {"past", f"future {told}", f"{told} 1", f"{told} 2"}, (told, ids)


@pytest.mark.embeds
def test_everything_at_once_is_the_past_again(meaning, server, start_daemon):
    daemon = start_daemon(*meaning.settings())
    client, game = daemon.client, TurnClient(daemon.client, MIRA, server)
    game.put_role(memory_tool=True)
    game.send("Before")
    records, chat = Records(client, MIRA), Chat(client)
    records.add(m("past", "feline"))
    records.until_ready(1)
    client.write(MIRA, "then")
    kept = checkpoint(client)
    for _ in range(3):
        gate = server.gate()
        server.play(stream(f"{FUTURE} answer", gate))
        turn = game.start(f"{FUTURE} question")
        while next(turn).event.WhichOneof("event") != "text":
            pass
        records.add(m("future", f"feline {FUTURE}"))
        client.append(MIRA, f"{FUTURE} memory")
        chat.append(MIRA, ("user", f"{FUTURE} line"), persist=True)
        chat.compaction.PutSummary(compaction_pb2.PutSummaryRequest(actor=MIRA, text=f"{FUTURE} summary"))
        restore(client, kept)
        gate.open()
        with pytest.raises(grpc.RpcError):
            list(turn)
        assert client.text(MIRA) == "then"
        assert chat.texts(MIRA) == ["Before", "You said: Before"]
        assert chat.summary(MIRA).text == ""
        assert records.found("cat feline") == ["past"]
        listed = client.memory.ListRecords(memory_pb2.ListRecordsRequest(actor=MIRA)).records
        assert [record.record_id for record in listed] == ["past"]
        assert nothing_of_the_future(daemon)
