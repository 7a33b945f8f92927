"""What a person may get wrong on the command line: each mistake is told in a sentence, with what to do."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from click.testing import CliRunner
from daemon_process import clean_environment, command

from sidecar.cli.commands import lorekeeper
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2

NOT_UTF8 = b"\xff\xfe"


def run(*arguments, **environment):
    """A command in a process of its own, as a shell starts it; its end."""
    words = [*command(), *arguments]
    return subprocess.run(
        words, capture_output=True, check=False, stdin=subprocess.DEVNULL, env=clean_environment(environment)
    )


def told(done):
    """What a command that failed says, which is no traceback."""
    said = done.stderr.decode()
    assert (done.returncode, "Traceback" in said) == (1, False), said
    return said


@pytest.mark.parametrize(
    "words",
    [
        ["search", "wolf", "--actor", NOT_UTF8],
        ["search", NOT_UTF8],
        ["index", "status", "--save", NOT_UTF8],
        ["checkpoint", "--name", NOT_UTF8],
        ["restore", NOT_UTF8, "--yes"],
        ["fork", NOT_UTF8],
        ["export", "--save", NOT_UTF8, "unwritten.zip"],
        ["erase", "save", NOT_UTF8, "--yes"],
        ["inspect", "prompt", "--line", NOT_UTF8],
    ],
    ids=lambda words: words[0],
)
def test_an_argument_that_is_no_text_is_told(daemon, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "UTF-8" in told(run(*words, "--data-dir", str(daemon.folder)))


@pytest.mark.parametrize("part", ["--save", "--actor"])
def test_an_id_that_is_no_text_is_told_where_files_are_read(tmp_path, part):
    assert "half a surrogate pair" in told(run("inspect", "document", part, NOT_UTF8, "--data-dir", str(tmp_path)))


def test_a_save_whose_id_is_too_long_is_told_where_files_are_read(tmp_path):
    assert "512" in told(run("inspect", "actors", "--save", "x" * 513, "--data-dir", str(tmp_path)))


@pytest.mark.parametrize("place", ["nowhere/save.zip", "x" * 300])
def test_a_file_that_cannot_be_made_is_named(daemon, tmp_path, place):
    daemon.client.write(common_pb2.Actor(actor_id="mira"), "known")
    assert place in told(run("export", str(tmp_path / place), "--data-dir", str(daemon.folder)))


def test_a_text_prints_where_the_pipe_lacks_its_letters(daemon):
    mira = common_pb2.Actor(actor_id="mira")
    daemon.client.write(mira, "田中 likes saffron.")
    words = ("inspect", "document", "--actor", "mira", "--data-dir", str(daemon.folder))
    done = run(*words, PYTHONIOENCODING="ascii")
    assert (done.returncode, b"likes saffron." in done.stdout) == (0, True), done.stderr


def test_no_colour_is_printed_where_the_person_wants_none(tmp_path):
    words = ["doctor", "--data-dir", str(tmp_path)]
    plain = CliRunner().invoke(lorekeeper, words, color=True, env={"NO_COLOR": "1"})
    assert "\x1b" in CliRunner().invoke(lorekeeper, words, color=True).output
    assert "\x1b" not in plain.output


def test_where_no_daemon_runs_the_command_that_starts_one_is_told(tmp_path):
    assert f"lorekeeper serve --data-dir {tmp_path}" in told(run("status", "--data-dir", str(tmp_path)))


@pytest.mark.parametrize("words", [["erase", "save", "default"], ["restore", "any"]])
def test_a_question_that_nobody_answers_changes_nothing_and_tells_of_yes(daemon, words):
    done = run(*words, "--json", "--data-dir", str(daemon.folder))
    assert ("--yes" in told(done), done.stdout) == (True, b"")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["search", "--timeline", "world", "--tick", "9" * 30], "--tick"),
        (["search", "--tick", "5"], "--timeline"),
        (["search", "--timeline", "world"], "--tick"),
        (["inspect", "prompt", "--window", "9" * 30], "--window"),
        (["serve", "--parent-pid", "0"], "--parent-pid"),
    ],
    ids=" ".join,
)
def test_an_option_out_of_its_range_is_named(tmp_path, words, named):
    done = run(*words, "--data-dir", str(tmp_path))
    assert (done.returncode, named in done.stderr.decode()) == (2, True)


def test_a_data_folder_without_a_name_is_not_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("serve", "--data-dir", "", "--stdin-lifeline")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert b"--data-dir" in done.stderr


def test_a_folder_whose_name_the_system_refuses_is_told(tmp_path):
    done = run("serve", "--data-dir", str(tmp_path / ("x" * 300)))
    assert (done.returncode, b"Traceback" in done.stderr) == (4, False)


@pytest.mark.parametrize("more", [[], ["--port", "0"]], ids=["as a game", "as a person"])
def test_a_data_folder_that_is_a_file_ends_the_daemon_with_4(tmp_path, more):
    file = tmp_path / "file"
    file.touch()
    done = run("serve", "--data-dir", str(file), "--stdin-lifeline", *more)
    assert (done.returncode, str(file) in done.stderr.decode()) == (4, True)


def test_a_language_that_nobody_knows_is_refused_at_the_start(tmp_path):
    done = run("serve", "--data-dir", str(tmp_path), "--set", "search.language=klingon")
    assert (done.returncode, b"english" in done.stderr) == (2, True)


def test_a_row_of_a_table_is_one_line_whatever_its_texts_hold(daemon):
    mira = common_pb2.Actor(actor_id="mira")
    record = memory_pb2.NewRecord(
        record_id="one",
        scope="personal",
        kind=memory_pb2.RECORD_KIND_EVENT,
        searchable_text="first\nsecond\x1b[31m",
        moment=common_pb2.Moment(timeline_id="world", tick=1),
    )
    daemon.client.memory.AddRecords(memory_pb2.AddRecordsRequest(actor=mira, records=[record]))
    done = run("inspect", "records", "--actor", "mira", "--data-dir", str(daemon.folder))
    assert done.stdout.decode().splitlines()[1].endswith("first second [31m")


def test_after_a_kill_status_says_that_nobody_runs_and_how_to_start(daemon):
    daemon.kill()
    assert (daemon.folder / "daemon.json").exists()
    said = told(run("status", "--data-dir", str(daemon.folder)))
    assert ("no daemon runs" in said, "lorekeeper serve" in said) == (True, True)


@pytest.mark.parametrize(
    "words", [["status"], ["erase", "save", "default", "--yes"], ["stop"]], ids=lambda words: words[0]
)
def test_a_copy_of_a_folder_is_not_taken_for_the_one_that_a_daemon_runs_on(daemon, tmp_path, words):
    mira = common_pb2.Actor(actor_id="mira")
    daemon.client.write(mira, "The player spared the wolf.")
    copy = tmp_path / "copy"
    shutil.copytree(daemon.folder, copy)
    assert f"no daemon runs on {copy}" in told(run(*words, "--data-dir", str(copy)))
    assert daemon.client.text(mira) == "The player spared the wolf."


def test_a_folder_is_known_by_another_name_of_it(daemon, tmp_path):
    (tmp_path / "link").symlink_to(daemon.folder)
    assert run("status", "--data-dir", str(tmp_path / "link")).returncode == 0
