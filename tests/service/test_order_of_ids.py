"""Lists of ids go by UTF-16, as the engines' own languages sort text, and lose nothing between two pages."""

from __future__ import annotations

import pytest

from sidecar.gen.lorekeeper.v1 import backend_pb2, chat_pb2, chat_pb2_grpc, common_pb2, memory_pb2, role_pb2, save_pb2

# By code point the first would be the last.
ORDERED = ["\U0001f600", "￮"]


def roles(client, _actor):
    chat = chat_pb2_grpc.ChatServiceStub(client.channel)
    for role_id in ORDERED:
        chat.PutRole(chat_pb2.PutRoleRequest(role=role_pb2.Role(role_id=role_id)))
    return lambda **page: _of(chat.ListRoles(chat_pb2.ListRolesRequest(**page)), "roles", lambda one: one.role.role_id)


def backends(client, _actor):
    chat = chat_pb2_grpc.ChatServiceStub(client.channel)
    for backend_id in ORDERED:
        backend = backend_pb2.Backend(backend_id=backend_id, base_url="http://127.0.0.1:1/v1", model="m")
        chat.PutBackend(chat_pb2.PutBackendRequest(backend=backend))
    return lambda **page: _of(
        chat.ListBackends(chat_pb2.ListBackendsRequest(**page)), "backends", lambda one: one.backend.backend_id
    )


def groups(client, actor):
    named = [memory_pb2.Group(group_id=group_id) for group_id in ORDERED]
    client.memory.PutGroups(memory_pb2.PutGroupsRequest(save_id=actor.save_id, groups=named))
    return lambda **page: _of(
        client.memory.ListGroups(memory_pb2.ListGroupsRequest(save_id=actor.save_id, **page)),
        "groups",
        lambda one: one.group_id,
    )


def saves(client, _actor):
    for save_id in ORDERED:
        client.write(common_pb2.Actor(save_id=save_id), "Ada came.")
    return lambda **page: _of(
        client.saves.ListSaves(save_pb2.ListSavesRequest(**page)), "saves", lambda one: one.save_id
    )


def _of(answer, field, id_of):
    return [id_of(one) for one in getattr(answer, field)], answer.next_page_token


@pytest.mark.parametrize("kind", [roles, backends, groups, saves], ids=lambda kind: kind.__name__)
def test_ids_are_listed_by_utf_16_and_none_is_lost_between_pages(shared_daemon, actor, kind):
    listed = kind(shared_daemon.client, actor)
    paged, token = listed(page_size=1)
    while token:
        more, token = listed(page_size=1, page_token=token)
        paged += more
    assert [each for each in paged if each in ORDERED] == ORDERED
    assert paged == listed()[0]
