"""``saves``, ``checkpoint``, ``restore``, ``fork``, ``export``, ``import`` and ``erase`` as a person types them."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from sidecar.cli.commands import lorekeeper
from sidecar.gen.lorekeeper.v1 import common_pb2

MIRA = common_pb2.Actor(save_id="slot 1", actor_id="mira")


@pytest.fixture
def lore(daemon):
    """Runs a command on the daemon's folder; its output."""

    def run(*arguments, answer=None, code=0):
        command, *rest = arguments
        words = [*command.split(), "--data-dir", str(daemon.folder), *rest]
        result = CliRunner().invoke(lorekeeper, words, input=answer)
        assert result.exit_code == code, result.output
        return result.output

    return run


def test_a_save_is_kept_and_restored(daemon, lore):
    daemon.client.write(MIRA, "then")
    kept = json.loads(lore("checkpoint", "--save", "slot 1", "--name", "before the duel", "--json"))["checkpoint"]
    daemon.client.write(MIRA, "now")
    assert "before the duel" in lore("saves checkpoints", "--save", "slot 1")
    lore("restore", "--save", "slot 1", kept["checkpoint_id"], answer="n\n", code=1)
    assert daemon.client.text(MIRA) == "now"
    assert "What it was before" in lore("restore", "--save", "slot 1", kept["checkpoint_id"], answer="y\n")
    assert daemon.client.text(MIRA) == "then"


def test_saves_are_listed_with_sizes_and_ages(daemon, lore):
    assert "No save" in lore("saves list")
    daemon.client.write(MIRA, "then")
    shown = lore("saves list")
    assert "slot 1" in shown
    assert "1 actors" in shown
    assert "seconds ago" in shown
    assert json.loads(lore("saves list", "--json"))[0]["save_id"] == "slot 1"


def test_a_save_is_forked_exported_and_imported(daemon, lore, tmp_path):
    daemon.client.write(MIRA, "known")
    lore("fork", "--save", "slot 1", "slot 2")
    file = tmp_path / "slot.zip"
    lore("export", "--save", "slot 2", str(file))
    assert "exists" in lore("export", "--save", "slot 2", str(file), code=1)
    assert "Would take 1 actors" in lore("import", "lorekeeper", str(file), "--save", "slot 3", "--dry-run")
    assert "Took 1 actors" in lore("import", "lorekeeper", str(file), "--save", "slot 3")
    assert daemon.client.text(common_pb2.Actor(save_id="slot 3", actor_id="mira")) == "known"
    assert "exists" in lore("import", "lorekeeper", str(file), code=1)


def test_foreign_data_is_imported_with_a_report(daemon, lore, tmp_path):
    (tmp_path / "Merchant.json").write_text(json.dumps({"memory": "sells lamps"}), "utf-8")
    (tmp_path / "broken.json").write_text("{", "utf-8")
    shown = lore("import", "coreai", str(tmp_path), "--save", "slot 1")
    assert "1 documents" in shown
    assert "not taken: broken.json" in shown
    assert daemon.client.text(common_pb2.Actor(save_id="slot 1", role_id="Merchant")) == "sells lamps"


def test_erasing_tells_what_and_asks(daemon, lore):
    daemon.client.write(MIRA, "a secret")
    assert "Would forget" in lore("erase save", "--dry-run", "slot 1")
    assert "1 documents" in lore("erase save", "slot 1", answer="n\n", code=1)
    assert daemon.client.text(MIRA) == "a secret"
    lore("erase actor", "--save", "slot 1", "--yes", "mira")
    assert daemon.client.text(MIRA) == ""
    assert "nothing" in lore("erase player", "--yes", "nobody")


def test_what_cannot_be_written_or_read_is_told_in_one_line(daemon, lore, tmp_path):
    daemon.client.write(MIRA, "known")
    shown = lore("export", "--save", "slot 1", str(tmp_path / "nowhere" / "slot.zip"), code=1)
    assert shown.startswith("Error: ")
    assert "No such file or directory" in shown
    assert "is a folder" in lore("import", "lorekeeper", str(tmp_path), code=1)
    (tmp_path / "empty.zip").touch()
    assert "an empty one" in lore("import", "lorekeeper", str(tmp_path / "empty.zip"), code=1)


def test_a_question_stands_beside_what_a_program_reads(daemon):
    daemon.client.write(MIRA, "a secret")
    words = ["erase", "save", "slot 1", "--json", "--data-dir", str(daemon.folder)]
    result = CliRunner().invoke(lorekeeper, words, input="y\n")
    assert json.loads(result.stdout)["documents"] == "1"
    assert "1 documents" in result.stderr


def test_a_save_whose_name_is_typed_wrongly_is_not_made_by_a_checkpoint(daemon, lore):
    daemon.client.write(MIRA, "then")
    assert "no save 'slot l'" in lore("checkpoint", "--save", "slot l", code=1)
    assert [info["save_id"] for info in json.loads(lore("saves list", "--json"))] == ["slot 1"]


def test_an_export_to_standard_output_is_refused_and_makes_no_file_of_that_name(daemon, lore, tmp_path, monkeypatch):
    daemon.client.write(MIRA, "then")
    monkeypatch.chdir(tmp_path)
    assert "name a file" in lore("export", "--save", "slot 1", "-", code=1)
    assert not (tmp_path / "-").exists()


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes with a place in a folder")
@pytest.mark.parametrize("force", [[], ["--force"]], ids=["", "by force"])
def test_an_export_replaces_no_pipe_and_no_device(daemon, lore, tmp_path, force):
    daemon.client.write(MIRA, "then")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "name a file" in lore("export", "--save", "slot 1", *force, str(pipe), code=1)
    assert pipe.is_fifo()


def test_the_name_of_a_checkpoint_is_one_line_and_steers_no_terminal(daemon, lore):
    daemon.client.write(MIRA, "then")
    lore("checkpoint", "--save", "slot 1", "--name", "before\nthe \x1b[31mduel")
    shown = lore("saves checkpoints", "--save", "slot 1")
    assert ("before the  [31mduel" in shown, len(shown.splitlines())) == (True, 2)
