"""Roles: the built-in table, ids, and the chat source."""

from __future__ import annotations

import pytest

from sidecar.chat.roles import BUILT_IN_ROLES, ToolResults, for_source, role_policy

TABLE = [
    # role, memory tool, history, persist, llm compaction, tool results, roundtrips
    ("Creator", True, True, False, True, ToolResults.COMPACT, 0),
    ("Builder", True, True, False, True, ToolResults.COMPACT, 0),
    ("Analyzer", True, True, False, True, ToolResults.COMPACT, 20),
    ("Programmer", True, False, False, False, ToolResults.FULL, 0),
    ("CoreMechanicAI", True, True, False, True, ToolResults.FULL, 20),
    ("AINpc", True, True, False, True, ToolResults.COMPACT, 20),
    ("Merchant", True, True, False, True, ToolResults.COMPACT, 20),
    ("PlainChat", False, True, True, True, ToolResults.COMPACT, 20),
    ("SmartChat", True, True, True, True, ToolResults.COMPACT, 20),
    ("Innkeeper", True, True, False, True, ToolResults.COMPACT, 20),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_a_role_has_the_defaults_of_the_table(row):
    role = role_policy(row[0])
    found = (role.memory_tool, role.history, role.persist_history, role.summary.use_model, role.tool_results)
    assert (role.role_id, *found, role.max_roundtrips) == row


def test_there_are_nine_built_in_roles_each_with_its_own_prompt():
    assert len(BUILT_IN_ROLES) == 9
    assert len({role.base_prompt() for role in BUILT_IN_ROLES.values()}) == 9


@pytest.mark.parametrize("blank", ["", "  ", "\t\n"])
def test_a_blank_role_id_means_creator(blank):
    assert role_policy(blank) is BUILT_IN_ROLES["Creator"]


def test_a_role_id_is_trimmed():
    assert role_policy(" Merchant ") is BUILT_IN_ROLES["Merchant"]


def test_an_unknown_role_introduces_itself_by_its_id():
    assert role_policy("Innkeeper").base_prompt() == 'You are agent "Innkeeper".'


@pytest.mark.parametrize("source", ["Chat", " chat ", "CHAT"])
def test_the_chat_source_lends_history_to_a_role_without_it_and_never_persists(source):
    role = for_source(role_policy("Programmer"), source)
    assert (role.history, role.persist_history) == (True, False)


@pytest.mark.parametrize("source", ["", "Quest", "chatter"])
def test_another_source_leaves_the_role_as_it_is(source):
    assert for_source(role_policy("Programmer"), source).history is False


def test_the_chat_source_does_not_stop_a_role_that_persists_by_itself():
    assert for_source(role_policy("SmartChat"), "Chat").persist_history is True
