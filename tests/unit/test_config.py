"""Settings: a file, then the environment, then flags; each value checked, each error with its origin."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

import sidecar
from sidecar.daemon.config import ConfigError, load, printed, settings


@pytest.fixture
def loaded(tmp_path):
    """``loaded(file="…", environment={…}, flags=[…])``."""

    def make(file=None, environment=None, flags=()):
        path = tmp_path / "lorekeeper.toml"
        if file is not None:
            path.write_text(file, encoding="utf-8")
        return load(file=path if file is not None else None, environment=environment or {}, flags=flags)

    return make


FILE = "[memory]\nmax_versions = 10\n"
ENVIRONMENT = {"LOREKEEPER_MEMORY_MAX_VERSIONS": "20", "LOREKEEPER_DATA_DIR": "/x", "PATH": "/bin"}


def test_without_any_source_every_setting_is_at_its_default(loaded):
    assert loaded().config.memory.max_versions == 30
    assert loaded().origins == {}


@pytest.mark.parametrize(
    ("sources", "value", "origin"),
    [
        ({"file": FILE}, 10, "file"),
        ({"file": FILE, "environment": ENVIRONMENT}, 20, "environment LOREKEEPER_MEMORY_MAX_VERSIONS"),
        ({"file": FILE, "environment": ENVIRONMENT, "flags": ["memory.max_versions=40"]}, 40, "flag --set"),
        ({"flags": ["memory.max_versions=40", "memory.max_versions = 50"]}, 50, "flag --set"),
    ],
)
def test_the_later_source_wins_and_its_origin_is_kept(loaded, sources, value, origin):
    result = loaded(**sources)
    assert result.config.memory.max_versions == value
    assert result.origins["memory.max_versions"].startswith(origin)


WRONG = ["0", "1001", "x", "", "1.5", "nan", "inf", "true", "9" * 5_000]


@pytest.mark.parametrize("value", WRONG)
def test_a_wrong_value_names_setting_origin_and_range(loaded, value):
    with pytest.raises(ConfigError) as caught:
        loaded(flags=[f"memory.max_versions={value}"])
    message = str(caught.value)
    assert "memory.max_versions" in message
    assert "flag --set memory.max_versions" in message
    assert "a whole number of versions from 1 to 1000" in message


@pytest.mark.parametrize(
    ("sources", "origin"),
    [
        ({"file": "[memory]\nmax_versions = 0\n"}, "lorekeeper.toml"),
        ({"environment": {"LOREKEEPER_MEMORY_MAX_VERSIONS": "0"}}, "environment LOREKEEPER_MEMORY_MAX_VERSIONS"),
    ],
)
def test_a_wrong_value_tells_which_source_has_it(loaded, sources, origin):
    with pytest.raises(ConfigError) as caught:
        loaded(**sources)
    assert origin in str(caught.value)


@pytest.mark.parametrize("value", ["true", '"x"', "[1]", "2.5", "1979-05-27"])
def test_a_file_may_hold_a_wrong_type_and_that_is_told(loaded, value):
    with pytest.raises(ConfigError, match="a whole number"):
        loaded(file=f"[memory]\nmax_versions = {value}\n")


def test_a_whole_number_is_whole_however_it_is_written(loaded):
    value = loaded(file="[memory]\nmax_versions = 12.0\n").config.memory.max_versions
    assert (value, type(value)) == (12, int)


def test_a_choice_must_be_one_of_its_choices(loaded):
    assert loaded(flags=["storage.durability=relaxed"]).config.storage.durability == "relaxed"
    with pytest.raises(ConfigError, match="one of full, relaxed"):
        loaded(flags=["storage.durability=sometimes"])


def test_a_fraction_is_allowed_where_the_setting_is_one(loaded):
    assert loaded(flags=["daemon.drain_seconds=0.25"]).config.daemon.drain_seconds == 0.25


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        ({"flags": ["memory.max_version=3"]}, "did you mean 'memory.max_versions'"),
        ({"flags": ["zzz=3"]}, "--print-config"),
        ({"file": "[memory]\nmax_version = 3\n"}, "lorekeeper.toml"),
        ({"file": "max_versions = 3\n"}, "outside of a section"),
        ({"file": "[memory\n"}, "cannot be read"),
        ({"flags": ["memory.max_versions"]}, "has no value"),
    ],
)
def test_what_is_no_setting_is_told(loaded, sources, told):
    with pytest.raises(ConfigError) as caught:
        loaded(**sources)
    assert told in str(caught.value)


def test_a_file_that_is_no_text_is_told(loaded, tmp_path):
    (tmp_path / "lorekeeper.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(file=tmp_path / "lorekeeper.toml", environment={}, flags=())


def test_the_printed_configuration_is_toml_that_gives_the_same_configuration(loaded):
    first = loaded(
        flags=["memory.max_versions=7", "storage.mode=session", "daemon.drain_seconds=1.5", r'embedding.model=C:\a "b"']
    )
    text = printed(first)
    assert dataclasses.asdict(loaded(file=text).config) == dataclasses.asdict(first.config)
    assert set(tomllib.loads(text)) == {section.name for section in dataclasses.fields(first.config)}


def test_the_printed_configuration_tells_range_and_origin_of_every_setting(loaded):
    text = printed(loaded(flags=["memory.max_versions=7"]))
    assert "from 1 to 1000; flag --set memory.max_versions" in text
    assert text.count("default\n") == len(list(settings())) - 1


def test_every_number_has_a_default_within_its_range_and_every_setting_a_meaning():
    for name, value, field in settings():
        assert field.metadata["meaning"], name
        if "low" in field.metadata:
            assert field.metadata["low"] <= value <= field.metadata["high"], name
            assert field.metadata["unit"], name


def test_every_setting_is_read_by_a_room():
    package = Path(sidecar.__file__).parent
    source = "".join(file.read_text("utf-8") for file in package.rglob("*.py") if file.name != "settings.py")
    read = set(re.findall(r"\.(\w+)", source))
    assert {name for name, _, _ in settings() if name.split(".")[1] not in read} == set()
