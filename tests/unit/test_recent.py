"""What is kept in memory for a while: the bound holds, and what is gone is gone."""

from __future__ import annotations

from sidecar.storage.keys import actor_id
from sidecar.storage.recent import Recent, RecentActors


def kept(recent: Recent[str, int]) -> str:
    return "".join(key for key in "abcd" if recent.get(key) is not None)


def test_what_was_kept_longest_ago_goes_first() -> None:
    recent: Recent[str, int] = Recent(2)
    for key in "abac":
        recent.keep(key, 1)
    assert kept(recent) == "ac"


def test_the_bound_is_one_of_all_weights_together() -> None:
    recent: Recent[str, int] = Recent(10)
    for key, weight in (("a", 4), ("b", 4), ("a", 2), ("c", 5)):
        recent.keep(key, 1, weight=weight)
    assert (kept(recent), recent.weight) == ("ac", 7)


def test_the_newest_stays_however_heavy_it_is() -> None:
    recent: Recent[str, int] = Recent(10)
    recent.keep("a", 1)
    recent.keep("b", 1, weight=11)
    assert (kept(recent), recent.weight) == ("b", 11)


def test_what_is_forgotten_weighs_nothing() -> None:
    recent: Recent[str, int] = Recent(10)
    for key in "abcd":
        recent.keep(key, 1, weight=2)
    recent.forget("a")
    recent.forget("a")
    recent.forget_where(lambda key: key == "c")
    assert (kept(recent), recent.weight) == ("bd", 4)
    recent.clear()
    assert (len(recent), recent.weight) == (0, 0)


def test_what_is_known_of_an_actor_goes_with_it_or_with_its_save() -> None:
    mira, other, elsewhere = actor_id(actor="mira"), actor_id(actor="toren"), actor_id(save="two", actor="mira")
    recent: RecentActors[int] = RecentActors(10)
    for who in (mira, other, elsewhere):
        recent.keep(who, 1)
    recent.erased(mira)
    assert (recent.get(mira), recent.get(other)) == (None, 1)
    recent.exchanged("default")
    assert (recent.get(other), recent.get(elsewhere)) == (None, 1)
