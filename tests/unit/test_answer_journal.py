"""The journal of answers: the newest outlive the daemon, the oldest make room."""

from __future__ import annotations

import pytest

from sidecar.storage.answer_journal import AnswerJournal, KeptAnswer
from sidecar.storage.file_disk import FileDisk


@pytest.fixture
def opened(tmp_path):
    disk = FileDisk(tmp_path)
    return lambda: AnswerJournal(disk, tmp_path / "answers.jsonl", most=2)


def test_an_answer_is_known_after_a_restart(opened):
    kept = KeptAnswer("hash of what was asked", b"\x00told")
    opened().keep("key", kept)
    assert opened().known("key") == kept
    assert opened().known("another key") is None


def test_the_oldest_go_once_there_are_twice_as_many_as_are_kept(opened, tmp_path):
    journal = opened()
    for number in range(5):
        journal.keep(f"key {number}", KeptAnswer("asked", b"told"))
    for answers in (journal, opened()):
        assert [number for number in range(5) if answers.known(f"key {number}")] == [3, 4]
    assert (tmp_path / "answers.jsonl").read_bytes().count(b"\n") == 2
