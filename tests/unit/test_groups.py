"""Groups and retention of a save: kept as a whole, decided when they are asked."""

import pytest
from record_samples import house_on, owner

from sidecar.errors import Corrupt, LimitReached
from sidecar.memory.groups import Group
from sidecar.memory.records import EVERYONE
from sidecar.memory.retention import RetentionPolicy
from sidecar.storage.keys import ActorId

NPC = owner("npc", role="Merchant")
SAVE = "session"


def pattern(actor: str = "", role: str = "") -> ActorId:
    return ActorId(SAVE, actor, role, "", "", "")


def groups_of(house, who=NPC) -> list[str]:
    return [group.group_id for group in house.groups.of(who)]


@pytest.mark.parametrize(
    ("member", "belongs"),
    [
        (pattern("npc"), True),
        (pattern(role="Merchant"), True),
        (pattern("npc", "Merchant"), True),
        (pattern(), True),
        (pattern("other"), False),
        (pattern("npc", "Guard"), False),
    ],
)
def test_empty_parts_of_a_members_address_match_any_value(tmp_path, member, belongs):
    house = house_on(tmp_path)
    house.groups.put(SAVE, [Group("g", members=(member,))], [])
    assert groups_of(house) == (["g", EVERYONE] if belongs else [EVERYONE])


def test_groups_and_retention_are_there_after_a_restart(tmp_path):
    house = house_on(tmp_path)
    policy = RetentionPolicy(max_records=5, keep_importance=0.5)
    group = Group("g", "Guards", (pattern("npc"),), 2.0, RetentionPolicy(max_age_ticks=9))
    house.groups.put(SAVE, [group], [])
    house.groups.put_retention(SAVE, None, policy)
    house.groups.put_retention(SAVE, owner("other"), RetentionPolicy(max_records=1))
    again = house.again().groups
    assert again.read(SAVE) == house.groups.read(SAVE)
    assert again.of(NPC)[0] == group
    assert again.retention(NPC) == RetentionPolicy(max_age_ticks=9)
    assert again.retention(owner("other")) == RetentionPolicy(max_records=1)
    assert again.retention(owner("third")) == policy


def test_putting_the_same_again_changes_nothing(tmp_path):
    house = house_on(tmp_path)
    house.groups.put(SAVE, [Group("g")], [])
    state = house.saves.state(SAVE)
    assert house.groups.put(SAVE, [Group("g")], ["unknown"]) == 1
    assert house.saves.state(SAVE) == state
    assert house.groups.put(SAVE, [], ["g"]) == 0
    assert house.saves.state(SAVE) != state


def test_too_many_groups_are_refused_and_none_is_put(tmp_path):
    house = house_on(tmp_path, max_groups=2)
    with pytest.raises(LimitReached):
        house.groups.put(SAVE, [Group(name) for name in "abc"], [])
    assert not house.groups.read(SAVE).groups


@pytest.mark.parametrize("damage", [b"{", b"[]", b'{"format":1}', b'{"format":1,"groups":[{}],"owners":[]}'])
def test_a_damaged_file_is_data_loss_and_left_as_it_is(tmp_path, damage):
    house = house_on(tmp_path)
    house.groups.put(SAVE, [Group("g")], [])
    path = next(tmp_path.rglob("groups.json"))
    path.write_bytes(damage)
    again = house.again().groups
    for attempt in (lambda: again.read(SAVE), lambda: again.put(SAVE, [Group("h")], [])):
        with pytest.raises(Corrupt):
            attempt()
    assert path.read_bytes() == damage
    assert again.applied_retention(NPC) is None
