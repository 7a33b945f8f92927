"""``lorekeeper models`` and the folder of models."""

import json
import os

import pytest
from click.testing import CliRunner
from tiny_models import graph, write_model

from sidecar.cli.commands import lorekeeper
from sidecar.embedding.catalogue import Catalogue
from sidecar.embedding.model_store import ModelStore
from sidecar.errors import AlreadyExists, InvalidInput, LorekeeperError, Reason
from sidecar.settings import EmbeddingSettings

NAME = "Željko 田中　🎮"


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def tiny(tmp_path):
    folder = write_model(tmp_path / "tiny", variant="test")
    (folder / "README.md").write_text("not part of the model", "utf-8")
    return folder


def models(data, *arguments, **environment):
    done = CliRunner().invoke(lorekeeper, ["models", *arguments, "--data-dir", str(data)], env=environment)
    assert done.exit_code == 0, done.output
    return done.output


def rows(data, *arguments, **environment):
    return json.loads(models(data, *arguments, "--json", **environment))


def failed(data, *arguments):
    done = CliRunner().invoke(lorekeeper, ["models", *arguments, "--data-dir", str(data)])
    assert done.exit_code == 1
    return done.output


def test_an_added_model_is_a_copy_of_its_own_files_and_their_record(data, tiny):
    models(data, "add", str(tiny), "--name", NAME)
    copied = data / "models" / NAME
    names = {"lorekeeper-model.toml", "lorekeeper-files.json", "model.onnx", "tokenizer.json"}
    assert {path.name for path in copied.iterdir()} == names
    assert (copied / "model.onnx").read_bytes() == (tiny / "model.onnx").read_bytes()


def test_an_added_model_has_the_identity_of_its_source_and_loads_first(data, tiny):
    models(data, "add", str(tiny), "--name", NAME)
    (shown,) = rows(data, "show")
    assert shown["model"] == NAME
    listed = {row["name"]: row for row in rows(data, "list")}
    assert (listed[NAME]["loaded"], listed["minilm"]["loaded"]) == ("yes", "no")


def test_the_built_in_model_loads_where_no_folder_was_added(data):
    (shown,) = rows(data, "show")
    assert (shown["model"], shown["why"]) == ("minilm", "it is installed and there is no model folder")


def test_the_configuration_may_name_a_model_or_none(data, tiny):
    models(data, "add", str(tiny))
    assert rows(data, "show", LOREKEEPER_EMBEDDING_MODEL="none")[0]["model"] == "none"
    assert rows(data, "show", LOREKEEPER_EMBEDDING_MODEL="minilm")[0]["model"] == "minilm"
    assert rows(data, "show", LOREKEEPER_EMBEDDING_MODEL="tin")[0]["why"] == "embedding.model tin is not there"


def test_verifying_finds_a_file_that_was_changed_after_it_was_added(data, tiny):
    models(data, "add", str(tiny))
    models(data, "verify", "tiny")
    with (data / "models" / "tiny" / "model.onnx").open("ab") as file:
        file.write(b"\0")
    assert "model.onnx" in failed(data, "verify", "tiny")


def test_the_built_in_model_can_be_verified(data):
    assert {row["file"] for row in rows(data, "verify", "minilm")} == {"model.onnx", "tokenizer.json"}


def test_a_model_that_does_not_run_is_not_added(data, tmp_path):
    folder = write_model(tmp_path / "bad", weights=graph(9))
    assert "dimensions" in failed(data, "add", str(folder))
    assert rows(data, "list")[0]["name"] == "minilm"
    assert not (data / "models" / "bad").exists()


def test_a_removed_model_is_gone(data, tiny):
    models(data, "add", str(tiny))
    models(data, "remove", "tiny")
    assert list((data / "models").iterdir()) == []
    assert "no added model" in failed(data, "remove", "tiny")


def test_a_name_is_taken_once(tmp_path, tiny):
    store = ModelStore(tmp_path / "models", EmbeddingSettings())
    store.add(tiny, "a")
    with pytest.raises(AlreadyExists):
        store.add(tiny, "a")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "minilm", "AUTO", "none", "c:", "a ", ".a", "a\n", "x" * 129]
)
def test_a_name_that_is_no_folder_everywhere_or_stands_for_something_is_refused(tmp_path, tiny, name):
    store = ModelStore(tmp_path / "models", EmbeddingSettings())
    with pytest.raises(InvalidInput):
        store.add(tiny, name)
    assert not (tmp_path / "models").exists()


def test_a_copy_that_fails_leaves_nothing(tmp_path, tiny, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    store = ModelStore(tmp_path / "models", EmbeddingSettings())
    with pytest.raises(LorekeeperError) as error:
        store.add(tiny, "a")
    assert error.value.reason is Reason.STORAGE_FULL
    assert list((tmp_path / "models").iterdir()) == []


def test_what_an_interrupted_copy_left_is_no_model_and_is_swept(tmp_path, tiny):
    root = tmp_path / "models"
    write_model(root / ".adding-0123")
    settings = EmbeddingSettings()
    assert all(entry.name == "minilm" for entry in Catalogue(root, settings).entries())
    ModelStore(root, settings).sweep()
    assert list(root.iterdir()) == []
