"""Disks that are full, read-only or damaged: a clear error, the old text intact, and life as soon as it can go on."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess

import pytest
from chat_client import Chat
from client import MEMORY, failure
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2, system_pb2

MIRA = common_pb2.Actor(save_id="slot 1", actor_id="mira")
BRAN = common_pb2.Actor(save_id="slot 1", actor_id="bran")


# --- a disk of our own


class SmallDisk:
    """A file system in memory of 2 MB, mounted for one test."""

    def __init__(self, path):
        self.path = path
        self._filler = path / "filler"

    def mount(self):
        self.path.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", self.path], capture_output=True)
        return mounted.returncode == 0, mounted.stderr.decode()

    def fill(self):
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4_096)

    def make_room(self):
        self._filler.unlink()

    def forbid(self, folder):
        """Make one folder read-only. A mount of its own: the whole disk has files that are open for writing."""
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)

    def allow(self, folder):
        subprocess.run(["umount", "-l", folder], check=True)

    def unmount(self):
        subprocess.run(["umount", "-l", self.path], check=True)


@pytest.fixture
def small_disk(tmp_path):
    disk = SmallDisk(tmp_path / "small")
    if os.name == "nt":
        pytest.skip("needs a file system in memory: Linux only")
    mounted, why = disk.mount()
    if not mounted:
        pytest.skip(f"needs to mount a file system in memory, which is not allowed here: {why.strip()}")
    yield disk
    disk.unmount()


@pytest.fixture
def on_small_disk(small_disk, start_daemon):
    """A daemon whose folder is on the small disk, with a document."""
    daemon = start_daemon(folder=small_disk.path / "data")
    daemon.client.write(MIRA, "one")
    return daemon


def test_a_full_disk_is_told_and_the_old_text_is_intact(on_small_disk, small_disk):
    small_disk.fill()
    told = failure(lambda: on_small_disk.client.write(MIRA, "x" * 100_000))
    assert told.kind == ("RESOURCE_EXHAUSTED", "STORAGE_FULL")
    assert (on_small_disk.client.text(MIRA), on_small_disk.client.read(MIRA).version) == ("one", 1)
    on_small_disk.kill()
    small_disk.make_room()
    on_small_disk.restart()
    assert on_small_disk.client.text(MIRA) == "one"


def test_a_full_disk_is_seen_in_health_and_diagnostics_until_there_is_room(on_small_disk, small_disk):
    client = on_small_disk.client
    watch = client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(codes=["storage_refuses"]), timeout=20)
    small_disk.fill()
    failure(lambda: client.write(MIRA, "x" * 100_000))
    assert next(watch).diagnostic.severity == system_pb2.DIAGNOSTIC_SEVERITY_ERROR
    watch.cancel()
    assert (client.serving(MEMORY), client.serving()) == (False, True)
    small_disk.make_room()
    assert client.write(MIRA, "y" * 100_000).version == 2
    assert client.serving(MEMORY)


def test_a_model_hears_of_a_full_disk_in_its_answer(on_small_disk, small_disk):
    small_disk.fill()
    answer = on_small_disk.client.call_tool(MIRA, {"action": "append", "content": "x" * 100_000})
    assert (answer["Success"], answer["Reason"], answer["Version"]) == (False, "STORAGE_FULL", 1)


def test_a_daemon_on_a_full_disk_ends_as_it_should(on_small_disk, small_disk):
    small_disk.fill()
    failure(lambda: on_small_disk.client.write(MIRA, "x" * 100_000))
    assert on_small_disk.stop() == 0
    assert on_small_disk.left_over() == set()


def test_a_start_on_a_full_disk_is_refused(make_daemon, small_disk):
    small_disk.fill()
    daemon = make_daemon(folder=small_disk.path / "data")
    daemon.launch()
    assert daemon.wait() == 4
    assert "full" in daemon.stderr
    assert "Traceback" not in daemon.stderr


@pytest.fixture
def read_only(on_small_disk, small_disk):
    """A daemon whose saves became read-only, and what makes them writable again."""
    saves = on_small_disk.folder / "saves"
    small_disk.forbid(saves)
    allowed = contextlib.ExitStack()
    allowed.callback(small_disk.allow, saves)
    with allowed:
        yield on_small_disk, allowed.close


def test_a_folder_that_became_read_only_is_told_and_reads_go_on(read_only):
    daemon, allow = read_only
    client = daemon.client
    for actor in (MIRA, BRAN, common_pb2.Actor(save_id="another")):
        assert failure(lambda actor=actor: client.write(actor, "two")).kind == (
            "FAILED_PRECONDITION",
            "STORAGE_READ_ONLY",
        )
        assert not client.serving(MEMORY)
    assert client.text(MIRA) == "one"
    allow()
    assert client.write(MIRA, "two").version == 2
    assert client.serving(MEMORY)


def test_a_folder_that_is_read_only_for_a_new_actor_is_seen_in_health(read_only):
    daemon, _ = read_only
    failure(lambda: daemon.client.write(BRAN, "two"))
    assert not daemon.client.serving(MEMORY)


def test_a_daemon_on_a_read_only_folder_ends_as_it_should(read_only):
    daemon, _ = read_only
    failure(lambda: daemon.client.write(MIRA, "two"))
    assert daemon.stop() == 0
    assert daemon.left_over() == set()


def test_a_start_on_a_read_only_folder_is_refused(make_daemon, small_disk):
    folder = small_disk.path / "data"
    folder.mkdir()
    small_disk.forbid(folder)
    daemon = make_daemon(folder=folder)
    daemon.launch()
    assert daemon.wait() == 4
    assert "Traceback" not in daemon.stderr
    small_disk.allow(folder)


# --- a folder that somebody removes


def test_a_save_whose_folder_is_removed_is_told_until_a_checkpoint_brings_it_back(daemon):
    client = daemon.client
    client.write(MIRA, "one")
    Records(client, MIRA).add(m("m1", "wolf"))
    kept = client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot 1")).checkpoint
    shutil.rmtree(daemon.folder / "saves")
    for call in (
        lambda: client.write(MIRA, "two"),
        lambda: Records(client, MIRA).add(m("m2", "fox")),
        lambda: Chat(client).append(MIRA, ("user", "hello"), persist=True),
        lambda: client.saves.PutSaveSettings(
            save_pb2.PutSaveSettingsRequest(save_id="slot 1", settings=save_pb2.SaveSettings(name="mine"))
        ),
    ):
        told = failure(call)
        assert told.kind == ("FAILED_PRECONDITION", "STORAGE_GONE")
        assert told.metadata["file"].startswith("saves/s-")
    checkpoint = failure(lambda: client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot 1")))
    assert checkpoint.kind == ("NOT_FOUND", "SAVE_NOT_FOUND")
    request = save_pb2.RestoreCheckpointRequest(save_id="slot 1", checkpoint_id=kept.checkpoint_id)
    assert not client.saves.RestoreCheckpoint(request).HasField("safety")
    assert client.text(MIRA) == "one"
    assert client.append(MIRA, "two").version == 2


# --- damage


@pytest.fixture
def damaged(daemon):
    """A daemon that was restarted after Mira's document was damaged; ``damaged(bytes)``."""

    def make(content):
        daemon.client.write(MIRA, "one")
        daemon.client.write(BRAN, "two")
        daemon.stop()
        file = next(path for path in daemon.folder.rglob("document.json") if b'"one"' in path.read_bytes())
        file.write_bytes(content)
        daemon.start()
        return daemon.client, file

    return make


DAMAGE = [
    b"",
    b'{"format":1,"exists":true,"te',
    b"\0" * 300,
    b"[]",
    b"{}",
    b'{"format":1,"exists":true,"text":5,"versions":[],"answers":[]}',
    b'{"format":1,"exists":true,"text":"\\ud800","versions":[],"answers":[]}',
    b'{"format":1,"exists":true,"text":"","answers":[],"versions":[{"version":1e999}]}',
]


@pytest.mark.parametrize("content", DAMAGE)
def test_a_damaged_document_is_data_loss_of_that_actor_alone_and_stays_as_it_is(damaged, content):
    client, file = damaged(content)
    for call in (
        lambda: client.text(MIRA),
        lambda: client.write(MIRA, "new"),
        lambda: client.versions(MIRA),
        lambda: client.memory.RevertDocument(memory_pb2.RevertDocumentRequest(actor=MIRA, version=1)),
    ):
        told = failure(call)
        assert told.kind == ("DATA_LOSS", "DOCUMENT_UNREADABLE")
        assert told.metadata["file"].endswith("document.json")
    assert file.read_bytes() == content
    assert client.text(BRAN) == "two"
    assert client.append(BRAN, "three").version == 2


def test_a_model_hears_that_its_memory_cannot_be_read_and_not_that_it_is_empty(damaged):
    client, file = damaged(b"{")
    for action in ("read", "append"):
        answer = client.call_tool(MIRA, {"action": action, "content": "new"})
        assert (answer["Success"], answer["Reason"], answer["Memory"]) == (False, "DOCUMENT_UNREADABLE", None)
    assert file.read_bytes() == b"{"


def test_a_list_of_actors_tells_which_document_cannot_be_read(damaged):
    client, _ = damaged(b"{")
    listed = client.memory.ListActors(memory_pb2.ListActorsRequest(save_id="slot 1")).actors
    assert {one.actor.actor_id: one.document_status for one in listed} == {
        "mira": common_pb2.LOAD_STATUS_FAILED,
        "bran": common_pb2.LOAD_STATUS_LOADED,
    }


@pytest.mark.parametrize("expected", [{}, {"expected_version": 7}])
def test_a_reset_heals_a_damaged_document(damaged, expected):
    client, _ = damaged(b"{")
    assert client.memory.ResetDocument(memory_pb2.ResetDocumentRequest(actor=MIRA, **expected)).existed is True
    assert client.read(MIRA).status == common_pb2.LOAD_STATUS_NOT_FOUND
    assert client.write(MIRA, "new").version == 1


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege there")
def test_a_document_that_is_a_link_is_refused_and_what_it_leads_to_untouched(damaged, tmp_path):
    client, file = damaged(b"{")
    secret = tmp_path / "secret"
    secret.write_text('{"format":1}', encoding="utf-8")
    file.unlink()
    file.symlink_to(secret)
    assert failure(lambda: client.text(MIRA)).code.name == "DATA_LOSS"
    assert secret.read_text("utf-8") == '{"format":1}'


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes in folders there")
def test_a_document_that_is_a_pipe_is_refused_and_nobody_waits_for_it(damaged):
    client, file = damaged(b"{")
    file.unlink()
    os.mkfifo(file)
    assert failure(lambda: client.text(MIRA)).code.name == "DATA_LOSS"
    assert client.text(BRAN) == "two"


@pytest.mark.parametrize("content", ["{", '{"format":1}', "[]"])
@pytest.mark.parametrize("name", ["save.json", "actor.json"])
def test_a_damaged_file_beside_a_document_is_data_loss_and_stays(daemon, name, content):
    daemon.client.write(MIRA, "one")
    daemon.stop()
    file = next(daemon.folder.rglob(name))
    file.write_text(content, encoding="utf-8")
    daemon.start()
    told = failure(lambda: daemon.client.write(MIRA, "two"))
    assert told.kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert file.read_text("utf-8") == content


# --- a session


def test_a_session_remembers_and_leaves_nothing_on_the_disk(start_daemon):
    daemon = start_daemon("--set", "storage.mode=session")
    assert daemon.client.system.GetInfo(system_pb2.GetInfoRequest()).persistent is False
    daemon.client.write(MIRA, "secret")
    daemon.client.append(MIRA, "more", idempotency_key="k")
    assert daemon.client.text(MIRA) == "secret\nmore"
    assert [one.version for one in daemon.client.versions(MIRA).versions] == [1, 2]
    assert {path.name for path in daemon.folder.iterdir()} == {"daemon.json", "daemon.lock"}
    daemon.stop()
    assert list(daemon.folder.iterdir()) == []
    daemon.start()
    assert daemon.client.read(MIRA).status == common_pb2.LOAD_STATUS_NOT_FOUND


def test_a_relaxed_daemon_keeps_what_it_told_through_a_kill_of_the_process(start_daemon):
    daemon = start_daemon("--set", "storage.durability=relaxed")
    daemon.client.write(MIRA, "one")
    daemon.kill()
    daemon.restart()
    assert daemon.client.text(MIRA) == "one"


def test_an_index_behind_a_link_is_not_used_and_answers_come_from_the_journals(make_daemon, actor, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "index").symlink_to(tmp_path / "outside")
    daemon = make_daemon().start()
    records = Records(daemon.client, actor)
    records.add(m("m1", "wolf"))
    assert records.found("wolf") == ["m1"]
    daemon.restart()
    records = Records(daemon.client, actor)
    assert records.found("wolf") == ["m1"]
    assert records.status().terms_ready == 0
    watched = daemon.client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(after_sequence=0), timeout=30)
    assert any(event.diagnostic.code == "index_unusable" for event in watched)
    daemon.stop()
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    "torn", [b'{"crc":"36c635a8","row":{"n":2,"op":"forget","ids":["fi', b'{"crc":"0","row":{"op":"add"']
)
def test_a_torn_end_of_a_journal_counts_for_nothing_in_the_list_of_saves(daemon, actor, torn):
    Records(daemon.client, actor).add(m("first"))
    assert daemon.stop() == 0
    (journal,) = daemon.folder.rglob("records.jsonl")
    journal.write_bytes(journal.read_bytes() + torn)
    (info,) = daemon.start().client.saves.ListSaves(save_pb2.ListSavesRequest()).saves
    assert info.records == 1
