"""The matrix beside an owner's view: what it says of rows follows what arrives."""

import numpy as np
import pytest
from record_samples import House, owner, record

from sidecar.embedding.identity import EmbeddingIdentity, text_hash
from sidecar.errors import Unavailable
from sidecar.search.words import embedded_text
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.session_disk import SessionDisk

NPC = owner("npc")
IDENTITY = EmbeddingIdentity("test", "fake", "1", 2)
QUERY = np.array([1.0, 0.0], np.float32)
RECORDS = [record("m1", "wolf"), record("m2", "bread"), record("m3", "gate")]


@pytest.fixture
def house(tmp_path):
    rooms = House(SessionDisk(tmp_path))
    yield rooms
    rooms.close()


def put_vector(house, one, x, y):
    house.feed.put(IDENTITY, {text_hash(embedded_text(one)): np.array([x, y], np.float32)})


def similarities(house, *rows):
    with house.store.opened(NPC) as opened:
        view, _ = house.views.of(opened)
        matrix, _ = house.matrices.of(NPC, view, IDENTITY)
        return matrix.similarities(QUERY, np.array(rows)).tolist()


def test_a_query_that_is_asked_again_sees_the_vectors_that_came_meanwhile(house):
    house.store.add("session", [(NPC, one) for one in RECORDS[:2]])
    put_vector(house, RECORDS[0], 1, 0)
    assert similarities(house, 0, 1) == pytest.approx([1, np.nan], nan_ok=True)
    put_vector(house, RECORDS[1], 0, 1)
    assert similarities(house, 0, 1) == [1, 0]


def test_a_query_that_is_asked_again_of_other_rows_is_answered_for_those(house):
    house.store.add("session", [(NPC, one) for one in RECORDS])
    for one, (x, y) in zip(RECORDS, [(1, 0), (0, 1), (-1, 0)], strict=True):
        put_vector(house, one, x, y)
    assert similarities(house, 0, 1) == [1, 0]
    assert similarities(house, 1, 2) == [0, -1]
    assert similarities(house, 0, 1, 2) == [1, 0, -1]


def test_a_cache_that_could_not_be_read_for_a_while_costs_no_vector_afterwards(tmp_path):
    house = House(FileDisk(tmp_path))
    house.store.add("session", [(NPC, RECORDS[0])])
    put_vector(house, RECORDS[0], 1, 0)
    put_vector(house, RECORDS[1], 0, 1)
    assert similarities(house, 0) == [1]
    house.store.add("session", [(NPC, RECORDS[1])])
    house.vectors.close()
    aside = (tmp_path / "index").rename(tmp_path / "aside")
    (tmp_path / "index").touch()
    with pytest.raises(Unavailable):
        similarities(house, 0, 1)
    (tmp_path / "index").unlink()
    aside.rename(tmp_path / "index")
    assert similarities(house, 0, 1) == [1, 0]
    house.close()
