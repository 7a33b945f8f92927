"""Documents on a disk: what is stored, what is kept for reading, what a retry hears, what a failure leaves."""

from __future__ import annotations

import json

import pytest

from sidecar.errors import AlreadyExists, Corrupt, LimitReached, Reason
from sidecar.memory.document_store import DocumentStore
from sidecar.memory.edits import Action, Edit
from sidecar.settings import MemorySettings
from sidecar.storage.actors import Actors
from sidecar.storage.keys import actor_folder, actor_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.session_disk import SessionDisk

MIRA = actor_id(actor="mira")


class Disk(SessionDisk):
    """Counts writes of documents, and may be full."""

    written = 0
    full = False

    def replace(self, path, data):
        if path.name == "document.json":
            if self.full:
                raise LimitReached("full", reason=Reason.STORAGE_FULL)
            self.written += 1
        super().replace(path, data)


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path)


def store_on(disk, **limits):
    return DocumentStore(disk, Actors(disk), SaveStates(disk), MemorySettings(**limits), clock=lambda: 1_700_000_000.5)


def append(content):
    return [Edit(Action.APPEND, content=content)]


def file_of(disk, who=MIRA):
    return actor_folder(disk.root, who) / "document.json"


def test_a_fresh_store_sees_what_another_has_stored(disk):
    store_on(disk).edit(MIRA, append("one"))
    document = store_on(disk).read(MIRA)
    assert (document.text, document.version, document.versions[0].saved_at) == ("one", 1, 1_700_000_000)


def test_the_raw_address_stands_in_the_actors_own_file(disk):
    who = actor_id(save="s", actor="Željko 🎮", role="r")
    store_on(disk).edit(who, append("one"))
    stored = json.loads(disk.read(actor_folder(disk.root, who) / "actor.json"))
    assert (stored["actor_id"], stored["role_id"]) == ("Željko 🎮", "r")


def test_reading_and_failing_and_changing_nothing_write_nothing(disk):
    store = store_on(disk)
    store.read(MIRA)
    store.edit(MIRA, [Edit(Action.CLEAR)])
    with pytest.raises(Exception, match="not in the document"):
        store.edit(MIRA, [Edit(Action.DELETE, old_text="x")])
    assert disk.names(disk.root) == []
    store.edit(MIRA, append("one"))
    store.edit(MIRA, append("one"))
    assert disk.written == 1


def test_a_failed_write_leaves_the_document_as_it_was_and_may_be_repeated(disk):
    store = store_on(disk)
    store.edit(MIRA, append("one"))
    disk.full = True
    with pytest.raises(LimitReached):
        store.edit(MIRA, append("two"), idempotency_key="k")
    assert (store.read(MIRA).text, store_on(disk).read(MIRA).text) == ("one", "one")
    disk.full = False
    assert store.edit(MIRA, append("two"), idempotency_key="k").version == 2


def test_a_document_is_read_from_the_disk_once(disk):
    store = store_on(disk)
    store.edit(MIRA, append("one"))
    disk.remove(file_of(disk))
    assert store.read(MIRA).text == "one"
    assert store.cached(MIRA) is not None
    store.erased(MIRA)
    assert (store.cached(MIRA), store.read(MIRA).exists) == (None, False)


def test_what_is_kept_for_reading_stays_within_its_limit(disk):
    store = store_on(disk, max_cached_chars=5_000)
    for number in range(20):
        store.edit(actor_id(actor=str(number)), append("x" * 400))
    assert 0 < store.open_counts()["cached_chars"] <= 5_000
    assert store.cached(actor_id(actor="0")) is None
    assert store.read(actor_id(actor="0")).text == "x" * 400


def test_a_retry_hears_the_first_answer_also_from_a_fresh_store(disk):
    first = store_on(disk).edit(MIRA, append("one"), idempotency_key="k", expected_version=0)
    assert store_on(disk).edit(MIRA, append("one"), idempotency_key="k", expected_version=0) == first


def test_a_retry_of_what_changed_nothing_hears_that_again(disk):
    store = store_on(disk)
    store.edit(MIRA, append("one"))
    first = store.edit(MIRA, append("one"), idempotency_key="k")
    store.edit(MIRA, [Edit(Action.CLEAR)])
    assert store.edit(MIRA, append("one"), idempotency_key="k") == first
    assert store.read(MIRA).text == ""


def test_a_retry_of_a_reset_never_forgets_what_came_after_it(disk):
    store = store_on(disk)
    for existed in (False, True):
        assert store.reset(MIRA, idempotency_key=f"k{existed}") is existed
        store.edit(MIRA, append("later"))
        assert store.reset(MIRA, idempotency_key=f"k{existed}") is existed
        assert store.read(MIRA).text == "later"


@pytest.mark.parametrize("key", ["k", "\ud800", "x" * 512])
def test_a_key_used_for_another_request_is_refused(disk, key):
    store = store_on(disk)
    store.edit(MIRA, append("one"), idempotency_key=key)
    with pytest.raises(AlreadyExists):
        store.edit(MIRA, append("two"), idempotency_key=key)
    with pytest.raises(AlreadyExists):
        store.revert(MIRA, 1, idempotency_key=key)
    assert store.read(MIRA).text == "one"


def test_only_the_last_answers_are_kept(disk):
    store = store_on(disk, kept_answers=2)
    for number in range(3):
        store.edit(MIRA, append(str(number)), idempotency_key=str(number))
    assert store.edit(MIRA, append("2"), idempotency_key="2").version == 3
    assert len(store.read(MIRA).answers) == 2


def test_a_file_in_anothers_place_is_told_and_not_written_over(disk):
    store_on(disk).edit(actor_id(actor="bran"), append("his"))
    disk.rename(actor_folder(disk.root, actor_id(actor="bran")), actor_folder(disk.root, MIRA))
    before = disk.read(file_of(disk))
    with pytest.raises(Corrupt) as caught:
        store_on(disk).edit(MIRA, append("hers"))
    assert caught.value.reason == Reason.STORAGE_CORRUPT
    assert disk.read(file_of(disk)) == before


def test_a_reset_heals_what_cannot_be_read(disk):
    store_on(disk).edit(MIRA, append("one"))
    disk.replace(file_of(disk), b"{")
    store = store_on(disk)
    with pytest.raises(Corrupt):
        store.edit(MIRA, append("two"))
    assert disk.read(file_of(disk)) == b"{"
    assert store.reset(MIRA, expected_version=5) is True
    assert store.edit(MIRA, append("two")).version == 1
