"""One daemon owns a folder, and the system frees it however that one ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sidecar.storage.folder_lock import FolderLock

# A process that takes the lock, says so, and holds it until its standard input closes.
HOLDER = """
import sys
from pathlib import Path
from sidecar.storage.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path):
    """A folder that another process owns, and that process."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline().strip() == b"True"
        yield holder
        holder.kill()


def test_a_folder_has_one_owner_at_a_time(tmp_path):
    first, second = FolderLock(tmp_path), FolderLock(tmp_path)
    assert first.acquire() is True
    assert second.acquire() is False
    first.release()
    assert second.acquire() is True
    second.release()


def test_an_owner_leaves_no_file_behind(tmp_path):
    lock = FolderLock(tmp_path)
    lock.acquire()
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
@pytest.mark.parametrize("put", [lambda path: path.write_bytes(b"another's"), lambda path: path.mkdir()])
def test_an_owner_whose_lock_file_was_removed_leaves_what_is_in_its_place(tmp_path, put):
    lock = FolderLock(tmp_path)
    lock.acquire()
    (tmp_path / "daemon.lock").unlink()
    put(tmp_path / "daemon.lock")
    lock.release()
    assert (tmp_path / "daemon.lock").exists()


def test_a_folder_of_another_process_is_not_ours(tmp_path, held):
    assert FolderLock(tmp_path).acquire() is False


def test_the_folder_of_a_process_that_was_killed_is_free(tmp_path, held):
    held.kill()
    held.wait()
    lock = FolderLock(tmp_path)
    assert lock.acquire() is True
    lock.release()


def test_a_lock_file_that_nobody_holds_means_nothing(tmp_path):
    (tmp_path / "daemon.lock").write_text("4242", encoding="utf-8")
    lock = FolderLock(tmp_path)
    assert lock.acquire() is True
    lock.release()
