"""The settings of a save are read once, and anew when its files were exchanged."""

import shutil

import pytest

from sidecar.saves.save_settings import SaveSettingsStore
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.keys import save_folder
from sidecar.storage.save_state import SaveStates


@pytest.fixture
def states(tmp_path):
    return SaveStates(FileDisk(tmp_path))


@pytest.fixture
def settings(tmp_path, states):
    return SaveSettingsStore(FileDisk(tmp_path), states, lambda _save: None)


def test_what_was_put_holds_at_once(settings):
    assert settings.read("slot") == {}
    for value in (0.5, 0.6):
        settings.put("slot", {"similarity_floor": value})
        assert settings.read("slot") == {"similarity_floor": value}


def test_a_save_that_was_exchanged_brings_its_own_settings(settings, states, tmp_path):
    folder = save_folder(tmp_path, "slot")
    settings.put("slot", {"similarity_floor": 0.5})
    shutil.copytree(folder, tmp_path / "earlier")
    settings.put("slot", {"similarity_floor": 0.6})
    shutil.rmtree(folder)
    shutil.move(tmp_path / "earlier", folder)
    states.forget("slot")
    assert settings.read("slot") == {"similarity_floor": 0.5}


def test_a_save_that_was_erased_has_none(settings, states, tmp_path):
    settings.put("slot", {"similarity_floor": 0.5})
    shutil.rmtree(save_folder(tmp_path, "slot"))
    states.forget("slot")
    assert settings.read("slot") == {}
