"""The life of the process: its line, its folder, who owns it, what ends it, and how it says why it did not start."""

from __future__ import annotations

import json
import os
import queue
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import psutil
import pytest
from client import append, failure
from daemon_process import END_SECONDS, clean_environment, command, wait_for_file
from grpc_health.v1 import health_pb2

from sidecar.daemon.handshake import read_file
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, system_pb2

ACTOR = common_pb2.Actor(actor_id="mira")
POSIX = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


def refused(make_daemon, *arguments, **more):
    """The exit code and what standard error says of a start that must not succeed."""
    daemon = make_daemon(*arguments, **more)
    daemon.launch()
    code = daemon.wait()
    assert daemon.next_line() == "", "a start that fails writes nothing to standard output"
    assert "Traceback" not in daemon.stderr
    return code, daemon.stderr


# --- the line


def test_the_line_tells_address_token_process_version_and_folder(daemon):
    told = daemon.handshake
    assert list(told) == ["lorekeeper", "address", "token", "pid", "version", "data_dir"]
    assert (told["lorekeeper"], told["data_dir"]) == (1, os.path.realpath(daemon.folder))
    assert told["address"].startswith("127.0.0.1:")
    assert len(told["token"]) >= 32
    assert daemon.client.system.GetInfo(system_pb2.GetInfoRequest()).pid == told["pid"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of folders are Unicode")
def test_a_folder_whose_name_is_no_text_is_served_and_attached_to(start_daemon, tmp_path):
    folder = tmp_path / os.fsdecode(b"lore\xff")
    first = start_daemon(folder=folder)
    assert first.client.system.GetInfo(system_pb2.GetInfoRequest()).data_dir.endswith("lore\ufffd")
    second = start_daemon(folder=folder)
    assert (second.handshake["reused"], second.wait()) == (True, 0)


def test_the_line_is_the_first_and_only_one_on_standard_output(daemon):
    daemon.client.write(ACTOR, "one")
    assert daemon.stop() == 0
    assert daemon.next_line() == ""


def test_the_token_is_new_with_every_start_and_stands_in_no_argument(daemon):
    first = daemon.token
    assert first not in " ".join(psutil.Process(daemon.pid).cmdline())
    assert daemon.restart().token != first


def test_the_same_line_is_in_the_folder_for_the_user_alone_until_the_end(daemon):
    file = daemon.folder / "daemon.json"
    assert json.loads(file.read_text("utf-8")) == daemon.handshake
    if os.name != "nt":
        assert file.stat().st_mode & 0o777 == 0o600
        assert daemon.folder.stat().st_mode & 0o777 == 0o700
    daemon.stop()
    assert not file.exists()


@POSIX
def test_all_that_the_daemon_stores_is_private_to_the_user(daemon):
    daemon.client.write(ACTOR, "one")
    daemon.stop()
    for path in daemon.folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


# --- its end


def test_it_ends_when_standard_input_closes_also_with_a_stream_open(daemon):
    stream = daemon.client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(after_sequence=0))
    next(stream)
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.stderr
    assert daemon.left_over() == set()


def test_it_ends_at_once_where_standard_input_is_closed_from_the_start(tmp_path):
    arguments = [*command(), "serve", "--data-dir", str(tmp_path / "data"), "--stdin-lifeline"]
    done = subprocess.run(
        arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=END_SECONDS, env=clean_environment()
    )
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)
    assert b"Traceback" not in done.stderr


def test_what_comes_in_on_standard_input_means_nothing(daemon):
    daemon.process.stdin.write(b"quit\n\x00\xff" * 10_000)
    daemon.process.stdin.flush()
    assert daemon.client.write(ACTOR, "one").version == 1


@POSIX
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_it_cleanly(daemon, name):
    daemon.client.write(ACTOR, "one")
    daemon.signal(getattr(signal, name))
    assert daemon.wait() == 0
    assert "Traceback" not in daemon.stderr
    assert daemon.left_over() == set()


def test_a_call_ends_it_and_tells_how_many_others_were_running(daemon):
    response = daemon.client.system.Shutdown(system_pb2.ShutdownRequest(reason="test"))
    assert (response.running_calls, response.already_stopping) == (0, False)
    assert daemon.wait() == 0
    assert daemon.left_over() == set()


def test_the_stop_command_waits_for_the_end_also_where_nobody_collects_the_process(daemon):
    done = subprocess.run([*command(), "stop", "--data-dir", str(daemon.folder)], check=False, timeout=END_SECONDS)
    assert (done.returncode, daemon.wait(), daemon.left_over()) == (0, 0, set())


def test_running_streams_and_aborted_calls_do_not_delay_the_end(start_daemon):
    daemon = start_daemon("--set", "daemon.drain_seconds=300")
    streams = [daemon.client.system.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest()) for _ in range(3)]
    health = daemon.client.health.Watch(health_pb2.HealthCheckRequest())
    next(health)
    failure(lambda: daemon.client.write(ACTOR, ""))
    daemon.client.system.Shutdown(system_pb2.ShutdownRequest())
    assert daemon.wait() == 0
    assert all(stream.code() is not None for stream in streams)


def test_calls_that_run_at_the_end_are_finished_or_refused_and_none_is_lost(daemon):
    client = daemon.client
    calls = [client.memory.EditDocument.future(_appending(f"fact {number}")) for number in range(200)]
    client.system.Shutdown(system_pb2.ShutdownRequest())
    told = [number for number, call in enumerate(calls) if call.exception() is None]
    refused_with = {call.code() for call in calls if call.exception() is not None}
    assert daemon.wait() == 0
    daemon.start()
    kept = daemon.client.text(ACTOR).split("\n")
    assert {f"fact {number}" for number in told} <= set(kept)
    assert refused_with <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


def test_a_call_that_its_client_gives_up_is_done_whole_or_not_at_all(daemon):
    calls = [daemon.client.memory.EditDocument.future(_appending(f"fact {number}\nend")) for number in range(200)]
    for call in calls[::2]:
        call.cancel()
    for call in calls[1::2]:
        call.result()
    lines = daemon.client.text(ACTOR).split("\n")
    assert lines[1::2] == ["end"] * (len(lines) // 2)
    assert {f"fact {number}" for number in range(1, 200, 2)} <= set(lines[::2])


def _appending(text):
    return memory_pb2.EditDocumentRequest(actor=ACTOR, edits=[append(text)])


def test_a_client_that_is_gone_leaves_its_place_to_others(start_daemon):
    daemon = start_daemon("--set", "daemon.max_watchers=1")
    request = system_pb2.WatchDiagnosticsRequest(after_sequence=0)
    gone = daemon.connect()
    next(gone.system.WatchDiagnostics(request))
    gone.close()
    for _ in range(100):
        try:
            assert next(daemon.connect().system.WatchDiagnostics(request)).diagnostic.sequence == 1
            break
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    else:
        raise AssertionError("its place was never free again")


# A game: starts the daemon with its own pid, passes the line on, and waits to be killed.
GAME = """
import os, subprocess, sys
daemon = subprocess.Popen([*sys.argv[1:], "--parent-pid", str(os.getpid())], stdin=subprocess.DEVNULL)
daemon.wait()
"""


def wait_until_ended(process, *, seconds):
    """Wait for a process that is no child of ours; where the system can tell, also before anybody has collected it."""
    if not hasattr(os, "pidfd_open"):
        process.wait(timeout=seconds)
        return
    descriptor = os.pidfd_open(process.pid)
    try:
        assert select.select([descriptor], [], [], seconds)[0], f"it still runs after {seconds} seconds"
    finally:
        os.close(descriptor)


@pytest.fixture
def game(tmp_path):
    """A process that runs a daemon, the daemon's pid, and what stands in its handshake."""
    arguments = [sys.executable, "-c", GAME, *command(), "serve", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=clean_environment()) as process:
        lines = queue.Queue()
        threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()
        told = json.loads(lines.get(timeout=20))
        yield process, psutil.Process(told["pid"])
        process.kill()


def test_it_is_gone_within_two_seconds_of_its_parents_crash(game, tmp_path):
    parent, daemon = game
    parent.kill()
    parent.wait()
    wait_until_ended(daemon, seconds=2)
    assert {path.name for path in (tmp_path / "data").iterdir()} <= {"format.json", "logs"}


@POSIX
def test_a_parent_that_nobody_has_collected_is_dead_all_the_same(game):
    parent, daemon = game
    parent.kill()
    assert psutil.Process(parent.pid).status() == psutil.STATUS_ZOMBIE or parent.poll() is None
    wait_until_ended(daemon, seconds=2)


def test_a_parent_that_was_gone_before_the_start_ends_it_at_once(make_daemon):
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    daemon = make_daemon("--parent-pid", str(gone.pid))
    daemon.launch()
    assert daemon.wait() == 0


# --- who owns the folder


def test_ten_starts_at_once_make_one_daemon_and_nine_that_attach(make_daemon, tmp_path):
    daemons = [make_daemon() for _ in range(10)]
    for daemon in daemons:
        daemon.launch()
    lines = [json.loads(daemon.next_line()) for daemon in daemons]
    assert len({line["address"] for line in lines}) == 1
    assert len({line["token"] for line in lines}) == 1
    reused = [daemon for daemon, line in zip(daemons, lines, strict=True) if line.get("reused")]
    assert len(reused) == 9
    assert [daemon.wait() for daemon in reused] == [0] * 9
    assert sum(daemon.running for daemon in daemons) == 1


def test_a_second_start_attaches_and_serves_nobody_else(daemon, make_daemon):
    second = make_daemon().start()
    assert second.handshake == {**daemon.handshake, "reused": True}
    assert second.wait() == 0
    assert daemon.client.write(ACTOR, "one").version == 1


@POSIX
def test_a_daemon_whose_lock_file_somebody_removed_still_owns_its_folder(daemon, make_daemon):
    (daemon.folder / "daemon.lock").unlink()
    second = make_daemon().start()
    assert second.handshake == {**daemon.handshake, "reused": True}
    assert second.wait() == 0
    assert daemon.client.write(ACTOR, "one").version == 1


def test_the_line_in_a_copy_of_a_folder_leads_nobody_to_the_daemon_of_the_original(daemon, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(daemon.folder, copy)
    assert read_file(daemon.folder).pid == daemon.pid
    assert read_file(copy) is None


def test_a_stale_file_with_the_pid_of_another_program_fools_nobody(make_daemon, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    stale = {"lorekeeper": 1, "address": "127.0.0.1:9", "token": "old", "pid": os.getpid(), "version": "0.1.0"}
    (folder / "daemon.json").write_text(json.dumps({**stale, "data_dir": str(folder)}), encoding="utf-8")
    (folder / "daemon.lock").write_text(str(os.getpid()), encoding="utf-8")
    daemon = make_daemon().start()
    assert (daemon.handshake["pid"], daemon.handshake["token"] != "old") == (daemon.pid, True)


@pytest.mark.parametrize("content", ["", "nonsense", "[]", '{"lorekeeper": 2}', '{"lorekeeper": 1, "pid": {}}'])
def test_a_damaged_file_of_an_earlier_daemon_is_in_nobodys_way(make_daemon, tmp_path, content):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "daemon.json").write_text(content, encoding="utf-8")
    assert make_daemon().start().client.write(ACTOR, "one").version == 1


def test_after_a_kill_the_next_start_owns_the_folder(daemon):
    daemon.client.write(ACTOR, "one")
    daemon.kill()
    assert "reused" not in daemon.restart().handshake
    assert daemon.client.text(ACTOR) == "one"


@POSIX
def test_an_owner_that_hangs_is_named_and_left_alone(daemon, make_daemon):
    daemon.signal(signal.SIGSTOP)
    code, told = refused(make_daemon, "--set", "daemon.attach_seconds=1")
    daemon.signal(signal.SIGCONT)
    assert (code, str(daemon.pid) in told) == (3, True)
    assert daemon.client.write(ACTOR, "one").version == 1


@POSIX
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_from_the_start_takes_nothing_from_the_daemon(make_daemon, tmp_path, closed):
    arguments = [*command(), "serve", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(["sh", "-c", f'exec "$0" "$@" {closed}', *arguments], env=clean_environment()) as first:
        wait_for_file(tmp_path / "data" / "daemon.json")
        second = make_daemon(lifeline=False).start()
        assert (second.handshake["pid"], second.handshake.get("reused")) == (first.pid, True)
        assert (tmp_path / "data" / "daemon.lock").read_bytes() == b""
        assert second.client.write(ACTOR, "one").version == 1
        second.client.system.Shutdown(system_pb2.ShutdownRequest())
        assert first.wait(END_SECONDS) == 0
        second.wait()


# --- a start that fails


def test_a_folder_that_a_newer_version_wrote_is_refused_and_not_touched(make_daemon, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "format.json").write_text('{"format":99}', encoding="utf-8")
    code, told = refused(make_daemon)
    assert (code, "99" in told) == (5, True)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["format.json"]


def test_a_damaged_format_is_refused(make_daemon, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "format.json").write_text('{"format":"x"}', encoding="utf-8")
    code, told = refused(make_daemon)
    assert (code, "format.json" in told) == (4, True)


def test_a_folder_that_cannot_be_made_is_refused(make_daemon, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert refused(make_daemon, folder=tmp_path / "file" / "data")[0] == 4


def test_a_port_that_another_program_has_is_refused(make_daemon, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, told = refused(make_daemon, "--port", str(taken.getsockname()[1]))
    assert (code, "--port 0" in told) == (6, True)
    assert {path.name for path in (tmp_path / "data").iterdir()} <= {"format.json"}


def test_two_daemons_cannot_have_one_port(daemon, make_daemon, tmp_path):
    port = daemon.address.rpartition(":")[2]
    assert refused(make_daemon, "--port", port, folder=tmp_path / "other")[0] == 6


@pytest.mark.parametrize(
    ("arguments", "environment", "file", "told"),
    [
        (["--set", "memory.max_versions=0"], {}, "", "flag --set memory.max_versions"),
        ([], {"LOREKEEPER_MEMORY_MAX_VERSIONS": "x"}, "", "environment LOREKEEPER_MEMORY_MAX_VERSIONS"),
        ([], {}, "[memory]\nmax_versions = 0\n", "lorekeeper.toml"),
        (["--set", "memory.max_version=1"], {}, "", "did you mean"),
        (["--listen", "0.0.0.0"], {}, "", "--tls-cert"),
    ],
)
def test_a_wrong_setting_is_refused_and_its_origin_told(make_daemon, tmp_path, arguments, environment, file, told):
    if file:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "lorekeeper.toml").write_text(file, encoding="utf-8")
    code, stderr = refused(make_daemon, *arguments, environment=environment)
    assert (code, told in stderr) == (2, True)


def test_settings_of_file_environment_and_flags_are_in_force_with_their_origin(start_daemon, tmp_path):
    (tmp_path / "data").mkdir()
    text = "[memory]\nmax_versions = 10\nmax_edits = 11\n[daemon]\ndrain_seconds = 1\n"
    (tmp_path / "data" / "lorekeeper.toml").write_text(text, encoding="utf-8")
    daemon = start_daemon("--set", "memory.max_versions=30", environment={"LOREKEEPER_MEMORY_MAX_EDITS": "20"})
    info = daemon.client.system.GetInfo(system_pb2.GetInfoRequest())
    limits = {limit.name: (limit.value, limit.origin) for limit in info.limits}
    assert limits["memory.max_versions"] == (30, "flag")
    assert limits["memory.max_edits"] == (20, "environment")
    assert limits["daemon.drain_seconds"] == (1, "file")
    assert limits["memory.kept_answers"] == (64, "default")


# --- places, languages, weight


@pytest.mark.parametrize("name", ["Željko 田中　テスト émoji🎮 ", "with 'quotes' & $HOME %PATH%", "-dash"])
def test_the_data_folder_may_have_any_name(start_daemon, tmp_path, name):
    daemon = start_daemon(folder=tmp_path / name / "data")
    assert Path(daemon.handshake["data_dir"]) == tmp_path / name / "data"
    daemon.client.write(ACTOR, "日本語 ✓")
    daemon.restart()
    assert daemon.client.text(ACTOR) == "日本語 ✓"


def test_a_folder_that_was_given_relative_is_the_same_folder(start_daemon, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    daemon = start_daemon(folder=Path("relative"))
    assert Path(daemon.handshake["data_dir"]) == tmp_path / "relative"


def test_the_language_of_the_system_does_not_matter(start_daemon, tmp_path):
    environment = {"PYTHONIOENCODING": "cp1252", "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"}
    daemon = start_daemon(folder=tmp_path / "田中", environment=environment)
    daemon.client.write(common_pb2.Actor(actor_id="Željko 🎮"), "✓ 日本語\n")
    daemon.kill()
    daemon.restart()
    assert daemon.client.text(common_pb2.Actor(actor_id="Željko 🎮")) == "✓ 日本語\n"


INSIDE = pytest.mark.skipif("LOREKEEPER_COMMAND" in os.environ, reason="looks into the Python program")


def run_inside(tmp_path, *options, before=""):
    """A daemon whose standard input is closed from the start, run to its end by this Python after ``before``."""
    arguments = ["serve", "--data-dir", str(tmp_path / "data"), "--stdin-lifeline"]
    code = f"{before}\nimport sys; sys.argv[1:] = {arguments!r}; from sidecar.cli import main; main()"
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=END_SECONDS,
        env=clean_environment(),
        check=True,
    )


@INSIDE
def test_a_thread_that_is_still_at_work_does_not_delay_the_end(tmp_path):
    run_inside(tmp_path, before="import threading; threading.Thread(target=threading.Event().wait).start()")


HEAVY = ("google.protobuf", "numpy", "onnxruntime", "tokenizers", "sqlite3", "httpx", "snowballstemmer")


@INSIDE
def test_a_start_imports_no_heavy_module(tmp_path):
    done = run_inside(tmp_path, "-X", "importtime")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if "|" in line}
    assert "grpc" in imported
    assert not imported & set(HEAVY)


def test_only_loopback_is_bound(daemon):
    listening = [c.laddr for c in psutil.Process(daemon.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert [f"{address.ip.removeprefix('::ffff:')}:{address.port}" for address in listening] == [daemon.address]


def test_a_connection_survives_a_client_that_pings_often(daemon):
    options = (
        ("grpc.enable_http_proxy", 0),
        ("grpc.keepalive_time_ms", 10),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    )
    with grpc.insecure_channel(daemon.address, options=options) as channel:
        from sidecar.gen.lorekeeper.v1 import system_pb2_grpc

        token = (("authorization", f"Bearer {daemon.token}"),)
        stub = system_pb2_grpc.SystemServiceStub(channel)
        stream = stub.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(after_sequence=0), metadata=token)
        next(stream)
        for _ in range(20):
            stub.GetInfo(system_pb2.GetInfoRequest(), metadata=token, timeout=5)
        assert stream.is_active()
        stream.cancel()
