"""The commands that read records: with --json for programs, as tables for people."""

import json
import subprocess

import pytest
from daemon_process import clean_environment, command
from records_client import Records, m


def run(daemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    whole = [*command(), *arguments, "--data-dir", str(daemon.folder)]
    return subprocess.run(whole, capture_output=True, text=True, env=clean_environment(), check=False)


def run_json(daemon, *arguments: str):
    done = run(daemon, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def records(daemon, actor):
    records = Records(daemon.client, actor)
    records.add(m("m1", "the wolf", tick=3, tags=["den"]), m("m2", "the bear", tick=9))
    return records


def address(actor) -> list[str]:
    return ["--save", actor.save_id, "--actor", actor.actor_id, "--role", actor.role_id]


def test_inspect_lists_records_with_a_running_daemon_and_without_one(daemon, records, actor):
    records.add(*(m("late", "fox", tick=99, owner=owner) for owner in (actor, records.other("a"))))
    for _ in range(2):
        rows = run_json(daemon, "inspect", "records", *address(actor))
        assert [row["record"] for row in rows] == ["late", "m2", "m1"]
        assert rows[-1]["tags"] == "den"
        daemon.kill()
        daemon.start()


def test_inspect_leaves_a_torn_journal_as_it_is(daemon, records, actor):
    daemon.stop()
    journal = next(daemon.folder.rglob("records.jsonl"))
    torn = journal.read_bytes() + b'{"crc":"'
    journal.write_bytes(torn)
    assert len(run_json(daemon, "inspect", "records", *address(actor))) == 2
    assert journal.read_bytes() == torn


def test_search_tells_scores_and_reasons(daemon, records, actor):
    (row,) = run_json(daemon, "search", "wolves", *address(actor), "--timeline", "world", "--tick", "100")
    assert (row["record"], row["why"], row["rank"]) == ("m1", "own", 1)
    assert (row["score"], row["importance"]) > (0, 0)
    table = run(daemon, "search", "wolves", "--explain", *address(actor))
    assert "'wolf' x1" in table.stdout
    assert "degraded: no_model" in table.stderr


def test_the_index_is_told_and_built_again(daemon, records, actor):
    last = run_json(daemon, "index", "rebuild", "--save", actor.save_id, "--force")[0]
    assert (last["done"], last["failed"]) == (2, 0)
    row = run_json(daemon, "index", "status", "--save", actor.save_id)[0]
    assert (row["records"], row["words"], row["rebuild"]) == (2, 2, "needs a model")
    assert run(daemon, "index", "rebuild", "--save", actor.save_id).returncode == 0


def test_without_a_daemon_search_says_how_to_start_one(daemon, records, actor):
    daemon.stop()
    done = run(daemon, "search", "wolf", *address(actor))
    assert done.returncode == 1
    assert "lorekeeper serve" in done.stderr
    daemon.start()
