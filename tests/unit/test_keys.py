"""Names on the disk: hashes of ids, the same on every machine, safe on every system."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.errors import InvalidInput, Reason
from sidecar.storage.keys import MAX_ID_CHARS, actor_folder, actor_id, actor_key, checked_id, save_folder

ROOT = Path("/data")
PARTS = ("save", "actor", "role", "player", "topic", "tenant")
# Any text that an id may be: no control characters, no lone surrogates.
ID = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=40)


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        (
            {"actor": "durable-actor", "role": "Teacher"},
            "actor-v1-41c65a23481e043633e0ec53a338f9272dc30c1a4d350a2c1e04d30c1e781c67",
        ),
        (
            {"actor": " durable-actor ", "role": "Teacher\n"},
            "actor-v1-41c65a23481e043633e0ec53a338f9272dc30c1a4d350a2c1e04d30c1e781c67",
        ),
    ],
)
def test_a_key_is_the_published_hash(parts, key):
    assert actor_key(actor_id(**parts)) == key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"actor": "a", "topic": "one"}, {"actor": "a", "topic": "two"}),
        ({"actor": "a", "tenant": "x"}, {"actor": "a", "tenant": "y"}),
        ({"actor": "a", "tenant": "x"}, {"actor": "a", "player": "x"}),
        ({"actor": "a", "role": "b"}, {"actor": "b", "role": "a"}),
        ({"actor": "a1"}, {"actor": "a", "player": "1"}),
        ({"actor": "Mira"}, {"actor": "mira"}),
        ({"actor": "caf\u00e9"}, {"actor": "cafe\u0301"}),
        ({"actor": ""}, {"actor": "Creator"}),
    ],
)
def test_addresses_that_differ_in_a_part_have_different_keys(first, second):
    assert actor_key(actor_id(**first)) != actor_key(actor_id(**second))


def test_the_save_stands_outside_of_the_key_so_that_a_fork_is_a_copy():
    one, two = actor_id(save="one", actor="a"), actor_id(save="two", actor="a")
    assert actor_key(one) == actor_key(two)
    assert actor_folder(ROOT, one) != actor_folder(ROOT, two)


def test_the_one_player_of_a_game_identifies_nobody():
    assert actor_id(actor="local", role="Guide") == actor_id(role="Guide")


def test_blank_parts_take_their_defaults():
    assert actor_id(save=" ", role="\t") == actor_id(save="default", role="Creator")


@given(st.fixed_dictionaries(dict.fromkeys(PARTS, ID)))
def test_any_id_gives_a_safe_name_that_tells_nothing_of_it(parts):
    who = actor_id(**parts)
    assert re.fullmatch(r"actor-v1-[0-9a-f]{64}", actor_key(who))
    assert re.fullmatch(r"/data/saves/s-[0-9a-f]{32}/a-[0-9a-f]{32}", actor_folder(ROOT, who).as_posix())


@given(st.fixed_dictionaries(dict.fromkeys(PARTS, ID)), st.fixed_dictionaries(dict.fromkeys(PARTS, ID)))
def test_two_addresses_have_one_folder_only_if_they_are_the_same(first, second):
    one, two = actor_id(**first), actor_id(**second)
    assert (actor_folder(ROOT, one) == actor_folder(ROOT, two)) == (one == two)


@given(ID, ID)
def test_two_saves_have_one_folder_only_if_they_are_the_same(first, second):
    assert (save_folder(ROOT, first) == save_folder(ROOT, second)) == (first == second)


@pytest.mark.parametrize("part", PARTS)
def test_an_id_may_have_512_letters_and_not_more(part):
    actor_id(**{part: "é" * MAX_ID_CHARS})
    with pytest.raises(InvalidInput) as caught:
        actor_id(**{part: "é" * (MAX_ID_CHARS + 1)})
    error = caught.value
    assert (error.reason, error.field) == (Reason.FIELD_TOO_LONG, f"actor.{part}_id")
    assert error.metadata["value"] == "512"


@pytest.mark.parametrize("letter", ["\x00", "\n", "\x1b", "\x7f", "\x85", "\ud800"])
def test_an_id_may_not_have_control_characters_or_lone_surrogates(letter):
    with pytest.raises(InvalidInput) as caught:
        actor_id(actor=f"a{letter}b")
    assert caught.value.reason == Reason.FIELD_INVALID


@pytest.mark.parametrize("name", ["../../etc", "CON", "nul.txt", "a/b\\c:d*?", "😀", "田中　", "\u202eevil", "."])
def test_names_that_file_systems_fear_are_ids_like_any_other(name):
    assert actor_id(actor=name).actor == name.strip()


@pytest.mark.parametrize("value", ["wolf\n", "\twolf", "wolf\x1f", "\x85wolf"])
def test_a_control_character_at_the_end_of_an_id_is_refused_not_trimmed(value):
    with pytest.raises(InvalidInput) as caught:
        checked_id(value, "record_id")
    assert (caught.value.reason, caught.value.field) == (Reason.FIELD_INVALID, "record_id")
