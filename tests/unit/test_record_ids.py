"""The id of a record that is made depends on where it was made and never on what it says."""

from record_samples import owner

from sidecar.memory.moments import Moment
from sidecar.memory.record_ids import REMEMBER, made_id, random_id

HERE = {"turn": 1, "place": 0, "tool": REMEMBER}


def test_ids_are_those_of_the_shared_vectors():
    vector = "oga-memory-v1:b8aad55ba1fdfac2905e0ba394d8b8ecd02de5c063210260f9c507d3e16a706d"
    assert made_id(owner("actor"), "stable-input", Moment("world", 5), **HERE) == vector
    other = made_id(owner("other"), "stable-input", Moment("world", 5), **HERE)
    assert other.endswith("14324063c103814b89d433c06ee1154bbd9a0878a8ee5556244dc050fb6ab33c")


def test_every_part_of_the_place_makes_another_id():
    moment = Moment("world", 5)
    ids = {
        made_id(owner("a"), "i", moment, **HERE),
        made_id(owner("a", save="other"), "i", moment, **HERE),
        made_id(owner("a", player="p"), "i", moment, **HERE),
        made_id(owner("a"), "j", moment, **HERE),
        made_id(owner("a"), "i", Moment("world", 6), **HERE),
        made_id(owner("a"), "i", Moment("dream", 5), **HERE),
        made_id(owner("a"), "i", moment, turn=2, place=0, tool=REMEMBER),
        made_id(owner("a"), "i", moment, turn=1, place=1, tool=REMEMBER),
        made_id(owner("a"), "i", moment, turn=1, place=0, tool="other"),
    }
    assert len(ids) == 9


def test_a_random_id_is_never_the_same():
    assert random_id() != random_id()
