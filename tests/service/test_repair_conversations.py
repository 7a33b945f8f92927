"""``doctor`` and ``repair`` on damaged conversations."""

from __future__ import annotations

import json

import pytest
from chat_client import Chat
from daemon_process import run_command

from sidecar.gen.lorekeeper.v1 import common_pb2

ACTOR = common_pb2.Actor(actor_id="mira", role_id="SmartChat")


def run(name, folder, *arguments):
    return run_command(name, "--json", *arguments, folder=folder)


@pytest.fixture
def folder(daemon):
    """A folder with a conversation that was folded, and no daemon on it."""
    chat = Chat(daemon.client)
    chat.talk(ACTOR, 45)
    chat.talk(ACTOR, 3, first=45)
    chat.compact(ACTOR)
    assert daemon.stop() == 0
    return daemon.folder


def one(folder, name):
    (file,) = (folder / "saves").rglob(name)
    return file


def damaged(file):
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:10], lines[10][:-20] + b"x" * 19 + b"\n", *lines[11:]]))
    return file.read_bytes()


def test_nothing_is_wrong_with_a_whole_conversation(folder):
    assert run("doctor", folder).stdout.strip() == "[]"


@pytest.mark.parametrize("content", ["{broken", "{}"])
@pytest.mark.parametrize("name", ["roles.json", "backends.json"])
def test_roles_and_backends_that_cannot_be_read_are_set_aside(daemon, folder, name, content):
    (folder / name).write_text(content)
    (found,) = json.loads(run("doctor", folder).stdout)
    assert found["file"] == name
    assert run("repair", folder, "--yes").returncode == 0
    assert (folder / "repaired" / f"{name}.0").read_text() == content
    assert Chat(daemon.start().client).put_role("Guard").effective.role_id == "Guard"


@pytest.mark.parametrize("name", ["history.jsonl", "records.jsonl"])
def test_a_bad_line_is_found_and_the_others_are_kept(daemon, folder, name):
    bad = damaged(one(folder, name))
    (found,) = json.loads(run("doctor", folder).stdout)
    assert "1 of its lines cannot be read" in found["problem"]
    assert one(folder, name).read_bytes() == bad
    assert run("repair", folder, "--yes").returncode == 0
    assert run("doctor", folder).stdout.strip() == "[]"
    (kept,) = (folder / "repaired").rglob(f"{name}*")
    assert kept.read_bytes() == bad
    chat = Chat(daemon.start().client)
    lost = {"line 10"} if name == "history.jsonl" else set()
    assert set(chat.texts(ACTOR)) == {f"line {n}" for n in range(48)} - lost
    chat.talk(ACTOR, 2, first=48)
    assert chat.texts(ACTOR)[-1] == "line 49"


def test_a_damaged_summary_is_set_aside_and_made_again(daemon, folder):
    one(folder, "summary.json").write_bytes(b"{broken")
    assert "summary cannot be read" in json.loads(run("doctor", folder).stdout)[0]["problem"]
    assert run("repair", folder, "--yes").returncode == 0
    chat = Chat(daemon.start().client)
    assert chat.compact(ACTOR).compacted
    assert "line 0" in chat.summary(ACTOR).text


def test_a_torn_end_is_nothing_to_mend(folder):
    file = one(folder, "history.jsonl")
    file.write_bytes(file.read_bytes() + b'{"crc":"')
    assert run("doctor", folder).stdout.strip() == "[]"
