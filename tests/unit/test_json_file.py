"""JSON files: one object, whole or told as corrupt, never half read."""

from __future__ import annotations

import pytest

from sidecar.errors import Corrupt, Reason
from sidecar.storage.json_file import dump, read_json, write_json
from sidecar.storage.session_disk import SessionDisk


@pytest.fixture
def disk(tmp_path):
    return SessionDisk(tmp_path)


def test_what_was_written_is_read(disk):
    value = {"text": '日本語 😀\n"', "numbers": [1, -2.5, None, True]}
    write_json(disk, disk.root / "a.json", value)
    assert read_json(disk, disk.root / "a.json") == value


def test_a_missing_file_is_none(disk):
    assert read_json(disk, disk.root / "a.json") is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"a":1',
        b'{"a":1}x',
        b"[]",
        b"1",
        b"null",
        b'{"a":1,"a":2}',
        b'{"a":"\xff"}',
        b"\0" * 9,
        b"[" * 99_999,
    ],
)
def test_anything_else_than_one_whole_object_is_corrupt_and_stays(disk, data):
    disk.replace(disk.root / "a.json", data)
    with pytest.raises(Corrupt) as caught:
        read_json(disk, disk.root / "a.json")
    assert (caught.value.reason, caught.value.metadata) == (Reason.STORAGE_CORRUPT, {"file": "a.json"})
    assert disk.read(disk.root / "a.json") == data


def test_a_value_is_one_line_of_utf8_without_numbers_that_json_has_not():
    assert dump({"a": "é\n"}) == '{"a":"é\\n"}'.encode()
    with pytest.raises(ValueError, match="JSON"):
        dump({"a": float("nan")})
