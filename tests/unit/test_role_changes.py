"""Roles as a game writes them: every field of the contract, and nothing that is not in it."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.chat.role_changes import changed_role, changes_of, effective_changes
from sidecar.chat.role_messages import changes_from, info_to
from sidecar.chat.role_store import KnownRole, RoleSource
from sidecar.chat.roles import BUILT_IN_ROLES, RecallOptions, Role, SummaryOptions, ToolResults
from sidecar.errors import InvalidInput
from sidecar.gen.lorekeeper.v1 import role_pb2


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(Role, role_pb2.Role), (SummaryOptions, role_pb2.SummaryOptions), (RecallOptions, role_pb2.RecallOptions)],
)
def test_a_role_has_exactly_the_fields_of_the_contract(ours, theirs):
    assert {each.name for each in fields(ours)} == set(theirs.DESCRIPTOR.fields_by_name)


def test_what_is_left_out_comes_from_the_built_in_role():
    role = changed_role({"role_id": " Programmer ", "summary": {"max_tool_messages": 1}})
    assert (role.role_id, role.history, role.tool_results) == ("Programmer", False, ToolResults.FULL)
    assert (role.summary.use_model, role.summary.max_tool_messages) == (False, 1)


@pytest.mark.parametrize("role", BUILT_IN_ROLES.values(), ids=lambda role: role.role_id)
def test_a_role_written_out_in_full_is_the_same_role(role):
    assert changed_role(changes_of(role)) == role


@pytest.mark.parametrize("role", BUILT_IN_ROLES.values(), ids=lambda role: role.role_id)
def test_a_role_survives_the_wire(role):
    message = info_to(KnownRole(role, {}, RoleSource.BUILT_IN)).effective
    assert changed_role(effective_changes(role)) == changed_role(changes_from(message))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, "role.role_id"),
        ({"role_id": 7}, "role.role_id"),
        ({"role_id": "a\nb"}, "role.role_id"),
        ({"role_id": "A", "colour": "red"}, "role.colour"),
        ({"role_id": "A", "history": "yes"}, "role.history"),
        ({"role_id": "A", "system_prompt": 1}, "role.system_prompt"),
        ({"role_id": "A", "system_prompt": "\ud800"}, "role.system_prompt"),
        ({"role_id": "A", "max_roundtrips": 1.5}, "role.max_roundtrips"),
        ({"role_id": "A", "max_roundtrips": True}, "role.max_roundtrips"),
        ({"role_id": "A", "max_roundtrips": -1}, "role.max_roundtrips"),
        ({"role_id": "A", "tool_results": "some"}, "role.tool_results"),
        ({"role_id": "A", "summary": []}, "role.summary"),
        ({"role_id": "A", "summary": {"trigger_ratio": 0}}, "role.summary.trigger_ratio"),
        ({"role_id": "A", "allowed_tools": "memory"}, "role.allowed_tools"),
        ({"role_id": "A", "allowed_tools": ["memory", 1]}, "role.allowed_tools[1]"),
        ({"role_id": "A", "allowed_tools": ["x"] * 257}, "role.allowed_tools"),
        ({"role_id": "A", "sources": [1]}, "role.sources[0]"),
        ({"role_id": "A", "sources": [{"name": "mira"}]}, "role.sources[0]"),
        ({"role_id": "A", "sources": [{"actor_id": "x" * 600}]}, "role.sources[0].actor_id"),
        ({"role_id": "A", "recall": {"similarity_floor": 2}}, "role.recall.similarity_floor"),
        ({"role_id": "A", "recall": {"mode": "99"}}, "role.recall.mode"),
        ({"role_id": "A", "recall": {"owners": [{"actor_id": 7}]}}, "role.recall.owners[0]"),
        ({"role_id": "A", "recall": {"filter": {"colour": "red"}}}, "role.recall.filter"),
        ({"role_id": "A", "recall": {"filter": {"kinds": [99]}}}, "role.recall.filter.kinds[0]"),
        (
            {"role_id": "A", "recall": {"filter": {"minimum_importance": "NaN"}}},
            "role.recall.filter.minimum_importance",
        ),
    ],
)
def test_what_is_wrong_is_named(changes, path):
    with pytest.raises(InvalidInput) as told:
        changed_role(changes)
    assert told.value.field == path


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
)
names = st.sampled_from([each.name for each in fields(Role)])


@given(st.dictionaries(names, values, max_size=4))
def test_no_value_is_taken_that_the_contract_does_not_have(changes):
    try:
        role = changed_role({**changes, "role_id": "A"})
    except InvalidInput as error:
        assert error.field.startswith("role.")
    else:
        assert changed_role(changes_of(role)) == role
