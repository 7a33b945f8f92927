"""After an erasure no byte of the data folder tells of what was erased: every kind of thing that is kept, once each."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path

import grpc
import numpy as np
import pytest
from chat_client import Chat
from client import failure
from fake_meaning import fake_meaning
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, compaction_pb2, memory_pb2, save_pb2
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.journal import Journal

pytestmark = pytest.mark.embeds

# Made of words that nothing else has; an index keeps them in lower case, and stemmed: these have no endings.
MARK = "zyxq"
VECTOR = [0.6, 0.8]
VECTOR_BYTES = np.array(VECTOR, "<f4").tobytes()


def holding(folder, *words):
    """The files whose name or content has any of ``words``, whatever its case."""
    marks = [word if isinstance(word, bytes) else word.lower().encode() for word in words]
    return sorted(
        path.relative_to(folder).as_posix()
        for path in Path(folder).rglob("*")
        if path.is_file() and any(mark in (path.name.encode() + path.read_bytes()).lower() for mark in marks)
    )


def doomed(save="slot"):
    return common_pb2.Actor(save_id=save, actor_id=f"{MARK}actor", player_id=f"{MARK}player")


def friend(save="slot"):
    return common_pb2.Actor(save_id=save, actor_id="friend")


@pytest.fixture
def meaning():
    with fake_meaning() as server:
        server.vector = lambda text: VECTOR if MARK in text else [0.0, 1.0]
        yield server


@pytest.fixture
def lived(meaning, start_daemon):
    """A daemon in which an actor has left a trace of every kind, also with another actor and in a checkpoint."""
    daemon = start_daemon(*meaning.settings(chat__max_messages=2))
    for save in ("slot", "second slot"):
        leave_traces(daemon, save)
    assert VECTOR_BYTES in b"".join(path.read_bytes() for path in (daemon.folder / "index").iterdir())
    return daemon


def leave_traces(daemon, save):
    client, who = daemon.client, doomed(save)
    client.write(who, f"{MARK}document", idempotency_key=f"{MARK}key")
    client.append(who, f"{MARK}line")
    converse(Chat(client), who)
    records = Records(client, who)
    remember(records, friend(save))
    kept = client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=save, name="then")).checkpoint
    records.add(m(f"{MARK}late", f"{MARK}future"), idempotency_key=f"{MARK}key")
    records.until_ready(5)
    request = save_pb2.RestoreCheckpointRequest(save_id=save, checkpoint_id=kept.checkpoint_id)
    client.saves.RestoreCheckpoint(request)
    exported = client.saves.ExportSave(save_pb2.ExportSaveRequest(save_id=save))
    data = b"".join(message.chunk for message in exported)
    header = save_pb2.ImportHeader(save_id=save, conflict=save_pb2.IMPORT_CONFLICT_REPLACE)
    messages = [save_pb2.ImportSaveRequest(header=header), save_pb2.ImportSaveRequest(chunk=data)]
    client.saves.ImportSave(iter(messages))
    records.found(f"{MARK}text {MARK}query")


def converse(chat, who):
    chat.put_role("Creator", archive=True)
    for part in ("first", "second", "third", "fourth"):
        chat.append(who, ("user", f"{MARK}{part}"), persist=True, idempotency_key=f"{MARK}{part}")
    call = chat_pb2.TranscriptEntry(
        kind=chat_pb2.TRANSCRIPT_KIND_TOOL_CALL, key="give", content=f"{MARK}call", call_id=f"{MARK}id"
    )
    chat.record(who, call, persist=True)
    summary = compaction_pb2.PutSummaryRequest(actor=who, text=f"{MARK}summary", idempotency_key=f"{MARK}key")
    chat.compaction.PutSummary(summary)


def remember(records, friend):
    who = records.actor
    own = m(
        f"{MARK}id",
        f"{MARK}text",
        tags=[f"{MARK}tag"],
        metadata={f"{MARK}name": f"{MARK}value"},
        source_input_id=f"{MARK}source",
        conversation_id=f"{MARK}talk",
        speaker=f"{MARK}speaker",
        payload_json=f'{{"{MARK}field":"{MARK}payload"}}',
    )
    records.add(own, m(f"{MARK}gone", f"{MARK}forgotten"), idempotency_key=f"{MARK}batch")
    members = [who, friend]
    group = memory_pb2.Group(group_id="guild", members=members)
    records.memory.PutGroups(memory_pb2.PutGroupsRequest(save_id=who.save_id, groups=[group]))
    told = memory_pb2.Share(recipient=who, kind=memory_pb2.SHARE_KIND_WITNESS)
    heard = memory_pb2.Share(
        recipient=common_pb2.Actor(save_id=who.save_id, actor_id="fox"), kind=memory_pb2.SHARE_KIND_HEARSAY, told_by=who
    )
    records.add(m("shared", "a feast", shares=[told, heard]), actor=friend)
    records.until_ready(5)
    records.forget(f"{MARK}gone")


def erase_actor(client, **more):
    request = memory_pb2.EraseActorRequest(actor=doomed(), **more)
    return client.memory.EraseActor(request).erased


def test_nothing_of_an_erased_player_is_left_in_any_file_of_any_save(lived):
    answer = lived.client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id=f"{MARK}player"))
    assert [info.save_id for info in answer.saves] == ["second slot", "slot"]
    assert answer.erased.vectors == 3
    assert holding(lived.folder, MARK, VECTOR_BYTES) == []
    lived.stop()
    assert holding(lived.folder.parent, MARK, VECTOR_BYTES) == []


def test_nothing_of_an_actor_that_is_erased_in_each_save_is_left_in_any_file(lived):
    assert erase_actor(lived.client, dry_run=True).vectors == 0
    assert erase_actor(lived.client).vectors == 0
    request = memory_pb2.EraseActorRequest(actor=doomed("second slot"))
    assert lived.client.memory.EraseActor(request).erased.vectors == 3
    assert holding(lived.folder, MARK, VECTOR_BYTES) == []
    assert Records(lived.client, friend()).listed() == ["shared"]
    lived.restart()
    assert holding(lived.folder, MARK, VECTOR_BYTES) == []


def test_nothing_of_erased_saves_is_left_in_any_file(lived):
    vectors = []
    for save in ("slot", "second slot"):
        erased = lived.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id=save)).erased
        vectors.append(erased.vectors)
    assert vectors == [0, 4]
    assert holding(lived.folder, MARK, VECTOR_BYTES, "second slot") == []


def test_vectors_go_that_were_made_before_a_restart(lived, meaning):
    lived.restart()
    counted = lived.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot", dry_run=True)).erased
    assert counted.vectors == 0
    lived.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="second slot"))
    counted = lived.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot", dry_run=True)).erased
    assert counted.vectors == 4
    lived.restart()
    assert lived.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot")).erased.vectors == 4
    assert holding(lived.folder, MARK, VECTOR_BYTES) == []


def test_a_fork_that_was_never_used_keeps_its_vectors_when_the_save_that_it_came_from_is_erased(lived, meaning):
    client = lived.client
    client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="second slot"))
    client.saves.ForkSave(save_pb2.ForkSaveRequest(save_id="slot", new_save_id="fork"))
    assert client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot")).erased.vectors == 0
    embedded = meaning.texts()
    records = Records(client, doomed("fork"))
    records.until_ready(4)
    assert meaning.texts() == embedded


def test_a_vector_that_comes_back_after_its_text_was_erased_is_not_kept(meaning, start_daemon):
    daemon = start_daemon(*meaning.settings())
    meaning.hangs = lambda asked: any(MARK in text for text in asked.texts)
    Records(daemon.client, doomed()).add(m("r", f"{MARK}text"))
    meaning.until_asked(MARK)
    daemon.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot"))
    meaning.released.set()
    other = Records(daemon.client, friend("other"))
    other.add(m("r", "a feast"))
    other.until_ready(1)
    assert holding(daemon.folder, MARK, VECTOR_BYTES) == []


def erase_save(client):
    client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id="slot"))


def erase_player(client):
    client.saves.ErasePlayer(save_pb2.ErasePlayerRequest(player_id=f"{MARK}player"))


ERASURES = pytest.mark.parametrize("erase", [erase_save, erase_actor, erase_player])


@ERASURES
def test_an_export_that_is_under_way_ends_with_what_it_would_have_told(daemon, erase):
    for number in range(32):  # more than is sent before anybody asks
        text = "".join(random.Random(number).choices("abcdefgh", k=150_000))
        daemon.client.write(common_pb2.Actor(save_id="slot", actor_id=f"friend {number}"), text)
    daemon.client.write(doomed(), f"{MARK}document")
    exported = daemon.client.saves.ExportSave(save_pb2.ExportSaveRequest(save_id="slot"))
    assert next(exported).HasField("header")
    assert len(holding(daemon.folder, f"{MARK}document")) == 2
    erase(daemon.client)
    assert holding(daemon.folder, MARK) == []
    assert failure(lambda: list(exported)).kind == ("ABORTED", "SAVE_RESTORED")


@ERASURES
def test_what_a_kill_left_of_a_write_goes_too(daemon, erase):
    daemon.client.write(doomed(), f"{MARK}document")
    daemon.client.write(friend(), "stays")
    daemon.kill()
    (save,) = Path(daemon.folder, "saves").iterdir()
    (save / "groups.json.tmp").write_text(f"{MARK}actor")
    for name in save.glob("a-*"):
        (name / "records.jsonl.tmp").write_text(f"{MARK}actor")
    erase(daemon.start().client)
    assert holding(daemon.folder, MARK) == []


@ERASURES
def test_records_that_never_reached_a_damaged_journal_go_too(daemon, erase):
    records, others = Records(daemon.client, doomed()), Records(daemon.client, friend())
    records.add(m("old", f"{MARK}old"))
    daemon.stop()
    (save,) = Path(daemon.folder, "saves").iterdir()
    (journal,) = save.rglob("records.jsonl")
    journal.write_bytes(b"broken\n" + journal.read_bytes())
    address = [f"{MARK}actor", "Creator", f"{MARK}player"]
    Journal(FileDisk(daemon.folder), save / "inbox.jsonl").append([{"owner": address, "rows": [{"n": 9, "op": "end"}]}])
    client = daemon.start().client
    others = Records(client, friend())
    others.add(m("other", "a feast"))
    client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot"))
    erase(client)
    assert holding(daemon.folder, MARK) == []


@ERASURES
def test_nothing_is_left_where_a_kill_broke_the_erasure_off(meaning, start_daemon, erase):
    daemon = start_daemon(*meaning.settings(chat__max_messages=2))
    leave_traces(daemon, "slot")
    asking = threading.Thread(target=answered_or_not, args=(erase, daemon.client), daemon=True)
    asking.start()
    while asking.is_alive() and not list(daemon.folder.glob("exchange/e-*.json")):
        pass
    daemon.kill()
    asking.join()
    daemon.start()
    assert holding(daemon.folder, MARK, VECTOR_BYTES) == []


def answered_or_not(call, client):
    with suppress(grpc.RpcError):
        call(client)
