"""Whom an actor may search: itself, and owners that a pattern of the request or of its role matches."""

import json

import pytest
from chat_client import Chat
from client import failure
from records_client import Records, m

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2

REMEMBER, SEARCH = "remember_game_memory", "search_game_memory"
DENIED = ("PERMISSION_DENIED", "OWNER_NOT_ALLOWED")


@pytest.fixture
def records(shared_daemon, actor):
    """The records of an actor in a role of this test alone."""
    actor.role_id = actor.actor_id
    return Records(shared_daemon.client, actor)


@pytest.fixture
def guard(records):
    """A guard who owns one record."""
    guard = common_pb2.Actor(save_id="slot 1", actor_id=f"{records.actor.actor_id} guard", role_id="Guard")
    records.add(m("g1", "the wolf is at the gate"), actor=guard)
    return guard


def put_role(daemon, records, **role):
    Chat(daemon.client).put_role(records.actor.role_id, **role)


def asked(records, owner_id, *sources):
    """What the search tool answers a model that names an owner."""
    return records.call_tool(SEARCH, {"ownerId": owner_id}, sources=sources)


def memories(answer):
    return [memory["memoryId"] for memory in json.loads(answer.result_json)["memories"]]


def tools(records):
    return [tool.name for tool in records.memory.ListTools(memory_pb2.ListToolsRequest(actor=records.actor)).tools]


def test_the_empty_parts_of_a_source_match_any_value(records, guard):
    for pattern in ({"actor_id": guard.actor_id}, {"role_id": "Guard"}, {}):
        assert records.found("wolf", owners=[guard], sources=[common_pb2.Actor(**pattern)]) == ["g1"]


@pytest.mark.parametrize("pattern", [{"role_id": "Thief"}, {"role_id": "Guard", "player_id": "p1"}])
def test_a_source_that_does_not_match_allows_nothing(records, guard, pattern):
    fault = failure(lambda: records.search("wolf", owners=[guard], sources=[common_pb2.Actor(**pattern)]))
    assert (fault.kind, fault.fields) == (DENIED, ("owners[0]",))


def test_an_actor_may_search_the_sources_of_its_role(shared_daemon, records, guard):
    put_role(shared_daemon, records, sources=[common_pb2.Actor(role_id="Guard")])
    assert records.found("wolf", owners=[guard]) == ["g1"]
    assert memories(asked(records, guard.actor_id)) == ["g1"]


def test_a_source_of_a_role_that_names_a_save_holds_in_that_save_only(shared_daemon, records, guard):
    put_role(shared_daemon, records, sources=[common_pb2.Actor(save_id="slot 2")])
    assert failure(lambda: records.search("wolf", owners=[guard])).kind == DENIED


def test_a_model_searches_the_owners_that_a_pattern_allows(records, guard):
    assert memories(asked(records, guard.actor_id, common_pb2.Actor(role_id="Guard"))) == ["g1"]
    answer = asked(records, guard.actor_id, common_pb2.Actor(role_id="Thief"))
    assert (answer.succeeded, answer.reason) == (False, "OWNER_NOT_ALLOWED")


def test_a_model_finds_nothing_of_an_allowed_owner_that_has_no_records(records):
    assert memories(asked(records, "nobody yet", common_pb2.Actor(actor_id="nobody yet"))) == []


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        ({}, ["memory", REMEMBER, SEARCH]),
        ({"remember_tool": False}, ["memory", SEARCH]),
        ({"search_tool": False}, ["memory", REMEMBER]),
        ({"memory_tool": False}, []),
        ({"memory_tool": False, "search_tool": True}, [SEARCH]),
    ],
)
def test_a_role_switches_the_record_tools_on_their_own(shared_daemon, records, role, offered):
    put_role(shared_daemon, records, **role)
    assert tools(records) == offered
