"""Revisions: they rise with each change and never fall, however the daemon ends."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.errors import Corrupt, LimitReached, Reason
from sidecar.storage.keys import save_folder
from sidecar.storage.save_state import SaveState, SaveStates
from sidecar.storage.session_disk import SessionDisk


class Counting(SessionDisk):
    """Counts what it writes, and may be full."""

    written = 0
    full = False

    def replace(self, path, data):
        if self.full:
            raise LimitReached("full", reason=Reason.STORAGE_FULL)
        self.written += 1
        super().replace(path, data)


@pytest.fixture
def disk(tmp_path):
    return Counting(tmp_path)


def file_of(disk, save):
    return save_folder(disk.root, save) / "save.json"


def test_a_save_that_holds_nothing_is_at_zero_and_leaves_no_file(disk):
    assert SaveStates(disk).state("a") == SaveState(0, 0)
    assert disk.names(disk.root) == []


def test_each_change_is_one_more(disk):
    states = SaveStates(disk)
    assert [states.changed("a").revision for _ in range(3)] == [1, 2, 3]
    assert (states.state("a").revision, states.state("b").revision) == (3, 0)


def test_the_file_has_the_raw_id(disk):
    SaveStates(disk).ensure("slot 1 😀")
    assert json.loads(disk.read(file_of(disk, "slot 1 😀")))["save_id"] == "slot 1 😀"


def test_many_changes_cost_few_writes(disk):
    states = SaveStates(disk)
    for _ in range(900):
        states.changed("a")
    assert disk.written < 5


def test_a_clean_end_goes_on_without_a_gap(disk):
    states = SaveStates(disk)
    states.changed("a")
    states.close()
    assert SaveStates(disk).changed("a").revision == 2


@given(runs=st.lists(st.tuples(st.integers(0, 1_500), st.booleans()), min_size=1, max_size=4))
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_a_revision_never_falls_nor_is_told_twice_whether_the_daemon_ends_or_is_killed(tmp_path, runs):
    disk = Counting(tmp_path)
    told = []
    for changes, ends_well in runs:
        states = SaveStates(disk)
        told += [states.changed("a").revision for _ in range(changes)]
        if ends_well:
            states.close()
    assert told == sorted(set(told))


def test_a_state_after_a_kill_is_not_below_what_was_told(disk):
    told = SaveStates(disk).changed("a").revision
    assert SaveStates(disk).state("a").revision >= told


def test_an_end_on_a_full_disk_is_an_end_all_the_same(disk):
    states = SaveStates(disk)
    told = states.changed("a").revision
    disk.full = True
    states.close()
    disk.full = False
    assert SaveStates(disk).changed("a").revision > told


@pytest.mark.parametrize("stored", ['{"format":1}', '{"revision":"x","epoch":0}', '{"revision":null,"epoch":0}', "{"])
def test_a_damaged_file_is_told_and_stays(disk, stored):
    SaveStates(disk).ensure("a")
    disk.replace(file_of(disk, "a"), stored.encode())
    with pytest.raises(Corrupt) as caught:
        SaveStates(disk).changed("a")
    assert caught.value.reason == Reason.STORAGE_CORRUPT
    assert disk.read(file_of(disk, "a")) == stored.encode()


def test_a_save_that_was_exchanged_is_read_again(disk):
    states = SaveStates(disk)
    states.changed("a")
    disk.replace(file_of(disk, "a"), b'{"format":1,"save_id":"a","revision":50,"epoch":3}')
    states.forget("a")
    assert states.state("a") == SaveState(50, 3)
