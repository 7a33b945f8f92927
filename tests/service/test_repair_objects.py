"""``doctor``, ``repair`` and ``inspect`` on files that are JSON and do not say what they should, or are no files."""

from __future__ import annotations

import json
import os

import pytest
from client import failure
from daemon_process import run_command

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2
from sidecar.storage.keys import save_folder

MIRA = common_pb2.Actor(save_id="slot-1", actor_id="mira")


def found_by_doctor(folder):
    done = run_command("doctor", "--json", folder=folder)
    assert done.returncode == 1, done.stderr
    return [row["file"].rsplit("/", 1)[-1] for row in json.loads(done.stdout)]


@pytest.fixture
def folder(daemon):
    """A folder with two saves, a group and a checkpoint, and no daemon on it."""
    daemon.client.write(MIRA, "The player spared the wolf.")
    daemon.client.write(common_pb2.Actor(save_id="slot-2", actor_id="orin"), "The gate is shut.")
    group = memory_pb2.Group(group_id="town", members=[MIRA])
    daemon.client.memory.PutGroups(memory_pb2.PutGroupsRequest(save_id="slot-1", groups=[group]))
    daemon.client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id="slot-1"))
    assert daemon.stop() == 0
    return daemon.folder


def one(folder, name):
    """The file of this name that belongs to the first save, or to its checkpoint."""
    place = save_folder(folder, "slot-1")
    return next((folder / "checkpoints" if name == "checkpoint.json" else place).rglob(name))


def put(file, text):
    """Another text in this file alone: a checkpoint has the same bytes under another name."""
    file.unlink()
    file.write_text(text)


def damage(file, **values):
    put(file, json.dumps({**json.loads(file.read_bytes()), **values}))


@pytest.mark.parametrize("name", ["save.json", "actor.json", "groups.json", "checkpoint.json"])
def test_a_file_that_lacks_what_it_should_say_is_found(folder, name):
    put(one(folder, name), "{}")
    assert found_by_doctor(folder) == [name]


@pytest.mark.parametrize("content", ["{}", '{"format":null}', '{"format":[1]}', "broken"])
def test_a_format_file_that_tells_no_format_is_set_aside_and_the_daemon_starts(daemon, folder, content):
    (folder / "format.json").write_text(content)
    assert found_by_doctor(folder) == ["format.json"]
    assert run_command("repair", "--yes", folder=folder).returncode == 0
    assert daemon.start().client.text(MIRA) == "The player spared the wolf."


def test_a_checkpoint_that_lacks_a_file_is_found(folder):
    next((folder / "checkpoints").rglob("document.json")).unlink()
    assert found_by_doctor(folder) == ["checkpoint.json"]


def test_a_format_of_a_newer_version_is_left_alone(folder):
    (folder / "format.json").write_text('{"format":99}')
    done = run_command("repair", "--yes", folder=folder)
    assert (done.returncode, "newer Lorekeeper" in done.stderr) == (1, True)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes among files")
def test_what_is_no_file_is_found_and_hides_nothing_else(folder):
    document = one(folder, "document.json")
    document.unlink()
    os.mkfifo(document)
    roles = folder / "roles.json"
    roles.mkdir()
    put(one(folder, "groups.json"), "{}")
    assert sorted(found_by_doctor(folder)) == ["document.json", "groups.json", "roles.json"]


@pytest.mark.parametrize("values", [{"created": None}, {"timelines": "world"}, {"forked_by": [1]}])
def test_a_save_whose_file_is_damaged_is_data_loss_of_that_save_alone(daemon, folder, values):
    damage(one(folder, "save.json"), **values)
    client = daemon.start().client
    assert failure(lambda: client.text(MIRA)).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    saves = client.saves.ListSaves(save_pb2.ListSavesRequest()).saves
    assert [save.save_id for save in saves if save.status == common_pb2.LOAD_STATUS_LOADED] == ["slot-2"]


@pytest.mark.parametrize("name", ["save.json", "actor.json", "groups.json"])
def test_a_save_that_nothing_could_import_is_not_exported(daemon, folder, name):
    put(one(folder, name), "{}")
    saves = daemon.start().client.saves
    failed = failure(lambda: list(saves.ExportSave(save_pb2.ExportSaveRequest(save_id="slot-1"))))
    assert failed.kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert failed.metadata["file"].endswith(name)


def test_a_fork_of_a_damaged_save_names_the_file(daemon, folder):
    damage(one(folder, "save.json"), revision=None)
    saves = daemon.start().client.saves
    failed = failure(lambda: saves.ForkSave(save_pb2.ForkSaveRequest(save_id="slot-1", new_save_id="slot-3")))
    assert failed.kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert failed.metadata["file"].startswith("saves/")


def test_inspect_passes_over_files_that_a_system_leaves_beside_the_saves(folder):
    (folder / "saves" / ".DS_Store").write_text("x")
    done = run_command("inspect", "saves", "--json", folder=folder)
    assert [row["save"] for row in json.loads(done.stdout)] == ["slot-1", "slot-2"]


def test_inspect_names_a_save_file_that_cannot_be_read(folder):
    put(one(folder, "save.json"), "{}")
    done = run_command("inspect", "saves", folder=folder)
    assert (done.returncode, "Traceback" in done.stderr, "save.json" in done.stderr) == (1, False, True)


def test_a_repair_that_nobody_answers_changes_nothing_and_tells_of_yes(folder):
    (folder / "format.json").write_text("broken")
    done = run_command("repair", folder=folder)
    assert (done.returncode, "--yes" in done.stderr, "Aborted" in done.stderr) == (1, True, False)
    assert (folder / "format.json").read_text() == "broken"


def test_what_to_do_about_a_folder_names_the_folder(daemon, folder):
    put(one(folder, "groups.json"), "{}")
    assert f"lorekeeper repair --data-dir {folder}" in run_command("doctor", folder=folder).stdout
    daemon.start()
    assert f"lorekeeper stop --data-dir {folder}" in run_command("repair", folder=folder).stderr
