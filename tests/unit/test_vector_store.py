"""The vector cache on disk: what goes in comes out, it shrinks, and it may vanish at any moment."""

import os
import signal
import sqlite3
import subprocess
import sys
from threading import Thread

import numpy as np
import pytest

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.embedding.vectors import VectorStore
from sidecar.errors import LorekeeperError, Reason, Unavailable

A = EmbeddingIdentity("p", "a", "1", 4)
B = EmbeddingIdentity("p", "b", "1", 4)
ONE, TWO, THREE = (bytes([n]) * 32 for n in (1, 2, 3))


def unit(*values):
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "Željko 田中　🎮" / "vectors.sqlite3"


@pytest.fixture
def store(path):
    opened = VectorStore(path)
    yield opened
    opened.close()


def put(store, identity=A, keys=(ONE, TWO)):
    store.put_many(identity, {key: unit(key[0], 0.5, -1, 2**-20) for key in keys})


def there(store, identity, keys):
    return {key: vector for key, vector in store.load(identity, keys) if vector is not None}


def test_vectors_come_back_bit_for_bit_by_their_hash(store):
    put(store)
    found = there(store, A, [TWO, THREE, ONE])
    assert found.keys() == {ONE, TWO}
    assert found[TWO].dtype == np.float32
    assert np.array_equal(found[TWO], unit(2, 0.5, -1, 2**-20))


def test_vectors_are_kept_over_a_restart_as_little_endian_floats(store, path):
    put(store)
    store.close()
    with sqlite3.connect(path) as raw:
        (value,) = raw.execute("SELECT value FROM vectors WHERE hash = ?", (ONE,)).fetchone()
    assert value == unit(1, 0.5, -1, 2**-20).astype("<f4").tobytes()
    assert VectorStore(path).count(A) == 2


def test_vectors_of_two_identities_are_never_mixed(store):
    put(store, A, [ONE])
    assert there(store, B, [ONE]) == {}
    assert store.missing(B, [ONE]) == [ONE]


def test_what_is_missing_is_told_in_order_and_once_each(store):
    put(store, A, [TWO])
    assert store.missing(A, [THREE, TWO, ONE, THREE]) == [THREE, ONE]


def test_a_vector_put_again_replaces_the_old_one(store):
    put(store)
    store.put_many(A, {ONE: unit(9, 9, 9, 9)})
    assert there(store, A, [ONE])[ONE].tolist() == [0.5, 0.5, 0.5, 0.5]
    assert store.count(A) == 2


def test_a_vector_of_other_dimensions_is_refused(store):
    with pytest.raises(ValueError, match="dimensions"):
        store.put_many(A, {ONE: unit(1, 2)})


def test_a_row_of_another_length_is_left_out_and_counts_as_missing(store, path):
    put(store)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE vectors SET value = x'00' WHERE hash = ?", (ONE,))
    assert there(store, A, [ONE, TWO]).keys() == {TWO}
    assert store.missing(A, [ONE, TWO]) == [ONE]


def test_vectors_that_nobody_uses_are_collected_and_the_others_stay(store):
    put(store, A, [ONE, TWO, THREE])
    put(store, B, [ONE])
    assert store.collect(A, lambda batch: [key for key in batch if key == TWO]) == 2
    assert (store.count(A), store.count(B)) == (1, 1)


def test_use_is_asked_again_right_before_each_removal(store):
    keys = [os.urandom(32) for _ in range(1_200)]
    put(store, A, keys)
    asked = []
    assert store.collect(A, lambda batch: asked.extend(batch) or batch) == 0
    assert asked == keys


@pytest.mark.parametrize("dimensions", [384, 1024])
def test_fifty_thousand_vectors_come_and_go_and_the_file_stays_near_what_lives(store, path, dimensions):
    identity = EmbeddingIdentity("p", "m", "1", dimensions)
    rows = np.random.default_rng(1).normal(size=(500, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    keys = [os.urandom(32) for _ in range(50_000 * 384 // dimensions)]
    for start in range(0, len(keys), 500):
        store.put_many(identity, dict(zip(keys[start : start + 500], rows, strict=False)))
    kept = set(keys[::10])
    store.collect(identity, lambda batch: kept.intersection(batch))
    size = sum(file.stat().st_size for file in path.parent.iterdir())
    assert size < 1.3 * len(kept) * (dimensions * 4 + 32)
    assert there(store, identity, sorted(kept)).keys() == kept


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_nothing_is_written_through_a_link(tmp_path, linked):
    outside, inside = tmp_path / "outside", tmp_path / "index"
    outside.mkdir()
    if linked == "folder":
        inside.symlink_to(outside)
    else:
        inside.mkdir()
        (inside / "vectors.sqlite3").symlink_to(outside / "vectors.sqlite3")
    with pytest.raises(Unavailable):
        put(VectorStore(inside / "vectors.sqlite3"))
    assert list(outside.iterdir()) == []


def test_a_file_that_is_deleted_while_open_is_begun_again(store, path):
    put(store)
    path.unlink()
    assert there(store, A, [ONE]) == {}
    put(store)
    assert VectorStore(path).count(A) == 2


def test_a_folder_that_is_deleted_while_open_is_begun_again(store, path):
    put(store)
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()
    put(store)
    assert store.count(A) == 2


@pytest.mark.parametrize("garbage", [b"", b"garbage" * 5_000, b"SQLite format 3\0" + bytes(40_000)])
def test_a_garbled_file_is_thrown_away_and_begun_again(store, path, garbage):
    put(store)
    store.close()
    path.write_bytes(garbage)
    assert store.count(A) == 0
    put(store)
    assert store.count(A) == 2


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE vectors (a); CREATE TABLE identities (id, name, dimensions)",
        "CREATE TABLE vectors (id, identity, hash, value); CREATE TABLE identities (b)",
        "CREATE TABLE other (a); CREATE VIEW vectors AS SELECT * FROM other",
    ],
)
def test_a_file_with_tables_of_somebody_else_is_thrown_away_and_told(path, script):
    path.parent.mkdir()
    with sqlite3.connect(path) as foreign:
        foreign.executescript(script)
    foreign.close()
    told = []
    store = VectorStore(path, told.append)
    put(store)
    assert store.count(A) == 2
    assert [(one.code, one.details["file"]) for one in told] == [("vectors_thrown_away", "vectors.sqlite3")]
    store.close()


def test_a_garbled_page_within_the_file_costs_vectors_and_nothing_else(store, path):
    put(store, A, [os.urandom(32) for _ in range(3_000)])
    store.close()
    with path.open("r+b") as file:
        file.seek(32_768)
        file.write(os.urandom(65_536))
    put(store)
    assert there(store, A, [ONE, TWO]).keys() == {ONE, TWO}


def test_a_place_that_cannot_be_used_is_told_and_left_as_it_is(path):
    path.mkdir(parents=True)
    with pytest.raises(LorekeeperError) as error:
        put(VectorStore(path))
    assert error.value.reason is Reason.STORE_FAILED
    assert path.is_dir()


def test_a_write_that_finds_no_room_is_tried_again_and_throws_nothing_away(store):
    put(store)
    store._connection().execute("PRAGMA max_page_count = 5")
    put(store, A, [os.urandom(32) for _ in range(5_000)])
    assert store.count(A) == 5_002


def test_a_session_keeps_vectors_in_memory_alone(tmp_path):
    store = VectorStore(None)
    put(store)
    assert store.count(A) == 2
    assert store.bytes_on_disk() == 0
    assert list(tmp_path.iterdir()) == []


def test_threads_may_read_and_write_at_once(store):
    def work(n):
        for turn in range(20):
            put(store, A, [bytes([n, turn]) * 16])
            there(store, A, [bytes([n, turn]) * 16])

    threads = [Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.count(A) == 160


def test_a_writer_that_is_killed_leaves_a_file_that_opens(path):
    program = """
import sys, os, numpy as np
from pathlib import Path
from sidecar.embedding.vectors import VectorStore
from sidecar.embedding.identity import EmbeddingIdentity
store = VectorStore(Path(sys.argv[1]))
while True:
    store.put_many(EmbeddingIdentity("p", "a", "1", 4), {os.urandom(32): np.ones(4, np.float32)})
    print("put", flush=True)
"""
    writer = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
    for _ in range(20):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    writer.communicate()
    store = VectorStore(path)
    assert store.count(A) >= 19
    put(store)
    assert there(store, A, [ONE]).keys() == {ONE}
    store.close()


def test_the_version_stays_until_something_is_written_by_whomever(store, path):
    versions = [store.version()]
    put(store)
    versions.append(store.version())
    there(store, A, [ONE])
    assert store.version() == versions[-1]
    store.remove([ONE])
    versions.append(store.version())
    with sqlite3.connect(path) as other:
        other.execute("UPDATE vectors SET value = x'00'")
    versions.append(store.version())
    path.unlink()
    versions.append(store.version())
    assert len(set(versions)) == 5
