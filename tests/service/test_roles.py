"""Roles over the socket: built in, from the game's file, put by calls."""

from __future__ import annotations

import json

import pytest
from chat_client import PREFIX, Chat, parts
from client import failure

from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, memory_pb2, role_pb2

BUILT_IN = [
    "AINpc",
    "Analyzer",
    "Builder",
    "CoreMechanicAI",
    "Creator",
    "Merchant",
    "PlainChat",
    "Programmer",
    "SmartChat",
]


@pytest.fixture
def chat(daemon):
    return Chat(daemon.client)


def test_the_built_in_roles_are_listed_by_id(chat):
    answer = chat.stub.ListRoles(chat_pb2.ListRolesRequest())
    assert [info.role.role_id for info in answer.roles] == BUILT_IN
    assert {info.source for info in answer.roles} == {role_pb2.ROLE_SOURCE_BUILT_IN}


def test_roles_come_in_pages(chat):
    first = chat.stub.ListRoles(chat_pb2.ListRolesRequest(page_size=8))
    last = chat.stub.ListRoles(chat_pb2.ListRolesRequest(page_size=8, page_token=first.next_page_token))
    assert [info.role.role_id for info in (*first.roles, *last.roles)] == BUILT_IN
    assert last.next_page_token == ""


def test_a_role_that_nobody_put_has_the_defaults(chat):
    info = chat.role("Innkeeper")
    assert (info.source, info.effective.max_roundtrips) == (role_pb2.ROLE_SOURCE_DEFAULT, 20)
    assert info.effective.summary.max_summary_tokens == 2_048
    assert not info.role.HasField("max_roundtrips")
    assert (info.effective.system_prompt, info.effective.search_tool) == ('You are agent "Innkeeper".', True)


def test_a_blank_id_means_creator(chat):
    assert chat.role(" ").effective.role_id == "Creator"


def test_a_role_that_was_put_takes_the_rest_from_the_built_in_one(chat):
    info = chat.put_role("Programmer", persist_history=True)
    assert (info.source, info.effective.history, info.effective.persist_history) == (
        role_pb2.ROLE_SOURCE_CALL,
        False,
        True,
    )
    assert info.role == role_pb2.Role(role_id="Programmer", persist_history=True)
    assert info.effective.tool_results == role_pb2.TOOL_RESULT_POLICY_FULL


def test_a_role_is_there_after_a_restart(daemon, chat):
    chat.put_role("Innkeeper", system_prompt="Pour ale.", summary=role_pb2.SummaryOptions(max_summary_tokens=64))
    before = chat.role("Innkeeper")
    assert Chat(daemon.restart().client).role("Innkeeper") == before


def test_every_field_of_a_role_comes_back_as_it_was_put(daemon, chat):
    role = role_pb2.Role(
        role_id="Innkeeper",
        display_name="The innkeeper",
        payload_template="{hint}",
        memory_default_action=role_pb2.MEMORY_DEFAULT_ACTION_WRITE,
        sources=[common_pb2.Actor(save_id="s", actor_id="mira")],
        recall=role_pb2.RecallOptions(limit=3, mode=1, owners=[common_pb2.Actor(actor_id="mira")]),
        tool_results=role_pb2.TOOL_RESULT_POLICY_NONE,
        temperature=0.5,
        allowed_tools=role_pb2.AllowedTools(names=["memory"]),
        offline_lines=["Closed."],
        summary=role_pb2.SummaryOptions(trigger_ratio=0.5, system_prompt="Be brief.", background=False),
    )
    chat.stub.PutRole(chat_pb2.PutRoleRequest(role=role))
    info = Chat(daemon.restart().client).role("Innkeeper")
    assert info.role == role
    assert info.effective.recall.limit == 3
    assert info.effective.recall.max_tokens == 512


def test_a_role_decides_how_many_versions_of_its_documents_are_kept(daemon, chat, actor):
    client, forgetful = daemon.client, common_pb2.Actor(save_id=actor.save_id, role_id="Forgetful")
    chat.stub.PutRole(chat_pb2.PutRoleRequest(role=role_pb2.Role(role_id="Forgetful", max_document_versions=2)))
    for number in range(4):
        client.write(forgetful, f"text {number}")
        client.write(actor, f"text {number}")
    assert [one.version for one in client.versions(forgetful).versions] == [3, 4]
    assert [one.version for one in client.versions(actor).versions] == [1, 2, 3, 4]
    client.memory.RevertDocument(memory_pb2.RevertDocumentRequest(actor=forgetful, version=3))
    assert [one.version for one in client.versions(forgetful).versions] == [4, 5]


def test_a_deleted_role_is_what_it_was_before(chat):
    chat.put_role("Merchant", system_prompt="Sell fish.")
    assert chat.stub.DeleteRole(chat_pb2.DeleteRoleRequest(role_id="Merchant")).existed
    assert chat.role("Merchant").source == role_pb2.ROLE_SOURCE_BUILT_IN
    assert not chat.stub.DeleteRole(chat_pb2.DeleteRoleRequest(role_id="Merchant")).existed


def test_a_role_without_an_id_cannot_be_put_or_deleted(chat):
    assert failure(lambda: chat.put_role("  ")).fields == ("role.role_id",)
    assert failure(lambda: chat.stub.DeleteRole(chat_pb2.DeleteRoleRequest())).fields == ("role_id",)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"max_history_messages": 0}, "role.max_history_messages"),
        ({"temperature": 2.5}, "role.temperature"),
        ({"temperature": float("nan")}, "role.temperature"),
        ({"max_parallel_calls": 65}, "role.max_parallel_calls"),
        ({"system_prompt": "x" * 200_001}, "role.system_prompt"),
        ({"summary": role_pb2.SummaryOptions(trigger_ratio=1.5)}, "role.summary.trigger_ratio"),
        ({"summary": role_pb2.SummaryOptions(max_summary_tokens=-1)}, "role.summary.max_summary_tokens"),
        ({"recall": role_pb2.RecallOptions(limit=65)}, "role.recall.limit"),
        ({"offline_lines": ["x"] * 1_001}, "role.offline_lines"),
    ],
)
def test_a_field_out_of_range_is_named_and_nothing_changes(chat, fields, path):
    failed = failure(lambda: chat.put_role("Merchant", **fields))
    assert (failed.code.name, failed.fields) == ("INVALID_ARGUMENT", (path,))
    assert chat.role("Merchant").source == role_pb2.ROLE_SOURCE_BUILT_IN


def test_the_number_of_roles_has_a_bound(start_daemon):
    chat = Chat(start_daemon("--set", "chat.max_roles=1").client)
    chat.put_role("One")
    chat.put_role("One", history=False)
    assert failure(lambda: chat.put_role("Two")).kind == ("RESOURCE_EXHAUSTED", "TOO_MANY_ITEMS")


def roles_file(folder, *roles):
    file = folder / "roles.json"
    file.write_text(json.dumps({"roles": roles}), encoding="utf-8")
    return str(file)


def test_roles_from_the_games_file_hold_until_a_call_puts_another(start_daemon, tmp_path):
    file = roles_file(tmp_path, {"role_id": "Guard", "system_prompt": "Stand still.", "tool_results": "full"})
    chat = Chat(start_daemon("--roles", file).client)
    info = chat.role("Guard")
    assert (info.source, info.effective.system_prompt) == (role_pb2.ROLE_SOURCE_FILE, "Stand still.")
    chat.put_role("Guard", system_prompt="Run.")
    assert chat.role("Guard").source == role_pb2.ROLE_SOURCE_CALL
    chat.stub.DeleteRole(chat_pb2.DeleteRoleRequest(role_id="Guard"))
    assert chat.role("Guard").effective.system_prompt == "Stand still."


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "roles is not acceptable JSON"),
        ("[]", "of no use"),
        ('{"roles": {}}', "of no use"),
        ('{"roles": [1]}', "of no use"),
        ('{"roles": [{"role_id": "A"}, {"role_id": "B", "x": 1}]}', "roles[1].x "),
        ('{"roles": [{"x": 1}]}', "roles[0].role_id "),
        ('{"roles": [{"role_id": "A"}, {"role_id": " A "}]}', "roles[1].role_id stands twice"),
        ('{"roles": [{"role_id": "A", "role_id": "B"}]}', "stands twice"),
        ("[" * 100_000, "levels"),
    ],
)
def test_a_roles_file_of_no_use_stops_the_start_and_says_why(make_daemon, tmp_path, content, told):
    file = tmp_path / "roles.json"
    file.write_text(content, encoding="utf-8")
    daemon = make_daemon("--roles", str(file))
    daemon.launch()
    assert daemon.wait() == 2
    assert told in daemon.stderr


@pytest.mark.parametrize("content", [b"{broken", b"{}", b'{"roles": {}}', b'{"roles": [1]}'])
def test_stored_roles_that_cannot_be_read_are_told_and_left_alone(daemon, content):
    Chat(daemon.client).put_role("Guard")
    assert daemon.stop() == 0
    file = daemon.folder / "roles.json"
    file.write_bytes(content)
    chat = Chat(daemon.start().client)
    assert failure(lambda: chat.role("Guard")).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert failure(lambda: chat.put_role("Guard")).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert file.read_bytes() == content


def test_the_memory_tool_follows_the_role_that_was_put(daemon, chat, actor):
    chat.put_role("Merchant", memory_tool=False)
    daemon.client.write(actor, "Ada likes fish.")
    prompt = chat.prompt(actor, "hi")
    assert list(prompt.tools) == []
    assert not any("fish" in message.content for message in prompt.messages)


def test_the_prompt_begins_with_the_shared_rules_unless_the_role_declines(chat, actor):
    with_rules = parts(chat.prompt(actor), PREFIX)[0]
    chat.put_role("Merchant", use_universal_prefix=False, system_prompt="Sell fish.", additional_prompt="Be kind.")
    assert "Use a tool when" in with_rules
    assert parts(chat.prompt(actor), PREFIX) == ["Sell fish.\n\nBe kind."]


def test_a_prompt_that_is_too_long_is_told_with_the_limit_and_its_value(chat):
    told = failure(lambda: chat.put_role("Merchant", system_prompt="x" * 200_001))
    assert told.metadata == {"limit": "max_prompt_chars", "value": "200000"}


OWN_TOOLS = ["memory", "remember_game_memory", "search_game_memory"]


@pytest.mark.parametrize(
    ("fields", "offered"),
    [
        ({}, OWN_TOOLS),
        ({"memory_tool": False}, []),
        ({"remember_tool": False}, ["memory", "search_game_memory"]),
        ({"search_tool": False}, ["memory", "remember_game_memory"]),
        ({"memory_tool": False, "search_tool": True}, ["search_game_memory"]),
        ({"allowed_tools": role_pb2.AllowedTools()}, []),
        ({"allowed_tools": role_pb2.AllowedTools(names=["memory", "open_gate"])}, ["memory"]),
        ({"remember_tool": False, "allowed_tools": role_pb2.AllowedTools(names=OWN_TOOLS[:2])}, ["memory"]),
    ],
)
def test_a_role_says_which_of_the_daemons_tools_a_model_may_call(chat, daemon, fields, offered):
    chat.put_role("Smith", **fields)
    who, memory = common_pb2.Actor(role_id="Smith"), daemon.client.memory
    now = common_pb2.Moment(timeline_id="world", tick=1)
    listed = memory.ListTools(memory_pb2.ListToolsRequest(actor=who))
    assert [tool.name for tool in listed.tools] == offered
    prompt = chat.prompt(who, "Hi", moment=now)
    assert [tool.name for tool in prompt.tools] == offered
    refused = {
        name
        for name in OWN_TOOLS
        if memory.CallTool(memory_pb2.CallToolRequest(actor=who, name=name, moment=now)).reason == "TOOL_UNKNOWN"
    }
    assert refused == set(OWN_TOOLS) - set(offered)
