"""Records on a real disk: what is acknowledged is there, once, whatever happens in between."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_samples import House, house_on, owner, record

from sidecar.errors import AlreadyExists, Corrupt, LimitReached, NotFound, NotReady, Reason, Unavailable
from sidecar.memory.moments import LOWEST, Moment
from sidecar.memory.records import Share, ShareKind
from sidecar.memory.retention import RetentionPolicy
from sidecar.memory.sharing import merged_shares
from sidecar.settings import RecordSettings
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.journal import Journal
from sidecar.storage.keys import actor_folder
from sidecar.storage.session_disk import SessionDisk

NPC, OTHER, THIRD = owner("npc"), owner("other"), owner("third")


@pytest.fixture
def house(tmp_path):
    return house_on(tmp_path)


def add(house: House, *records, who=NPC):
    return house.store.add(who.save, [(who, one) for one in records]).records


def add_to_many(house: House, *owners, record_id="m"):
    return house.store.add("session", [(who, record(record_id, "the wolf")) for who in owners]).records


def journal_of(house: House, who=NPC) -> Path:
    return actor_folder(house.disk.root, who) / "records.jsonl"


def inboxes(house: House) -> list[str]:
    return sorted(path.name for path in house.disk.root.rglob("inbox*"))


# adding


def test_an_added_record_comes_back_as_it_was_given(house):
    given = record("m1", "wolf 🐺", tick=7, tags=("a",), source_input_id="i", ordinal=0)
    assert add(house, given)[0].created
    assert house.store.get(NPC, "m1").record == given
    assert house.again().store.get(NPC, "m1").record == given


def test_adding_it_again_changes_nothing_not_even_when_the_store_is_full(tmp_path):
    house = house_on(tmp_path, max_records_per_save=1, max_records_per_owner=1)
    add(house, record("m1"))
    size, state = house.disk.size(journal_of(house)), house.saves.state("session")
    assert not add(house, record("m1"))[0].created
    assert house.disk.size(journal_of(house)) == size
    assert house.saves.state("session") == state


def test_the_same_id_with_other_content_is_a_conflict(house):
    add(house, record("m1", "the wolf"))
    with pytest.raises(AlreadyExists) as caught:
        add(house, record("m2"), record("m1", "the bear"))
    assert caught.value.reason is Reason.CONTENT_CONFLICT
    assert caught.value.field == "records[1].record_id"
    assert house.ids(NPC) == ["m1"]


def test_the_same_id_twice_in_one_call_is_one_record_or_a_conflict(house):
    added = add(house, record("m1", "a"), record("m1", "a"))
    assert [one.created for one in added] == [True, False]
    with pytest.raises(AlreadyExists):
        add(house, record("m2", "a"), record("m2", "b"))
    assert house.ids(NPC) == ["m1"]


def test_an_id_belongs_to_its_owner_and_its_save(house):
    elsewhere = owner("npc", save="other save")
    for who in (NPC, OTHER, elsewhere):
        assert add(house, record("m1", who.actor + who.save), who=who)[0].created
    assert house.store.get(NPC, "m1").record.text == "npcsession"
    assert house.store.get(elsewhere, "m1").record.text == "npcother save"


@pytest.mark.parametrize("limit", ["max_records_per_save", "max_records_per_owner"])
def test_capacity_is_told_and_nothing_is_dropped(tmp_path, limit):
    house = house_on(tmp_path, **{limit: 2})
    add(house, record("m1"))
    with pytest.raises(LimitReached) as caught:
        add(house, record("m2"), record("m3"))
    assert caught.value.metadata == {"limit": f"records.{limit}", "value": "2"}
    assert house.ids(NPC) == ["m1"]
    assert add(house, record("m2"))[0].created


def test_the_capacity_of_a_save_counts_what_was_there_before_a_restart(tmp_path):
    house = house_on(tmp_path, max_records_per_save=2)
    add(house, record("m1"))
    add(house, record("m1"), who=OTHER)
    with pytest.raises(LimitReached):
        add(house.again(), record("m1"), who=THIRD)


# many owners at once


def test_a_batch_of_many_owners_is_safe_before_their_journals_are_written(house):
    add_to_many(house, NPC, OTHER)
    assert not house.disk.exists(journal_of(house))
    assert inboxes(house) == ["inbox.jsonl"]
    again = house.again()
    assert again.ids(NPC) == again.ids(OTHER) == ["m"]


def test_settling_moves_everything_into_the_journals_and_leaves_no_inbox(house):
    add_to_many(house, NPC, OTHER)
    house.store.settle("session")
    assert inboxes(house) == []
    assert house.disk.exists(journal_of(house))
    assert house.disk.exists(journal_of(house, OTHER).parent / "actor.json")
    assert house.again().ids(OTHER) == ["m"]


def test_a_moved_owner_is_safe_with_its_name_and_its_folder_before_the_inbox_goes(house, monkeypatch):
    add_to_many(house, NPC, OTHER)
    synced = set()

    def fsync(descriptor):
        synced.add((os.fstat(descriptor).st_dev, os.fstat(descriptor).st_ino))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        house.store.settle("session")
    folder = journal_of(house).parent
    for path in (folder / "records.jsonl", folder / "actor.json", folder, folder.parent):
        assert (path.stat().st_dev, path.stat().st_ino) in synced


def test_an_inbox_that_was_moved_already_counts_once(house):
    add_to_many(house, NPC, OTHER)
    inbox = next(house.disk.root.rglob("inbox.jsonl"))
    kept = inbox.read_bytes()
    house.store.settle("session")
    house.store.forget(NPC, ["m"])
    add(house, record("m", "something else"))
    inbox.write_bytes(kept)
    again = house.again()
    assert again.store.get(NPC, "m").record.text == "something else"
    assert again.store.get(OTHER, "m").record.text == "the wolf"
    again.store.settle("session")
    assert len(journal_of(house, OTHER).read_bytes().splitlines()) == 1


def test_a_single_add_after_a_batch_keeps_the_order(house):
    add_to_many(house, NPC, OTHER)
    add(house, record("later"))
    add_to_many(house, NPC, OTHER, record_id="last")
    with house.again().store.opened(NPC) as opened:
        assert list(opened.records().entries) == ["m", "later", "last"]


def test_flushing_some_owners_keeps_the_inbox_until_all_are_moved(house):
    add_to_many(house, NPC, OTHER, THIRD)
    assert house.store.flush("session", most=2) == 1
    assert inboxes(house) == ["inbox.old.jsonl"]
    add_to_many(house, NPC, THIRD, record_id="second")
    again = house.again()
    assert [again.ids(who) for who in (NPC, OTHER, THIRD)] == [["m", "second"], ["m"], ["m", "second"]]
    again.store.settle("session")
    assert inboxes(house) == []


def test_who_adds_faster_than_the_disk_moves_helps_to_move(tmp_path):
    house = house_on(tmp_path, max_waiting_bytes=1_000)
    for number in range(6):
        add_to_many(house, *(owner(f"npc {number}.{n}") for n in range(2)))
    assert house.disk.exists(journal_of(house, owner("npc 0.0")))
    assert house.store.catalog("session").total == 12


def test_a_session_store_touches_no_disk(tmp_path):
    house = House(SessionDisk(tmp_path / "data"))
    add_to_many(house, NPC, OTHER)
    house.store.settle("session")
    house.index_now()
    assert house.ids(OTHER) == ["m"]
    assert list(tmp_path.iterdir()) == []


# superseding, sharing, forgetting


def test_a_superseded_record_stays_and_names_its_successor(house):
    add(house, record("old"))
    house.store.supersede(NPC, "old", record("new"))
    for one in (house, house.again()):
        assert one.store.get(NPC, "old").entry.superseded_by == "new"
        assert one.store.get(NPC, "new").record.head.supersedes == "old"


@pytest.mark.parametrize(("moment", "since"), [(Moment("world", 7), 7), (Moment("dream", 7), LOWEST)])
def test_since_when_a_record_is_superseded_is_known_when_its_successor_is_gone(house, moment, since):
    add(house, record("old", tick=3))
    house.store.supersede(NPC, "old", record("new", moment=moment))
    house.store.forget(NPC, ["new"])
    for one in (house, house.again()):
        assert one.store.get(NPC, "old").entry.superseded_since == since


def test_superseding_again_in_the_same_way_changes_nothing_and_in_another_is_refused(house):
    add(house, record("old"))
    assert house.store.supersede(NPC, "old", record("new")).records[0].created
    assert not house.store.supersede(NPC, "old", record("new")).records[0].created
    with pytest.raises(NotReady):
        house.store.supersede(NPC, "old", record("newer"))
    assert house.store.supersede(NPC, "new", record("newer")).records[0].created


def test_what_does_not_exist_cannot_be_superseded_or_shared(house):
    with pytest.raises(NotFound):
        house.store.supersede(NPC, "old", record("new"))
    with pytest.raises(NotFound):
        house.store.share(NPC, "old", [])


def test_forgotten_text_leaves_the_disk(house):
    add(house, record("m1", "a secret"), record("m2", "the wolf"))
    assert house.store.forget(NPC, ["m1", "unknown", "m1"]) == 1
    assert b"a secret" not in journal_of(house).read_bytes()
    assert house.ids(NPC) == house.again().ids(NPC) == ["m2"]


@pytest.mark.parametrize("restart", [False, True])
def test_text_that_the_disk_kept_when_it_was_forgotten_leaves_it_when_the_call_is_made_again(
    house, monkeypatch, restart
):
    add(house, record("m1", "secret"), record("m2", "fox"))
    with monkeypatch.context() as full, pytest.raises(LimitReached):
        full.setattr(os, "replace", full_disk)
        house.store.forget(NPC, ["m1"])
    house = house.again() if restart else house
    assert house.store.forget(NPC, []) == 0
    assert b"secret" not in journal_of(house).read_bytes()
    assert house.ids(NPC) == house.again().ids(NPC) == ["m2"]


def full_disk(*_paths):
    raise OSError(errno.ENOSPC, "full")


def test_a_forgotten_id_may_be_used_again(house):
    add(house, record("m1", "before"))
    house.store.forget(NPC, ["m1"])
    assert add(house, record("m1", "after"))[0].created
    assert house.again().store.get(NPC, "m1").record.text == "after"


def test_what_is_kept_of_forgotten_records_is_bounded_and_never_dead_weight(tmp_path):
    house = house_on(tmp_path, kept_answers=2)
    for name in "abc":
        house.store.add("session", [(NPC, record(name))], asked=f"call {name}")
        house.store.forget(NPC, [name])
    for one in (house, house.again()):
        with one.store.opened(NPC) as opened:
            assert not opened.worth_compacting()
    add(house, record("kept"))
    assert house.again().store.add("session", [(NPC, record("c"))], asked="call c").records[0].created
    assert house.again().ids(NPC) == ["kept"]
    house.again().store.add("session", [(NPC, record("a"))], asked="call a")
    assert house.again().ids(NPC) == ["a", "kept"]


def test_shares_and_successors_survive_when_a_journal_is_compacted(house):
    share = Share(OTHER, ShareKind.WITNESS, record("m").head.moment)
    add(house, record("gone"), record("old"))
    house.store.share(NPC, "old", [share])
    house.store.supersede(NPC, "old", record("new"))
    house.store.forget(NPC, ["gone"])
    again = house.again().store.get(NPC, "old")
    assert (again.entry.shares, again.entry.superseded_by) == ((share,), "new")


def test_who_knows_a_record_already_keeps_the_better_kind_and_the_earlier_moment():
    moment = record("m").head.moment
    heard = Share(NPC, ShareKind.HEARSAY, moment)
    seen = Share(NPC, ShareKind.WITNESS, replace(moment, tick=9))
    earlier = replace(seen, moment=replace(moment, tick=8))
    since_heard = replace(seen, moment=moment)
    assert merged_shares([heard], [seen]) == ((since_heard,), 1)
    assert merged_shares([seen], [heard]) == ((since_heard,), 1)
    assert merged_shares([since_heard], [heard]) == ((since_heard,), 0)
    assert merged_shares([seen], [earlier]) == ((earlier,), 1)
    assert merged_shares([seen], [seen]) == ((seen,), 0)


def test_of_what_was_found_a_moment_ago_only_what_was_not_forgotten_since_is_read(house):
    add(house, record("kept", "wolf"), record("gone", "bear"), record("other", "fox"))
    add(house, record("m"), who=OTHER)
    found = []
    for who in (NPC, OTHER):
        with house.store.opened(who) as owner:
            found += [(who, entry) for entry in owner.records().entries.values()]
    house.store.forget(NPC, ["gone", "other"])
    add(house, record("other", "another fox"))
    there = list(house.store.still_there(found))
    assert [(one.owner, one.record.head.record_id) for one in there] == [(NPC, "kept"), (OTHER, "m")]


# retention


def test_retention_by_count_drops_the_least_important_then_the_oldest(house):
    house.groups.put_retention("session", None, RetentionPolicy(max_records=2))
    for name, tick, importance in [("a", 1, 0.9), ("b", 2, 0.2), ("c", 3, 0.2), ("d", 4, 0.5)]:
        add(house, record(name, tick=tick, importance=importance))
    assert house.ids(NPC) == ["a", "d"]


def test_retention_by_age_keeps_what_is_important_or_pinned(house):
    house.groups.put_retention("session", NPC, RetentionPolicy(max_age_ticks=10, keep_importance=0.8))
    add(house, record("old", tick=1), record("dear", tick=1, importance=0.8), record("pinned", tick=1, pinned=True))
    add(house, record("other", tick=11))
    assert house.ids(NPC) == ["dear", "old", "other", "pinned"]
    add(house, record("new", tick=12))
    assert house.ids(NPC) == ["dear", "new", "other", "pinned"]


def test_retention_compacts_the_journal_once_half_of_it_is_dead(house):
    house.groups.put_retention("session", None, RetentionPolicy(max_records=5))
    for number in range(60):
        add(house, record(f"m{number}", "x" * 200, tick=number))
    assert len(house.ids(NPC)) == 5
    assert house.disk.size(journal_of(house)) < 20 * 400


# faults


def damage(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0].replace(b'"rev"', b'"rex"') + b"".join(lines[1:]))


def test_a_bad_line_is_data_loss_for_its_owner_alone(house):
    add(house, record("m1"), record("m2"))
    add(house, record("m1"), who=OTHER)
    damage(journal_of(house))
    before = journal_of(house).read_bytes()
    again = house.again()
    with pytest.raises(Corrupt) as caught:
        again.store.get(NPC, "m2")
    assert "npc" not in str(caught.value)
    with pytest.raises(Corrupt):
        add(again, record("m3"))
    assert again.ids(OTHER) == ["m1"]
    assert add(again, record("m1"), who=THIRD)[0].created
    assert journal_of(house).read_bytes() == before


def test_rows_for_an_owner_whose_journal_is_damaged_stay_in_the_inbox(house):
    add(house, record("m1"), record("m2"))
    add_to_many(house, NPC, OTHER)
    damage(journal_of(house))
    again = house.again()
    again.store.settle("session")
    assert again.ids(OTHER) == ["m"]
    assert inboxes(house) == ["inbox.old.jsonl"]
    assert b"npc" in next(house.disk.root.rglob("inbox.old.jsonl")).read_bytes()


def test_a_torn_end_is_cut_off_and_told(house):
    add(house, record("m1"))
    with journal_of(house).open("ab") as journal:
        journal.write(b'{"crc":"0000')
    again = house.again()
    assert again.ids(NPC) == ["m1"]
    assert [one.code for one in again.told] == ["journal_torn_end_cut"]


def test_a_link_in_the_place_of_a_journal_is_refused(house, tmp_path):
    add(house, record("m1"))
    elsewhere = tmp_path.with_name("elsewhere")
    shutil.move(journal_of(house), elsewhere)
    journal_of(house).symlink_to(elsewhere)
    with pytest.raises(Corrupt) as caught:
        house.again().store.get(NPC, "m1")
    assert caught.value.reason is Reason.STORAGE_UNSAFE


class FullDisk(FileDisk):
    full = False

    def append(self, path, data, *, sync=True):
        if self.full:
            raise LimitReached("the disk is full", reason=Reason.STORAGE_FULL)
        return super().append(path, data, sync=sync)


def test_on_a_full_disk_nothing_is_acknowledged_or_remembered(tmp_path):
    house = House(FullDisk(tmp_path))
    add(house, record("m1"))
    house.disk.full = True
    for attempt in (lambda: add(house, record("m2")), lambda: add_to_many(house, NPC, OTHER)):
        with pytest.raises(LimitReached):
            attempt()
    assert house.ids(NPC) == ["m1"]
    house.disk.full = False
    assert add(house, record("m2"))[0].created
    assert house.again().ids(NPC) == ["m1", "m2"]


class DyingDisk(FileDisk):
    """Takes nothing any more from the moment on at which ``dies`` lets a folder not be made safe."""

    dies = dead = False

    def _sync_folder(self, path):
        self.dead = self.dead or self.dies
        if self.dead:
            raise OSError(errno.EIO, "the folder is not safe")
        super()._sync_folder(path)

    def _write_new(self, path, data):
        if self.dead:
            raise OSError(errno.EROFS, "read-only")
        super()._write_new(path, data)


def test_records_are_what_they_were_where_a_dying_disk_kept_the_journal_that_was_written_anew(tmp_path):
    house = House(DyingDisk(tmp_path))
    for number in range(5):
        add(house, record(f"m{number}", f"wolf {number}"))
    house.disk.dies = True
    with pytest.raises(Unavailable):
        house.store.forget(NPC, ["m0"])
    for again in (house, house.again()):
        for number in range(1, 5):
            assert again.store.get(NPC, f"m{number}").record == record(f"m{number}", f"wolf {number}")
    house.disk.dies = house.disk.dead = False
    house.store.forget(NPC, ["m0", "m4"])
    add(house, record("m5", "wolf 5"))
    for again in (house, house.again()):
        assert again.ids(NPC) == ["m1", "m2", "m3", "m5"]
        for number in (1, 2, 3, 5):
            assert again.store.get(NPC, f"m{number}").record == record(f"m{number}", f"wolf {number}")


def test_records_that_waited_count_once_where_a_dying_disk_kept_the_journal_that_was_written_anew(tmp_path):
    house = House(DyingDisk(tmp_path))
    add(house, *(record(f"m{number}") for number in range(3)))
    for _ in range(2):
        house.disk.dies = True
        with pytest.raises(Unavailable):
            house.store.forget(NPC, ["m0"])
        house.disk.dies = house.disk.dead = False
        add_to_many(house, NPC, OTHER, record_id="m3")
    house.store.settle("session")
    add(house, record("m4"))
    numbers = [line.row["n"] for line in Journal(house.disk, journal_of(house)).load().lines]
    assert numbers == sorted(set(numbers))
    assert house.ids(NPC) == house.again().ids(NPC) == ["m1", "m2", "m3", "m4"]


class CountingDisk(FileDisk):
    """Notes the name of every file that is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.files_read: list[str] = []

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        self.files_read.append(path.name)
        return super().read(path, offset, length)


def test_reopening_a_save_reads_no_journal_that_the_index_knows(tmp_path):
    house = House(CountingDisk(tmp_path))
    for number in range(20):
        add(house, *(record(f"m{n}") for n in range(5)), who=owner(f"npc {number}"))
    house.index_now()
    again = house.again()
    house.disk.files_read.clear()
    assert again.store.catalog("session").total == 100
    assert "records.jsonl" not in house.disk.files_read
    assert again.ids(owner("npc 7")) == [f"m{n}" for n in range(5)]
    assert house.disk.files_read.count("records.jsonl") == 2  # one journal: what it holds, and its end


def test_rows_of_many_saves_that_wait_are_moved_by_who_adds_more(tmp_path):
    house = house_on(tmp_path, max_waiting_bytes=1_000)
    for number in range(6):
        few = [owner(f"npc {n}", save=f"save {number}") for n in range(2)]
        house.store.add(f"save {number}", [(who, record("m")) for who in few])
    assert house.disk.exists(journal_of(house, owner("npc 0", save="save 0")))
    assert house.store.waits_long()
    for number in range(6):
        house.store.settle(f"save {number}")
    assert not house.store.waits_long()
    assert house.again().store.get(owner("npc 1", save="save 5"), "m").record == record("m")


def test_many_new_owners_of_a_save_that_is_not_there_yet_read_nothing(tmp_path):
    house = House(CountingDisk(tmp_path))
    add_to_many(house, *(owner(f"npc {number}") for number in range(20)))
    assert house.disk.files_read.count("save.json") < 5


def test_a_journal_that_grew_behind_the_index_is_noticed_at_the_next_opening(house):
    add(house, record("m1"))
    house.index_now()
    house.indexer.close()
    add(house, record("m2"))
    assert house.again().store.catalog("session").total == 2


# properties

actions = st.lists(
    st.tuples(
        st.sampled_from(["add", "many", "forget", "settle", "restart", "compact"]),
        st.sampled_from("abc"),
        st.integers(0, 2),
    ),
    max_size=14,
)


@settings(max_examples=60)
@given(actions)
def test_whatever_is_done_in_whatever_order_a_restart_changes_nothing(steps):
    house = House(SessionDisk(Path("/session")), RecordSettings(max_cached_owners=16, max_waiting_bytes=1))
    owners = [NPC, OTHER, THIRD]
    expected: dict = {who: {} for who in owners}
    for action, name, number in steps:
        who = owners[number]
        if action == "add" and name not in expected[who]:
            add(house, record(name, str(number)), who=who)
            expected[who][name] = str(number)
        elif action == "many":
            fresh = [one for one in owners if name not in expected[one]]
            house.store.add("session", [(one, record(name, "many")) for one in fresh])
            expected.update({one: {**expected[one], name: "many"} for one in fresh})
        elif action == "forget":
            house.store.forget(who, [name])
            expected[who].pop(name, None)
        elif action == "compact":
            house.store.forget(who, [name], at_once=False)
            expected[who].pop(name, None)
        elif action == "settle":
            house.store.settle("session")
        else:
            house = house.again()
    for one in (house, house.again()):
        for who in owners:
            assert {name: one.store.get(who, name).record.text for name in one.ids(who)} == expected[who]
        assert one.store.catalog("session").total == sum(map(len, expected.values()))
