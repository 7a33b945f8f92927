"""A save is exchanged as a whole or not at all: the process is killed, or the disk fills, at every single step."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import os
import shutil
from dataclasses import replace
from functools import partial

import pytest

from sidecar.daemon.rooms import Rooms
from sidecar.errors import AlreadyExists, LorekeeperError, NotReady
from sidecar.gen.lorekeeper.v1 import save_pb2
from sidecar.memory.edits import Action, Edit
from sidecar.saves.answers import Request
from sidecar.saves.checkpoint import Kind, Wish
from sidecar.saves.erasure import Doomed
from sidecar.saves.messages import erasure_to
from sidecar.saves.save_files import Fork
from sidecar.settings import Config, SavesSettings
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.forgetting import Who
from sidecar.storage.keys import actor_id

SAFETY = Wish(kind=Kind.SAFETY)
ACTORS = [actor_id(save="slot", actor=name) for name in ("mira", "wolf")]


class Killed(BaseException):
    """The process is gone: nobody tidies up."""


class FailingDisk(FileDisk):
    """Fails at the ``at``-th change, before or after it is made: by a kill, or by an error of the system."""

    def __init__(self, root, *, at, error, after=False):
        super().__init__(root)
        self._left = at
        self._error = error
        self._after = after
        self.failed = False

    def _step(self, change, *arguments):
        self._left -= 1
        due, gone = self._left == 0, self.failed and isinstance(self._error, Killed)
        if gone or (due and not self._after):
            self._fail()
        answer = change(*arguments)
        if due:
            self._fail()
        return answer

    def _fail(self):
        self.failed = True
        raise self._error

    def replace(self, path, data):
        self._step(super().replace, path, data)

    def append(self, path, data, **how):
        return self._step(partial(super().append, **how), path, data)

    def rename(self, old, new):
        self._step(super().rename, old, new)

    def make_folder(self, path):
        self._step(super().make_folder, path)

    def remove(self, path):
        self._step(super().remove, path)

    def clone(self, source, target):
        return self._step(super().clone, source, target)


class Told(FailingDisk):
    """A system's error is told as our own, as FileDisk does it."""

    def _fail(self):
        self.failed = True
        with self._told(self.root / "x"):
            raise self._error


def open_rooms(disk, *, report=lambda _: None):
    rooms = Rooms(disk, Config(saves=SavesSettings(kept_safety_checkpoints=2)), serving=lambda *_: None, report=report)
    rooms.recover()
    return rooms


def write(rooms, text, save="slot"):
    for who in ACTORS:
        rooms.documents.edit(actor_id(save=save, actor=who.actor), [Edit(Action.WRITE, content=text)])


def texts(rooms, save="slot"):
    return {rooms.documents.look(actor_id(save=save, actor=who.actor)).text for who in ACTORS}


@pytest.fixture
def prepared(tmp_path):
    """A folder with a save that is at "now", a checkpoint of it at "then", and two safeties of it."""
    rooms = open_rooms(FileDisk(tmp_path))
    write(rooms, "then")
    kept = rooms.save.files.checkpoint("slot", Wish())
    for _ in range(2):
        rooms.save.files.restore("slot", kept.checkpoint_id, SAFETY)
    write(rooms, "now")
    rooms.saves.close()
    return tmp_path, kept.checkpoint_id


def copies(folder, tmp_path_factory):
    """Ever new copies of a folder."""
    from shutil import copytree

    for number in itertools.count():
        yield copytree(folder, tmp_path_factory.mktemp("copies") / str(number))


def run_until_it_ends(folder, work, tmp_path_factory, make_disk):
    """Do ``work`` on copies of a folder with a failure at its first, second, … step until there is none any more."""
    for number, copy in enumerate(copies(folder, tmp_path_factory), 1):
        disk = make_disk(copy, number)
        failure = None
        rooms = open_rooms(disk)
        try:
            work(rooms)
        except (Killed, LorekeeperError) as error:
            failure = error
        yield disk, failure
        if not disk.failed:
            assert number > 5
            return


@pytest.mark.parametrize("after", [False, True])
def test_a_restore_that_is_killed_anywhere_leaves_all_of_one_state(prepared, tmp_path_factory, after):
    folder, kept = prepared
    seen = set()
    runs = run_until_it_ends(
        folder,
        lambda rooms: rooms.save.files.restore("slot", kept, SAFETY),
        tmp_path_factory,
        lambda copy, at: FailingDisk(copy, at=at, error=Killed(), after=after),
    )
    for disk, _failure in runs:
        again = open_rooms(FileDisk(disk.root))
        (text,) = texts(again)
        seen.add(text)
        assert again.saves.state("slot").epoch == (3 if text == "then" else 2)
        assert os.listdir(disk.root / "exchange") == []
        assert again.save.files.restore("slot", kept, SAFETY)
        assert texts(again) == {"then"}
    assert seen == {"then", "now"}


class Refusing(Told):
    """Takes no change any more from the ``at``-th on, until it is ``failed`` no longer."""

    def _step(self, change, *arguments):
        self._left -= 1
        if self.failed or self._left == 0:
            self._fail()
        return change(*arguments)


async def enter(rooms):
    with await rooms.gate.enter("slot", seconds=1.0):
        pass


def test_what_is_written_after_a_restore_that_the_disk_broke_off_stays_when_the_disk_is_well_again(
    prepared, tmp_path_factory
):
    folder, kept = prepared
    for number, copy in enumerate(copies(folder, tmp_path_factory), 1):
        disk = Refusing(copy, at=number, error=OSError(errno.EROFS, "read-only"))
        rooms = open_rooms(disk)
        with contextlib.suppress(LorekeeperError):
            rooms.save.files.restore("slot", kept, SAFETY)
        if not disk.failed:
            assert number > 5
            return
        if disk.exists(copy / "exchange" / rooms.save.files.layout.live("slot").name / "intent.json"):
            with pytest.raises(NotReady):
                asyncio.run(enter(rooms))
        disk.failed = False
        asyncio.run(enter(rooms))
        assert texts(rooms) in ({"now"}, {"then"})
        write(rooms, "later")
        assert texts(open_rooms(FileDisk(copy))) == {"later"}


def test_a_restore_that_is_killed_keeps_what_it_replaced(prepared, tmp_path_factory):
    folder, kept = prepared
    runs = run_until_it_ends(
        folder,
        lambda rooms: rooms.save.files.restore("slot", kept, SAFETY),
        tmp_path_factory,
        lambda copy, at: FailingDisk(copy, at=at, error=Killed()),
    )
    for disk, _failure in runs:
        again = open_rooms(FileDisk(disk.root))
        if texts(again) == {"then"}:
            newest = next(again.save.files.checkpoints.of_save("slot"))
            assert newest.wish.kind is Kind.SAFETY
            again.save.files.restore("slot", newest.checkpoint_id, SAFETY)
        assert texts(again) == {"now"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_restore_on_a_failing_disk_changes_nothing_or_everything(prepared, tmp_path_factory, code):
    folder, kept = prepared
    runs = run_until_it_ends(
        folder,
        lambda rooms: rooms.save.files.restore("slot", kept, SAFETY),
        tmp_path_factory,
        lambda copy, at: Told(copy, at=at, error=OSError(code, "no")),
    )
    for disk, failure in runs:
        rooms = open_rooms(FileDisk(disk.root))
        (text,) = texts(rooms)
        if failure is None:
            assert text == "then"


def test_a_checkpoint_that_is_killed_anywhere_is_whole_or_not_there(prepared, tmp_path_factory):
    folder, _kept = prepared
    runs = run_until_it_ends(
        folder,
        lambda rooms: rooms.save.files.checkpoint("slot", Wish(name="new")),
        tmp_path_factory,
        lambda copy, at: FailingDisk(copy, at=at, error=Killed()),
    )
    for disk, failure in runs:
        again = open_rooms(FileDisk(disk.root))
        made = [one for one in again.save.files.checkpoints.of_save("slot") if one.wish.name == "new"]
        assert texts(again) == {"now"}
        assert not any((disk.root / "exchange").glob("*"))
        assert failure is not None or len(made) == 1
        for one in made:
            write(again, "later")
            again.save.files.restore("slot", one.checkpoint_id, SAFETY)
            assert texts(again) == {"now"}


def test_a_fork_that_is_killed_anywhere_is_whole_or_not_there(prepared, tmp_path_factory):
    folder, kept = prepared
    runs = run_until_it_ends(
        folder,
        lambda rooms: rooms.save.files.fork(Fork("slot", kept, "fork")),
        tmp_path_factory,
        lambda copy, at: FailingDisk(copy, at=at, error=Killed()),
    )
    for disk, _failure in runs:
        again = open_rooms(FileDisk(disk.root))
        assert texts(again) == {"now"}
        assert texts(again, "fork") == ({"then"} if again.save.files.exists("fork") else {""})
        assert os.listdir(disk.root / "exchange") == []


def test_a_fork_whose_answer_a_kill_swallowed_is_not_made_again(prepared):
    folder, kept = prepared
    fork = Fork("slot", kept, "fork", key="k", request="r")
    made = open_rooms(FileDisk(folder)).save.files.fork(fork)
    again = open_rooms(FileDisk(folder))
    write(again, "went on", "fork")
    assert again.save.files.fork(fork) is made
    assert texts(again, "fork") == {"went on"}
    for other in (replace(fork, request="other"), replace(fork, key="other"), replace(fork, key="", request="")):
        with pytest.raises(AlreadyExists):
            again.save.files.fork(other)


ADA = actor_id(save="slot", actor="mira", player="Ada")
ASKED = Request("EraseSave", save_pb2.EraseSaveRequest(save_id="slot", idempotency_key="k"))


def told(removed):
    return save_pb2.EraseSaveResponse(existed=removed is not None, erased=erasure_to(removed))


def checkpoints_of(rooms):
    return list(rooms.save.files.checkpoints.of_save("slot"))


def told_as_it_is(store, kept):
    """Whether a checkpoint tells how many files and actors it holds."""
    files = [path for path in store.files("slot", kept.checkpoint_id).rglob("*") if path.is_file()]
    return (kept.files, kept.actors) == (len(files), sum(path.name == "actor.json" for path in files))


def holding(folder, text):
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


@pytest.fixture
def remembered(prepared):
    """The same, with what a player told, in the save and in a checkpoint."""
    folder, _kept = prepared
    rooms = open_rooms(FileDisk(folder))
    rooms.documents.edit(ADA, [Edit(Action.WRITE, content="secret")])
    rooms.save.files.checkpoint("slot", Wish())
    rooms.saves.close()
    return folder


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("who", [None, Who(actor=ADA), Who(player="Ada")], ids=["save", "actor", "player"])
def test_an_erasure_that_is_killed_anywhere_is_ended_and_its_answer_known_or_it_never_began(
    remembered, tmp_path_factory, who, after
):
    doomed, seen = Doomed("slot", who), set()
    runs = run_until_it_ends(
        remembered,
        lambda rooms: rooms.save.erasures.once(doomed, ASKED, told),
        tmp_path_factory,
        lambda copy, at: FailingDisk(copy, at=at, error=Killed(), after=after),
    )
    for disk, _failure in runs:
        again = open_rooms(FileDisk(disk.root))
        known = again.save.answers.known(ASKED, save_pb2.EraseSaveResponse)
        seen.add(known is not None)
        assert len(holding(disk.root, b"secret")) == (0 if known else 2)
        assert texts(again) == ({""} if known and who is None else {"now"})
        assert os.listdir(disk.root / "exchange") == []
        assert all(told_as_it_is(again.save.files.checkpoints, kept) for kept in checkpoints_of(again))
        if known:
            assert known.erased.documents == (3 if who is None else 1)
            again.documents.edit(ADA, [Edit(Action.WRITE, content="made anew")])
            assert again.save.erasures.once(doomed, ASKED, told) == known
            assert again.documents.look(ADA).text == "made anew"
    assert seen == {False, True}


@pytest.mark.parametrize("who", [None, Who(actor=ADA), Who(player="Ada")], ids=["save", "actor", "player"])
def test_an_erasure_on_a_failing_disk_can_be_repeated_and_nothing_is_erased_later(remembered, tmp_path_factory, who):
    doomed = Doomed("slot", who)
    runs = run_until_it_ends(
        remembered,
        lambda rooms: rooms.save.erasures.once(doomed, ASKED, told),
        tmp_path_factory,
        lambda copy, at: Told(copy, at=at, error=OSError(errno.EIO, "no")),
    )
    for disk, _failure in runs:
        rooms = open_rooms(FileDisk(disk.root))
        rooms.save.erasures.once(doomed, None, told)
        assert holding(disk.root, b"secret") == []


@pytest.mark.parametrize("written", [0.0, 0.5, 1.0])
def test_an_erasure_that_a_kill_met_while_it_was_written_down_never_began_and_keeps_nobody_from_starting(
    remembered, written
):
    disk = FailingDisk(remembered, at=3, error=Killed())
    with pytest.raises(Killed):
        open_rooms(disk).save.erasures.once(Doomed("slot"), ASKED, told)
    (intent,) = (remembered / "exchange").glob("e-*.json")
    whole = intent.read_bytes()
    intent.rename(intent.with_name(f"{intent.name}.tmp")).write_bytes(whole[: int(written * len(whole))])
    rooms = open_rooms(FileDisk(remembered))
    assert texts(rooms) == {"now"}
    assert len(holding(remembered, b"secret")) == 2
    assert os.listdir(remembered / "exchange") == []


def test_an_erasure_that_cannot_be_ended_after_a_kill_is_told(remembered):
    disk = FailingDisk(remembered, at=3, error=Killed())
    with pytest.raises(Killed):
        open_rooms(disk).save.erasures.once(Doomed("slot", Who(player="Ada")), ASKED, told)
    assert list((remembered / "exchange").glob("e-*.json"))
    for path in (remembered / "saves").rglob("actor.json"):
        path.write_bytes(b"broken")
    reports = []
    rooms = open_rooms(FileDisk(remembered), report=reports.append)
    assert [report.code for report in reports] == ["erasure_unfinished"]
    assert rooms.save.answers.known(ASKED, save_pb2.EraseSaveResponse) is None


def test_an_actor_whose_bytes_the_disk_keeps_is_erased_for_every_reader(prepared, monkeypatch):
    folder, _ = prepared
    rooms = open_rooms(FileDisk(folder))
    assert texts(rooms) == {"now"}
    with monkeypatch.context() as stuck, pytest.raises(NotReady):
        stuck.setattr(shutil, "rmtree", refuses)
        rooms.actor_files.erase(ACTORS[0])
    assert rooms.documents.look(ACTORS[0]).text == ""
    assert open_rooms(FileDisk(folder)).documents.look(ACTORS[0]).text == ""
    rooms.actor_files.erase(ACTORS[0])
    assert not list(folder.rglob("*.erased"))


def refuses(_path):
    raise OSError(errno.EROFS, "read-only")
