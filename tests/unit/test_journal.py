"""A journal keeps what was acknowledged, cuts what was not, and never guesses."""

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.errors import Corrupt, LimitReached, Reason
from sidecar.storage.disk import Disk
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.journal import Journal, Loaded, encode
from sidecar.storage.session_disk import SessionDisk

ROWS = [{"op": "add", "text": "the wolf"}, {"op": "add", "text": "狼\u2028\n🐺"}, {"op": "forget", "ids": []}]


@pytest.fixture(params=["file", "session"])
def disk(request, tmp_path) -> Disk:
    return FileDisk(tmp_path) if request.param == "file" else SessionDisk(tmp_path)


def journal_on(disk: Disk) -> Journal:
    return Journal(disk, disk.root / "records.jsonl")


def rows(loaded: Loaded) -> list[dict]:
    return [line.row for line in loaded.lines]


def test_rows_come_back_as_they_were_appended(disk):
    journal = journal_on(disk)
    journal.append(ROWS[:1])
    journal.append(ROWS[1:])
    assert rows(journal_on(disk).load()) == ROWS


def test_no_file_is_no_rows(disk):
    assert journal_on(disk).load() == Loaded([], None)


def test_reading_goes_on_from_an_offset(disk):
    journal = journal_on(disk)
    journal.append(ROWS[:2])
    (span,) = journal.append(ROWS[2:])
    assert rows(journal.load(span.offset)) == ROWS[2:]
    assert rows(journal.load(journal.size())) == []


def test_one_row_is_read_where_it_lies(disk):
    journal = journal_on(disk)
    journal.append(ROWS[:1])
    spans = journal.append(ROWS)
    assert [journal.read(*span) for span in spans] == ROWS
    with pytest.raises(Corrupt):
        journal.read(spans[1].offset + 1, spans[1].length)


def test_many_rows_are_read_where_they_lie_in_any_order(disk):
    journal = journal_on(disk)
    spans = [*journal.append(ROWS), *journal.append(ROWS)]
    assert list(journal.read_many(spans)) == [*ROWS, *ROWS]
    assert list(journal.read_many([spans[4], spans[1], spans[2], spans[0]])) == [ROWS[1], ROWS[1], ROWS[2], ROWS[0]]
    with pytest.raises(Corrupt):
        list(journal.read_many([spans[0], spans[0]._replace(offset=3)]))


def test_each_line_is_one_json_object_that_a_person_can_read(disk):
    journal_on(disk).append([{"text": "der Wölfin größter Wunsch"}])
    line = disk.read(disk.root / "records.jsonl").decode("utf-8")
    assert "der Wölfin größter Wunsch" in line
    assert json.loads(line)["row"] == {"text": "der Wölfin größter Wunsch"}


def test_the_rows_of_an_append_that_was_cut_short_are_all_dropped_and_told(disk):
    journal = journal_on(disk)
    journal.append(ROWS[:1])
    end = disk.append(disk.root / "records.jsonl", encode(ROWS)[:-1])
    loaded = journal_on(disk).load()
    assert rows(loaded) == ROWS[:1]
    assert loaded.torn is not None
    assert (loaded.torn.file, loaded.torn.offset) == ("records.jsonl", end)
    assert journal.size() == end


def test_an_append_of_which_only_whole_lines_arrived_is_dropped(disk):
    journal = journal_on(disk)
    first_line = encode(ROWS).split(b"\n")[0] + b"\n"
    disk.append(disk.root / "records.jsonl", encode(ROWS[2:]) + first_line)
    loaded = journal.load()
    assert rows(loaded) == ROWS[2:]
    assert loaded.torn is not None
    assert loaded.torn.dropped_bytes == len(first_line)


@pytest.mark.parametrize("torn", [b'{"crc":"', encode(ROWS)[:-1], encode(ROWS).split(b"\n")[0] + b"\n"])
def test_whole_appends_are_read_without_a_torn_end_which_stays(disk, torn):
    whole = encode(ROWS) + encode(ROWS[:1])
    disk.append(disk.root / "records.jsonl", whole + torn)
    assert b"".join(journal_on(disk).whole_appends()) == whole
    assert journal_on(disk).size() == len(whole + torn)


def test_appending_goes_on_after_a_cut(disk):
    disk.append(disk.root / "records.jsonl", encode(ROWS[:1]) + b'{"crc":"')
    journal = journal_on(disk)
    journal.load()
    journal.append(ROWS[1:])
    assert rows(journal_on(disk).load()) == ROWS


def test_a_bad_line_in_the_middle_is_data_loss_and_nothing_is_overwritten(disk):
    data = encode(ROWS[:1]) + encode(ROWS[1:2]).replace(b"add", b"ado") + encode(ROWS[2:])
    disk.append(disk.root / "records.jsonl", data)
    with pytest.raises(Corrupt) as caught:
        journal_on(disk).load()
    assert caught.value.reason is Reason.STORAGE_CORRUPT
    assert caught.value.metadata == {"file": "records.jsonl", "offset": str(len(encode(ROWS[:1])))}
    assert disk.read(disk.root / "records.jsonl") == data


def test_a_name_that_stands_twice_in_a_line_is_not_a_row(disk):
    journal_on(disk).append(ROWS)
    data = disk.read(disk.root / "records.jsonl")
    assert b'"op":"add","text"' in data
    disk.replace(disk.root / "records.jsonl", data.replace(b'"text"', b'"op"', 1))
    with pytest.raises(Corrupt):
        journal_on(disk).load()


def test_rewriting_puts_other_rows_in_their_place(disk):
    journal = journal_on(disk)
    journal.append(ROWS)
    spans = journal.rewrite(ROWS[1:])
    assert [journal.read(*span) for span in spans] == ROWS[1:]
    journal.append(ROWS[:1])
    assert rows(journal_on(disk).load()) == [*ROWS[1:], ROWS[0]]


def test_appends_of_many_threads_are_all_there_and_each_is_whole(tmp_path):
    journal = journal_on(FileDisk(tmp_path))

    def append_in_a_row(thread: int) -> None:
        for number in range(20):
            journal.append([{"thread": thread, "number": number, "half": half} for half in (0, 1)])

    threads = [threading.Thread(target=append_in_a_row, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = rows(journal.load())
    assert [row["half"] for row in found] == [0, 1] * 160
    for thread in range(8):
        assert [row["number"] for row in found if row["thread"] == thread and row["half"]] == list(range(20))


class CountingDisk(FileDisk):
    """A real disk that waits before its first append, so that others queue up, and counts appends."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.appends = 0
        self.go = threading.Event()

    def append(self, path: Path, data: bytes, *, sync: bool = True) -> int:
        self.appends += 1
        self.go.wait(10)
        return super().append(path, data, sync=sync)


def test_appends_that_wait_for_the_disk_share_one_write(tmp_path):
    disk = CountingDisk(tmp_path)
    journal = journal_on(disk)
    offsets: list[int] = []
    threads = [threading.Thread(target=lambda: offsets.append(journal.append(ROWS)[0].offset)) for _ in range(9)]
    for thread in threads:
        thread.start()
    while len(journal._waiting) < 8:
        threads[0].join(0.001)
    disk.go.set()
    for thread in threads:
        thread.join()
    assert disk.appends == 2
    assert sorted(offsets) == [number * len(encode(ROWS)) for number in range(9)]


class FullDisk(FileDisk):
    def append(self, path: Path, data: bytes, *, sync: bool = True) -> int:
        raise LimitReached("the disk is full", reason=Reason.STORAGE_FULL)


def test_a_full_disk_is_told_to_the_caller(tmp_path):
    with pytest.raises(LimitReached):
        journal_on(FullDisk(tmp_path)).append(ROWS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\n狼"), inner, max_size=3),
    max_leaves=6,
)
appends = st.lists(
    st.lists(st.dictionaries(st.text("abc"), json_values, max_size=3), min_size=1, max_size=3), max_size=5
)


@settings(max_examples=200)
@given(appends=appends, data=st.data())
def test_a_cut_anywhere_leaves_exactly_the_whole_appends_before_it(appends, data):
    disk = SessionDisk(Path("/session"))
    journal = journal_on(disk)
    ends = [0]
    for batch in appends:
        journal.append(batch)
        ends.append(journal.size())
    cut = data.draw(st.integers(0, ends[-1]))
    disk.append(disk.root / "records.jsonl", b"")
    disk.truncate(disk.root / "records.jsonl", cut)
    whole = sum(end <= cut for end in ends) - 1
    loaded = journal_on(disk).load()
    assert rows(loaded) == [row for batch in appends[:whole] for row in batch]
    assert (loaded.torn is None) == (cut in ends)


@settings(max_examples=200)
@given(position=st.integers(0, len(encode(ROWS)) - 1), value=st.integers(0, 255))
def test_a_changed_byte_is_never_read_as_a_row(position, value):
    data = bytearray(encode(ROWS))
    data[position] = value
    disk = SessionDisk(Path("/session"))
    disk.append(disk.root / "records.jsonl", bytes(data))
    try:
        found = rows(journal_on(disk).load())
    except Corrupt:
        return
    assert found == (ROWS if bytes(data) == encode(ROWS) else [])
