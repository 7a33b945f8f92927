"""``inspect chat`` and ``inspect prompt``, with a daemon and without one."""

from __future__ import annotations

import json
import subprocess

import pytest
from chat_client import Chat
from daemon_process import clean_environment, command

from sidecar.gen.lorekeeper.v1 import common_pb2

ACTOR = common_pb2.Actor(save_id="slot 1", actor_id="mira", role_id="SmartChat")
ADDRESS = ("--save", "slot 1", "--actor", "mira", "--role", "SmartChat")


def inspect(folder, *arguments, check=True):
    return subprocess.run(
        [*command(), "inspect", *arguments, "--data-dir", str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=clean_environment(),
        check=check,
    )


@pytest.fixture(params=["with a daemon", "without a daemon", "after a kill"])
def told(request, daemon):
    """A folder where Mira has talked."""
    chat = Chat(daemon.client)
    chat.talk(ACTOR, 45)
    chat.compact(ACTOR)
    daemon.client.write(ACTOR, "Ada likes fish.")
    if request.param == "without a daemon":
        assert daemon.stop() == 0
    if request.param == "after a kill":
        daemon.kill()
    return daemon.folder


def test_a_conversation_is_printed_with_its_summary(told):
    printed = inspect(told, "chat", *ADDRESS).stdout
    assert "summary, version 1" in printed
    assert "- user: line 0" in printed
    assert printed.rstrip().endswith("line 44")


def test_a_conversation_is_told_as_json(told):
    value = json.loads(inspect(told, "chat", *ADDRESS, "--json", "--limit", "2").stdout)
    assert [row["content"] for row in value["rows"]] == ["line 43", "line 44"]
    assert value["summary"].startswith("Previous conversation summary:")


def test_the_transcript_is_shown_on_request(told):
    value = json.loads(inspect(told, "chat", *ADDRESS, "--json", "--transcript", "--limit", "50").stdout)
    assert len(value["rows"]) == 45


def test_a_prompt_is_shown_by_section_with_bars(told):
    printed = inspect(told, "prompt", *ADDRESS, "--line", "Hello!", "--window", "2000").stdout.splitlines()
    assert "of 2000 tokens" in printed[0]
    names = [line.split("  ")[1] for line in printed if "#" in line]
    assert names[:4] == ["prefix", "tools", "summary", "recent messages"]
    assert {"memory", "player's line", "kept for the answer", "free"} <= set(names)
    assert any("cut: history_window" in line for line in printed)


def test_the_messages_of_a_prompt_are_printed_on_request(told):
    printed = inspect(told, "prompt", *ADDRESS, "--line", "Hello!", "--text").stdout
    assert "## Memory\nAda likes fish." in printed
    assert printed.rstrip().endswith("Hello!")


def test_a_prompt_is_told_as_json(told):
    value = json.loads(inspect(told, "prompt", *ADDRESS, "--json").stdout)
    assert value["messages"][0]["role"] == "system"


def test_looking_changes_nothing(told):
    before = {file: file.read_bytes() for file in (told / "saves").rglob("*") if file.is_file()}
    inspect(told, "chat", *ADDRESS)
    inspect(told, "prompt", *ADDRESS)
    assert {file: file.read_bytes() for file in (told / "saves").rglob("*") if file.is_file()} == before


def test_a_torn_end_is_left_as_it_is(daemon):
    Chat(daemon.client).talk(ACTOR, 2)
    assert daemon.stop() == 0
    (file,) = (daemon.folder / "saves").rglob("history.jsonl")
    file.write_bytes(file.read_bytes() + b'{"crc":"')
    before = file.read_bytes()
    assert "line 1" in inspect(daemon.folder, "chat", *ADDRESS).stdout
    assert file.read_bytes() == before


def test_nothing_was_said_yet(daemon):
    assert daemon.stop() == 0
    assert "Nothing was said yet" in inspect(daemon.folder, "chat", "--actor", "nobody").stderr


def test_a_folder_that_is_not_there_is_told(tmp_path):
    failed = inspect(tmp_path / "nowhere", "prompt", check=False)
    assert (failed.returncode, "no data folder" in failed.stderr) == (1, True)
