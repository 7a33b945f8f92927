"""Bytes on a real disk and in a session: the same answers, the safe order, and nothing half done."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.errors import Corrupt, LimitReached, NotReady, Reason, Unavailable
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.session_disk import SessionDisk


@pytest.fixture(params=[FileDisk, SessionDisk])
def disk(request, tmp_path):
    return request.param(tmp_path)


def test_a_file_has_what_was_put_in_its_place(disk):
    path = disk.root / "a"
    disk.replace(path, b"one")
    disk.replace(path, b"two")
    assert (disk.read(path), disk.size(path), disk.exists(path)) == (b"two", 3, True)


def test_a_part_of_a_file_can_be_read(disk):
    disk.replace(disk.root / "a", b"0123456789")
    assert disk.read(disk.root / "a", 2, 3) == b"234"
    assert disk.read(disk.root / "a", 8) == b"89"
    assert disk.read(disk.root / "a", 20) == b""


def test_an_append_tells_where_it_begins(disk):
    path = disk.root / "a"
    assert [disk.append(path, b"one"), disk.append(path, b"two", sync=False)] == [0, 3]
    disk.sync(path)
    assert disk.read(path) == b"onetwo"


def test_a_file_can_be_cut(disk):
    disk.replace(disk.root / "a", b"onetwo")
    disk.truncate(disk.root / "a", 3)
    assert disk.read(disk.root / "a") == b"one"


@pytest.mark.parametrize("call", [
    lambda disk, path: disk.read(path),
    lambda disk, path: disk.truncate(path, 0),
    lambda disk, path: disk.sync(path),
    lambda disk, path: disk.rename(path, path.with_name("b")),
], ids=["read", "truncate", "sync", "rename"])  # fmt: skip
def test_what_is_not_there_is_told(disk, call):
    with pytest.raises(FileNotFoundError):
        call(disk, disk.root / "missing")


@pytest.mark.parametrize("call", ["replace", "append"])
def test_a_folder_that_is_not_there_is_told_with_the_file_that_could_not_be_written(disk, call):
    with pytest.raises(NotReady) as caught:
        getattr(disk, call)(disk.root / "missing" / "a", b"")
    assert (caught.value.reason, caught.value.metadata["file"]) == (Reason.STORAGE_GONE, "missing/a")


def test_looking_for_what_is_not_there_is_no_error(disk):
    path = disk.root / "missing"
    assert (disk.exists(path), disk.is_folder(path), disk.size(path), disk.names(path)) == (False, False, 0, [])
    disk.remove(path)


def test_a_folder_is_made_with_those_above_it_and_names_what_is_in_it(disk):
    folder = disk.root / "x" / "y"
    disk.make_folder(folder)
    disk.make_folder(folder)
    disk.replace(folder / "b", b"")
    disk.replace(folder / "a", b"")
    assert (disk.names(folder), disk.names(disk.root / "x")) == (["a", "b"], ["y"])
    assert (disk.is_folder(folder), disk.is_folder(folder / "a")) == (True, False)


def test_a_folder_moves_with_all_that_is_in_it(disk):
    disk.make_folder(disk.root / "x" / "y")
    disk.replace(disk.root / "x" / "y" / "a", b"1")
    disk.rename(disk.root / "x", disk.root / "z")
    assert disk.read(disk.root / "z" / "y" / "a") == b"1"
    assert disk.names(disk.root) == ["z"]


def test_a_moved_file_takes_the_place_of_another(disk):
    disk.replace(disk.root / "a", b"1")
    disk.replace(disk.root / "b", b"2")
    disk.rename(disk.root / "a", disk.root / "b")
    assert (disk.read(disk.root / "b"), disk.names(disk.root)) == (b"1", ["b"])


def test_a_folder_is_removed_with_all_that_is_in_it(disk):
    disk.make_folder(disk.root / "x" / "y")
    disk.replace(disk.root / "x" / "y" / "a", b"1")
    disk.remove(disk.root / "x")
    assert disk.names(disk.root) == []


NAMES = st.sampled_from(["a", "b"])
STEPS = st.one_of(
    st.tuples(st.just("replace"), NAMES, st.binary(max_size=8)),
    st.tuples(st.just("append"), NAMES, st.binary(max_size=8)),
    st.tuples(st.just("truncate"), NAMES, st.integers(0, 12)),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("remove"), NAMES, st.none()),
)


def took(disk, step):
    action, name, value = step
    path = disk.root / name
    given_value = [disk.root / value] if action == "rename" else [] if value is None else [value]
    try:
        return getattr(disk, action)(path, *given_value)
    except (FileNotFoundError, NotReady):
        return "no such file"


@given(steps=st.lists(STEPS, max_size=12))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], max_examples=60)
def test_a_session_answers_every_sequence_of_calls_as_the_disk_does(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("disk")
    real, session = FileDisk(root, durable=False), SessionDisk(root)
    for step in steps:
        assert took(real, step) == took(session, step)
        assert real.names(root) == session.names(root)
        for name in real.names(root):
            assert real.read(root / name) == session.read(root / name)


class Recorded(FileDisk):
    """A disk that tells in which order it makes things safe, and that fails where it is told to."""

    def __init__(self, root, fails=None):
        super().__init__(root)
        self.steps = []
        self._fails = fails

    def _sync_file(self, descriptor):
        self.steps.append(("file", sorted(os.listdir(self.root))))
        if self._fails:
            raise OSError(self._fails, os.strerror(self._fails))
        super()._sync_file(descriptor)

    def _sync_folder(self, path):
        self.steps.append(("folder", sorted(os.listdir(self.root))))
        super()._sync_folder(path)


def test_the_file_is_safe_before_it_is_renamed_and_the_folder_after(tmp_path):
    disk = Recorded(tmp_path)
    disk.replace(tmp_path / "a", b"1")
    assert disk.steps == [("file", ["a.tmp"]), ("folder", ["a"])]


def test_what_a_kill_left_of_a_write_is_written_over(tmp_path):
    (tmp_path / "a.tmp").write_bytes(b"half of")
    FileDisk(tmp_path).replace(tmp_path / "a", b"1")
    assert sorted(os.listdir(tmp_path)) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"1"


def test_who_replaces_one_file_at_once_does_so_one_after_another(tmp_path):
    disk, path = FileDisk(tmp_path), tmp_path / "actor.json"
    disks = [disk, disk.unsynced()]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: disks[number % 2].replace(path, bytes([number]) * 10_000), range(90)))
    written = disk.read(path)
    assert written == written[:1] * 10_000


def test_a_new_journal_is_safe_with_its_name_and_a_longer_one_by_itself(tmp_path):
    disk = Recorded(tmp_path)
    disk.append(tmp_path / "a", b"1")
    disk.append(tmp_path / "a", b"2")
    assert [step for step, _ in disk.steps] == ["file", "folder", "file"]


def test_a_folder_is_safe_in_the_one_above_it(tmp_path):
    disk = Recorded(tmp_path)
    disk.make_folder(tmp_path / "x")
    assert disk.steps == [("folder", ["x"])]


FAULTS = [
    (errno.ENOSPC, LimitReached, Reason.STORAGE_FULL),
    (errno.EDQUOT, LimitReached, Reason.STORAGE_FULL),
    (errno.EROFS, NotReady, Reason.STORAGE_READ_ONLY),
    (errno.EACCES, NotReady, Reason.STORAGE_READ_ONLY),
    (errno.EIO, Unavailable, Reason.STORE_FAILED),
]


@pytest.mark.parametrize(("number", "kind", "reason"), FAULTS, ids=lambda value: str(value))
@pytest.mark.parametrize("call", ["replace", "append"])
def test_a_failed_write_leaves_the_old_bytes_and_says_why(tmp_path, number, kind, reason, call):
    FileDisk(tmp_path).replace(tmp_path / "a", b"old")
    with pytest.raises(kind) as caught:
        getattr(Recorded(tmp_path, fails=number), call)(tmp_path / "a", b"new")
    assert caught.value.reason == reason
    assert caught.value.metadata["file"] == "a"
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_whoever_listens_hears_once_that_writing_fails_and_once_that_it_works(tmp_path):
    heard = []
    failing = {"now": True}

    class Filling(FileDisk):
        def _sync_file(self, descriptor):
            if failing["now"]:
                raise OSError(errno.ENOSPC, "full")

    disk = Filling(tmp_path, writable=heard.append)
    for _ in range(2):
        with pytest.raises(LimitReached):
            disk.replace(tmp_path / "a", b"1")
    failing["now"] = False
    disk.replace(tmp_path / "a", b"1")
    disk.replace(tmp_path / "a", b"2")
    assert heard == [False, True]


def test_a_folder_that_cannot_be_made_is_heard_of_too(tmp_path):
    heard = []

    class ReadOnly(FileDisk):
        def _sync_folder(self, path):
            raise OSError(errno.EROFS, "read-only")

    with pytest.raises(NotReady):
        ReadOnly(tmp_path, writable=heard.append).make_folder(tmp_path / "x")
    assert heard == [False]


def test_a_relaxed_disk_waits_for_nothing(tmp_path, monkeypatch):
    def never(descriptor):
        raise AssertionError("fsync was called")

    monkeypatch.setattr(os, "fsync", never)
    disk = FileDisk(tmp_path, durable=False)
    disk.replace(tmp_path / "a", b"1")
    disk.append(tmp_path / "a", b"2")
    assert disk.read(tmp_path / "a") == b"12"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_files_and_folders_are_private_to_the_user(tmp_path):
    disk = FileDisk(tmp_path / "data")
    disk.make_folder(disk.root / "x")
    disk.replace(disk.root / "x" / "a", b"1")
    disk.append(disk.root / "x" / "b", b"1")
    modes = {name: (disk.root / name).stat().st_mode & 0o777 for name in (".", "x", "x/a", "x/b")}
    assert modes == {".": 0o700, "x": 0o700, "x/a": 0o600, "x/b": 0o600}


OUTSIDE = {
    "read": lambda disk, path: disk.read(path),
    "append": lambda disk, path: disk.append(path, b"evil"),
    "truncate": lambda disk, path: disk.truncate(path, 0),
}


@pytest.fixture
def outside(tmp_path):
    """A data folder, and a file beside it that a link could lead to."""
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_bytes(b"secret")
    return tmp_path / "elsewhere"


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege there")
@pytest.mark.parametrize("call", OUTSIDE.values(), ids=OUTSIDE)
def test_a_link_to_a_file_outside_is_not_followed(outside, call):
    disk = FileDisk(outside.parent / "data")
    (disk.root / "link").symlink_to(outside / "secret")
    with pytest.raises(Corrupt) as caught:
        call(disk, disk.root / "link")
    assert caught.value.reason == Reason.STORAGE_UNSAFE
    assert (outside / "secret").read_bytes() == b"secret"


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege there")
@pytest.mark.parametrize(
    "call",
    [
        *OUTSIDE.values(),
        lambda disk, path: disk.replace(path, b"evil"),
        lambda disk, path: disk.remove(path),
        lambda disk, path: disk.rename(path, disk.root / "taken"),
        lambda disk, path: disk.names(path.parent),
        lambda disk, path: disk.make_folder(path.parent / "x"),
    ],
)
def test_a_link_to_a_folder_outside_is_not_followed(outside, call):
    disk = FileDisk(outside.parent / "data")
    (disk.root / "link").symlink_to(outside, target_is_directory=True)
    with pytest.raises(Corrupt):
        call(disk, disk.root / "link" / "secret")
    assert sorted(os.listdir(outside)) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


@pytest.mark.skipif(os.name == "nt", reason="making links needs a privilege there")
def test_replacing_and_removing_a_link_touches_the_link_alone(outside):
    disk = FileDisk(outside.parent / "data")
    (disk.root / "link").symlink_to(outside / "secret")
    disk.replace(disk.root / "link", b"mine")
    assert disk.read(disk.root / "link") == b"mine"
    (disk.root / "folder").symlink_to(outside, target_is_directory=True)
    disk.remove(disk.root / "folder")
    assert (outside / "secret").read_bytes() == b"secret"


def test_a_session_loses_nothing_while_other_folders_are_moved_and_removed(tmp_path):
    disk = SessionDisk(tmp_path)
    disk.make_folder(tmp_path / "kept")

    def come_and_go(name):
        for number in range(50):
            disk.make_folder(tmp_path / name)
            disk.replace(tmp_path / name / "a", b"x")
            disk.rename(tmp_path / name, tmp_path / f"{name}.{number}")
            disk.remove(tmp_path / f"{name}.{number}")

    def write(name):
        for number in range(300):
            disk.replace(tmp_path / "kept" / f"{name}-{number}", b"x")

    with ThreadPoolExecutor(6) as threads:
        work = [threads.submit(come_and_go, str(n)) for n in range(3)] + [threads.submit(write, n) for n in range(3)]
        for one in work:
            one.result()
    assert len(disk.names(tmp_path / "kept")) == 900
    assert disk.names(tmp_path) == ["kept"]


class NoFolder(FileDisk):
    """A disk that does every write and then, while ``fails``, cannot make the folder safe."""

    fails = True

    def _sync_folder(self, path):
        if self.fails:
            raise OSError(errno.EIO, "the folder is not safe")
        super()._sync_folder(path)


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_file_whose_folder_cannot_be_made_safe_is_as_it_was(tmp_path, old):
    if old is not None:
        (tmp_path / "a").write_bytes(old)
    disk = NoFolder(tmp_path)
    with pytest.raises(Unavailable):
        disk.replace(tmp_path / "a", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({} if old is None else {"a": old})


def test_a_new_journal_whose_folder_cannot_be_made_safe_holds_nothing_and_is_begun_again(tmp_path):
    disk = NoFolder(tmp_path)
    with pytest.raises(Unavailable):
        disk.append(tmp_path / "a", b"1")
    disk.fails = False
    assert disk.append(tmp_path / "a", b"2") == 0
    assert (tmp_path / "a").read_bytes() == b"2"


def test_a_folder_whose_move_cannot_be_made_safe_is_where_it_was(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(Unavailable):
        NoFolder(tmp_path).rename(tmp_path / "x", tmp_path / "y")
    assert os.listdir(tmp_path) == ["x"]


def test_files_that_cannot_be_made_safe_together_are_told(tmp_path, monkeypatch):
    disk = FileDisk(tmp_path)
    disk.unsynced().replace(tmp_path / "a", b"1")
    monkeypatch.setattr(os, "fsync", refuses)
    with pytest.raises(LimitReached) as caught:
        disk.sync_all([tmp_path / "a"])
    assert caught.value.reason == Reason.STORAGE_FULL


def refuses(descriptor):
    raise OSError(errno.ENOSPC, "full")


def half(write):
    """A write that fails in its middle."""

    def fails(descriptor, data):
        write(descriptor, bytes(data)[: len(data) // 2])
        raise OSError(errno.EIO, "broken")

    return fails


def append_in_vain(disk, path, data, monkeypatch):
    """Half of an addition is written, and the disk does not take it back either."""
    with monkeypatch.context() as dying, pytest.raises(Unavailable):
        dying.setattr(os, "write", half(os.write))
        dying.setattr(os, "ftruncate", lambda descriptor, length: refuses(descriptor))
        disk.append(path, data)


@pytest.mark.skipif(os.name == "nt", reason="writes go another way there")
@pytest.mark.parametrize("linked", [False, True])
def test_what_a_dying_disk_kept_of_an_addition_that_failed_is_cut_off_before_the_next(tmp_path, monkeypatch, linked):
    disk, path = FileDisk(tmp_path), tmp_path / "a"
    disk.append(path, b"one")
    append_in_vain(disk, path, b"second", monkeypatch)
    if linked:
        os.link(path, tmp_path / "b")
    assert disk.unsynced().append(path, b"two") == 3
    assert disk.append(path, b"three") == 6
    assert path.read_bytes() == b"onetwothree"


@pytest.mark.skipif(os.name == "nt", reason="writes go another way there")
@pytest.mark.parametrize("change", ["replace", "truncate", "remove", "move away", "move here"])
def test_a_file_that_was_changed_since_an_addition_failed_is_not_cut(tmp_path, monkeypatch, change):
    disk, path = FileDisk(tmp_path), tmp_path / "folder" / "a"
    for folder in ("folder", "other"):
        disk.make_folder(tmp_path / folder)
        disk.append(tmp_path / folder / "a", b"1")
    append_in_vain(disk, path, b"second", monkeypatch)
    if change == "replace":
        disk.replace(path, b"longer")
    elif change == "truncate":
        disk.truncate(path, 0)
        disk.append(path, b"longer")
    elif change == "remove":
        disk.remove(tmp_path / "folder")
        disk.make_folder(path.parent)
        disk.append(path, b"longer")
    elif change == "move away":
        disk.rename(path.parent, tmp_path / "old")
        disk.make_folder(path.parent)
        disk.append(path, b"longer")
    else:
        disk.append(tmp_path / "other" / "a", b"onger")
        disk.rename(tmp_path / "folder", tmp_path / "old")
        disk.rename(tmp_path / "other", tmp_path / "folder")
    length = len(path.read_bytes())
    assert disk.append(path, b"!") == length


@pytest.mark.parametrize("part", [lambda disk: disk.below(disk.root), lambda disk: disk.unsynced()])
def test_what_one_part_of_a_disk_was_refused_another_part_that_writes_ends(tmp_path, monkeypatch, part):
    heard = []
    disk = FileDisk(tmp_path, writable=heard.append)
    with monkeypatch.context() as full, pytest.raises(LimitReached):
        full.setattr(os, "write", lambda descriptor, data: refuses(descriptor))
        part(disk).replace(tmp_path / "a", b"1")
    disk.replace(tmp_path / "a", b"1")
    assert heard == [False, True]
