"""The format of a data folder: refused when newer, migrated in steps that survive a kill anywhere."""

from __future__ import annotations

import pytest

from sidecar.errors import Corrupt, NotReady, Reason
from sidecar.storage.format import FORMAT, Migration, open_format
from sidecar.storage.json_file import read_json, write_json
from sidecar.storage.session_disk import SessionDisk


class Killed(BaseException):
    """The process ended here: nothing after it is run, nothing is tidied up."""


class Mortal(SessionDisk):
    """Dies before its ``life``-th change."""

    life = 1_000_000

    def _age(self):
        self.life -= 1
        if self.life < 0:
            raise Killed

    def replace(self, path, data):
        self._age()
        super().replace(path, data)

    def rename(self, old, new):
        self._age()
        super().rename(old, new)

    def make_folder(self, path):
        self._age()
        super().make_folder(path)

    def remove(self, path):
        self._age()
        super().remove(path)


def doubled(disk):
    """A step that would do harm when it is run on its own result, if it did not look."""
    for name in ("one", "two"):
        path = disk.root / "saves" / name
        if not disk.read(path).startswith(b"2:"):
            disk.replace(path, b"2:" + disk.read(path) * 2)


def marked(disk):
    for name in ("one", "two"):
        path = disk.root / "saves" / name
        if not disk.read(path).endswith(b"!"):
            disk.replace(path, disk.read(path) + b"!")


STEPS = (Migration(2, doubled), Migration(3, marked))


@pytest.fixture
def old(tmp_path):
    return folder_of_format_1(tmp_path)


def folder_of_format_1(root):
    disk = Mortal(root)
    disk.make_folder(disk.root / "saves")
    disk.make_folder(disk.root / "index")
    disk.replace(disk.root / "saves" / "one", b"1")
    disk.replace(disk.root / "saves" / "two", b"2")
    disk.replace(disk.root / "index" / "derived", b"x")
    write_json(disk, disk.root / "format.json", {"format": 1})
    return disk


def format_of(disk):
    return read_json(disk, disk.root / "format.json")["format"]


def migrated(disk):
    return open_format(disk, current=3, migrations=STEPS)


def test_a_new_folder_has_the_present_format(tmp_path):
    disk = SessionDisk(tmp_path)
    assert open_format(disk) == (FORMAT, FORMAT)
    assert format_of(disk) == FORMAT


def test_every_step_from_the_old_format_is_taken_in_order(old):
    assert migrated(old) == (1, 3)
    assert (old.read(old.root / "saves" / "one"), format_of(old)) == (b"2:11!", 3)


def test_only_the_steps_that_are_missing_are_taken(old):
    write_json(old, old.root / "format.json", {"format": 2})
    assert migrated(old) == (2, 3)
    assert old.read(old.root / "saves" / "one") == b"1!"


def test_what_is_authoritative_is_backed_up_first_and_what_is_derived_is_not(old):
    migrated(old)
    backup = old.root / "backups" / "format-1"
    assert old.read(backup / "saves" / "one") == b"1"
    assert old.names(backup) == ["saves"]


def test_a_present_folder_is_left_as_it_is(old):
    migrated(old)
    old.life = 0
    assert migrated(old) == (3, 3)


def test_a_migration_that_is_killed_at_any_moment_is_ended_by_the_next_start(tmp_path):
    kills = 0
    for life in range(100):
        disk = folder_of_format_1(tmp_path)
        disk.life = life
        try:
            migrated(disk)
        except Killed:
            kills += 1
        else:
            break
        disk.life = 1_000
        migrated(disk)
        assert [disk.read(disk.root / "saves" / name) for name in ("one", "two")] == [b"2:11!", b"2:22!"]
        assert disk.read(disk.root / "backups" / "format-1" / "saves" / "two") == b"2"
        assert not [name for name in disk.names(disk.root / "backups") if "partial" in name]
    assert kills > 10


def test_a_folder_of_a_newer_version_is_refused_and_not_touched(old):
    write_json(old, old.root / "format.json", {"format": 4})
    old.life = 0
    with pytest.raises(NotReady) as caught:
        migrated(old)
    assert caught.value.reason == Reason.FORMAT_TOO_NEW
    assert caught.value.metadata == {"found": "4", "known": "3"}


@pytest.mark.parametrize("stored", [b"{", b"{}", b'{"format":"x"}', b'{"format":null}', b'{"format":[1]}'])
def test_a_damaged_format_file_is_corrupt_and_not_guessed(old, stored):
    old.replace(old.root / "format.json", stored)
    old.life = 0
    with pytest.raises(Corrupt):
        migrated(old)
