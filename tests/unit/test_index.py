"""The derived index may vanish, break or be locked: that costs time and never an answer."""

import sqlite3
import weakref
from pathlib import Path

import psutil
import pytest
from record_samples import House, house_on, owner, record

from sidecar.search.index_status import IndexStatus, Phase
from sidecar.settings import SearchSettings
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.session_disk import SessionDisk

NPC, OTHER = owner("npc"), owner("other")


@pytest.fixture
def house(tmp_path):
    house = house_on(tmp_path)
    house.store.add("session", [(NPC, record(f"m{n}", f"wolf {n}")) for n in range(40)])
    house.store.add("session", [(OTHER, record("m1", "bear", audience=("*",)))])
    return house


def file_of(house: House) -> Path:
    return next((house.disk.root / "index").glob("s-*.sqlite3"))


def status(house: House) -> IndexStatus:
    return IndexStatus(house.store, house.indexes, house.indexer, house.words.version)


def counts(house: House) -> tuple[int, int, int]:
    found = status(house).counts("session")
    return found.total, found.terms_ready, found.orphan


def rebuild(house: House, **how):
    return list(status(house).rebuild("session", **how))


def words_in_file(house: House) -> int:
    with sqlite3.connect(file_of(house)) as database:
        (count,) = database.execute("SELECT count(*) FROM words").fetchone()
    database.close()
    return count


def found_wolves(house: House) -> int:
    from sidecar.memory.record_filter import RecordFilter
    from sidecar.search.recall import Query

    return len(house.recall.run(Query(NPC, [NPC], "wolf", RecordFilter(), 100)).hits)


def test_the_index_is_written_behind_the_journals(house):
    assert counts(house) == (41, 0, 0) or counts(house)[1] > 0
    house.index_now()
    assert counts(house) == (41, 41, 0)
    assert words_in_file(house) == 41


def test_words_are_read_from_the_index_and_not_cut_again(house):
    house.store.forget(OTHER, ["m1"])
    house.index_now()
    again = house.again()
    again.words._cut = None  # whoever cuts words again fails
    assert found_wolves(again) == 40


def test_forgotten_records_leave_the_index(house):
    house.index_now()
    house.store.forget(NPC, [f"m{n}" for n in range(30)])
    house.index_now()
    assert counts(house) == (11, 11, 0)
    assert words_in_file(house) == 11


def test_a_deleted_index_is_built_again(house):
    house.index_now()
    house.indexes.close()
    for path in (house.disk.root / "index").iterdir():
        path.unlink()
    again = house.again()
    assert found_wolves(again) == 40
    assert again.store.catalog("session").total == 41
    rebuild(again)
    assert counts(again) == (41, 41, 0)


def test_an_index_deleted_under_a_running_daemon_is_built_again(house):
    house.index_now()
    file_of(house).unlink()
    assert found_wolves(house) == 40
    rebuild(house)
    assert words_in_file(house) == 41


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"this is no database, it is a shopping list" * 100,
        lambda data: data[:100] + b"\xff" * 3_000 + data[3_100:],
    ],
    ids=["empty", "truncated", "foreign", "garbled"],
)
def test_a_damaged_index_is_thrown_away_and_built_again(house, damage):
    house.index_now()
    house.close()
    file_of(house).write_bytes(damage(file_of(house).read_bytes()))
    again = House(house.disk)
    assert found_wolves(again) == 40
    assert again.store.catalog("session").total == 41
    rebuild(again)
    assert counts(again) == (41, 41, 0)
    assert words_in_file(again) == 41


def test_an_index_of_a_newer_version_is_thrown_away(house):
    house.index_now()
    house.close()
    with sqlite3.connect(file_of(house)) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    again = House(house.disk)
    assert again.store.catalog("session").total == 41
    assert "index_thrown_away" in [one.code for one in again.told]


def test_an_index_whose_words_were_cut_in_another_way_is_built_again(house):
    house.index_now()
    house.close()
    with sqlite3.connect(file_of(house)) as database:
        database.execute("UPDATE made_by SET version = 'older'")
    database.close()
    again = House(house.disk)
    assert found_wolves(again) == 40
    rebuild(again)
    assert words_in_file(again) == 41


def test_a_locked_index_is_left_alone_and_answers_come_from_the_journals(house):
    house.index_now()
    house.close()
    locker = sqlite3.connect(file_of(house), isolation_level=None)
    locker.execute("PRAGMA journal_mode = DELETE")
    locker.execute("BEGIN EXCLUSIVE")
    again = House(house.disk)
    assert found_wolves(again) == 40
    assert again.store.catalog("session").total == 41
    assert [one.code for one in again.told].count("index_unusable") == 1
    locker.execute("COMMIT")
    locker.close()
    rebuild(again)
    assert counts(again) == (41, 41, 0)


def test_a_rebuild_passes_over_what_is_ready_and_tells_how_far_it_is(house):
    rebuild(house)
    steps = rebuild(house)
    assert [step.phase for step in steps][-2:] == [Phase.CLEANUP, Phase.DONE]
    assert (steps[-1].total, steps[-1].done, steps[-1].skipped, steps[-1].removed) == (41, 41, 41, 0)
    assert rebuild(house, force=True)[-1].skipped == 0


def test_a_rebuild_mends_single_entries_and_removes_orphans(house):
    house.index_now()
    house.close()
    with sqlite3.connect(file_of(house)) as database:
        database.execute("DELETE FROM words WHERE hash = (SELECT min(hash) FROM words)")
        database.execute("INSERT INTO owners VALUES (99, 'a-gone', '[\"gone\"]', 5, 1, 3, '[]', 0)")
        database.execute("INSERT INTO words VALUES (99, 'x', 1, 'wolf', x'00')")
    database.close()
    again = House(house.disk)
    assert counts(again) == (41, 41, 3)
    last = rebuild(again)[-1]
    assert (last.removed, last.skipped) == (3, 40)
    assert words_in_file(again) == 41
    assert counts(again) == (41, 41, 0)


def test_a_rebuild_that_is_broken_off_goes_on_where_it_was(tmp_path):
    house = house_on(tmp_path)
    house.indexer.close()
    house.store.add("session", [(NPC, record(f"m{n}", "wolf")) for n in range(3_000)])
    steps = status(house).rebuild("session")
    next(steps), next(steps)
    steps.close()
    written = words_in_file(house)
    assert 0 < written < 3_000
    last = rebuild(house)[-1]
    assert (last.done, last.skipped) == (3_000, written)


def test_writes_go_on_while_an_index_is_rebuilt(tmp_path):
    house = house_on(tmp_path)
    house.store.add("session", [(owner(f"npc {n}"), record("m", "wolf")) for n in range(600)])
    for number, _ in enumerate(status(house).rebuild("session")):
        house.store.add("session", [(NPC, record(f"late {number}", "wolf"))])
        house.store.forget(owner("npc 5"), ["m"])
    rebuild(house)
    total, ready, orphan = counts(house)
    assert total == ready == house.store.catalog("session").total
    assert orphan == 0


def test_the_owner_of_an_entry_decides_who_finds_it_not_the_index(house):
    house.index_now()
    house.close()
    with sqlite3.connect(file_of(house)) as database:
        database.execute("UPDATE words SET owner = (SELECT owner FROM owners WHERE address LIKE '%npc%')")
    database.close()
    assert found_wolves(House(house.disk)) == 40


def test_exchanged_folders_are_looked_at_again_and_words_of_the_same_content_are_kept(house):
    house.index_now()
    house.store.forget(NPC, ["m1"])
    house.store.exchanged("session")
    house.indexes.exchanged("session")
    assert house.store.catalog("session").total == 40
    assert found_wolves(house) == 39


def test_an_erased_owner_leaves_the_index(house):
    house.index_now()
    house.actors.erase(NPC)
    house.store.erased(NPC)
    house.indexes.erased(NPC)
    assert counts(house) == (1, 1, 0)
    assert words_in_file(house) == 1


def test_the_file_shrinks_with_what_is_forgotten(tmp_path):
    house = house_on(tmp_path)
    house.store.add("session", [(NPC, record(f"m{n}", f"the wolf number {n} hunts at night")) for n in range(3_000)])
    house.index_now()
    house.store.forget(NPC, [f"m{n}" for n in range(2_700)])
    house.index_now()
    house.close()
    shrunk = file_of(house).stat().st_size
    file_of(house).unlink()
    again = House(house.disk)
    again.index_now()
    again.close()
    assert shrunk < 1.3 * file_of(again).stat().st_size


def damage_entry(house: House, sql: str) -> None:
    house.close()
    with sqlite3.connect(file_of(house)) as database:
        database.execute(f"UPDATE words SET {sql} WHERE hash = (SELECT min(hash) FROM words WHERE terms LIKE '%wolf%')")
    database.close()


@pytest.mark.parametrize("damage", ["terms = x'ff'", "length = 'many'", "length = -1", "text = x'00'", "text = 'none'"])
def test_a_damaged_entry_is_counted_left_out_told_and_made_again(house, damage):
    house.index_now()
    damage_entry(house, damage)
    again = House(house.disk)
    found = status(again).counts("session")
    assert (found.total, found.terms_ready, found.damaged) == (41, 40, 1)
    assert found_wolves(again) == 40
    assert [one.details for one in again.told if one.code == "terms_damaged"] == [{"entries": "1"}]
    rebuild(again)
    found = status(again).counts("session")
    assert (found.terms_ready, found.damaged) == (41, 0)


def test_an_entry_that_is_damaged_between_two_looks_at_the_status_is_counted(house):
    house.indexer.complete("session")  # nothing that is still written mends it
    asked = status(house)
    assert asked.counts("session").damaged == 0
    with sqlite3.connect(file_of(house)) as database:
        database.execute("UPDATE words SET length = -1 WHERE hash = (SELECT min(hash) FROM words)")
    database.close()
    assert asked.counts("session").damaged == 1


def test_a_rebuild_makes_a_damaged_entry_again(house):
    house.index_now()
    damage_entry(house, "length = -1")
    again = House(house.disk)
    (*_, done) = rebuild(again)
    assert (done.done, done.failed, status(again).counts("session").damaged) == (41, 0, 0)


def test_what_an_index_says_of_an_owner_may_be_nonsense(house):
    house.index_now()
    house.close()
    with sqlite3.connect(file_of(house)) as database:
        database.execute("UPDATE owners SET address = 'nobody', targets = '{'")
    database.close()
    again = House(house.disk)
    assert again.store.catalog("session").total == 41
    assert found_wolves(again) == 40


def test_words_cut_in_another_way_leave_no_doubt_that_a_text_is_still_used(house):
    house.index_now()
    texts = [text for _, text in house.indexes.of("session").texts()]
    house.close()
    with sqlite3.connect(file_of(house)) as database:
        database.execute("UPDATE made_by SET version = 'older'")
    database.close()
    again = House(house.disk)
    assert again.indexes.unused(texts[:5]) == []
    again.index_now()
    assert again.indexes.unused([b"x" * 32]) == [b"x" * 32]


def test_words_that_are_taken_away_meanwhile_make_no_text_unused(house, monkeypatch):
    house.index_now()
    index = house.indexes.of("session")
    texts = [text for _, text in index.texts()][:5]
    looked_at = index._database.run

    def look_and_take_away(work, **how):
        answer = looked_at(work, **how)
        looked_at(lambda database: database.executescript("DELETE FROM words; UPDATE owners SET size = -1"))
        return answer

    monkeypatch.setattr(index._database, "run", look_and_take_away)
    assert house.indexes.unused(texts) == []


def test_however_many_saves_are_used_few_indexes_are_open_and_all_are_right(tmp_path):
    house = House(FileDisk(tmp_path), search_limits=SearchSettings(index_delay_seconds=0.0, max_open_indexes=2))
    saves = [f"slot {number}" for number in range(9)]
    for save in saves:
        house.store.add(save, [(owner("npc", save), record("m1", f"wolf of {save}"))])
        house.indexer.complete(save)
    opened = {Path(file.path) for file in psutil.Process().open_files()}
    files = set((tmp_path / "index").glob("s-*.sqlite3"))
    assert (len(files), len(files & opened)) == (9, 2)
    assert [len(house.indexes.of(save).texts()) for save in saves] == [1] * 9


@pytest.mark.parametrize("in_memory", [False, True])
def test_nothing_is_kept_of_the_index_of_a_save_that_is_gone(tmp_path, in_memory):
    house = House(SessionDisk(tmp_path) if in_memory else FileDisk(tmp_path))
    house.store.add("doomed", [(owner("npc", "doomed"), record("m1", "wolf"))])
    house.indexer.complete("doomed")
    index = weakref.ref(house.indexes.of("doomed"))
    assert index()
    house.indexes.removed("doomed")
    assert index() is None


def test_asking_about_a_save_that_holds_nothing_makes_no_file(tmp_path):
    house = house_on(tmp_path)
    assert status(house).counts("slot 9").total == 0
    assert [step.done for step in status(house).rebuild("slot 9")][-1] == 0
    assert list(tmp_path.rglob("s-*.sqlite3*")) == []
