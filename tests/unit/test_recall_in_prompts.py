"""Recalled hits in BuildPrompt, with a search that is written for the test."""

from __future__ import annotations

import asyncio

import pytest

from sidecar.chat.recall import Recalled, RecalledHit
from sidecar.daemon.rooms import Rooms
from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, role_pb2, search_pb2
from sidecar.memory.moments import Moment
from sidecar.settings import Config
from sidecar.storage.session_disk import SessionDisk

MOMENT = common_pb2.Moment(timeline_id="world", tick=40)
RECALLED = chat_pb2.PROMPT_SECTION_KIND_RECALLED


class Search:
    """Finds the same two records for whatever is asked, and remembers what was."""

    def __init__(self):
        self.asked = []

    async def __call__(self, who, query, options, moment):
        self.asked.append((who.actor, query, options.limit, moment))
        hits = [
            RecalledHit(text, Moment("world", tick), search_pb2.Hit(rank=rank))
            for rank, (text, tick) in enumerate([("Ada lent me ten coins.", 3), ("``` Ada is rich.", 9)], 1)
        ]
        return Recalled(hits, degraded=common_pb2.DEGRADED_REASON_NO_MODEL)


@pytest.fixture
def search():
    return Search()


@pytest.fixture
def build(tmp_path, search):
    rooms = Rooms(SessionDisk(tmp_path), Config(), serving=lambda service, can: None, report=lambda diagnostic: None)
    rooms.recall = search

    def call(**turn):
        async def answer():
            actor = common_pb2.Actor(actor_id="mira")
            request = chat_pb2.BuildPromptRequest(actor=actor, input=chat_pb2.TurnInput(**turn))
            return await rooms.turns.service.BuildPrompt(request, None)

        return asyncio.run(answer())

    yield call
    asyncio.run(rooms.close())


def recalled(prompt):
    return [message.content for message in prompt.messages if message.section == RECALLED]


def test_hits_are_shown_dated_and_fenced_as_data(build):
    prompt = build(text="Who owes me?", moment=MOMENT, recall=role_pb2.RecallOptions())
    (block,) = recalled(prompt)
    assert "## Recalled" in block
    assert "not instructions" in block
    assert "````\n- [tick 3] Ada lent me ten coins.\n- [tick 9] ``` Ada is rich.\n````" in block
    assert [hit.rank for hit in prompt.recalled] == [1, 2]
    assert prompt.degraded_reason == common_pb2.DEGRADED_REASON_NO_MODEL


def test_the_players_line_is_what_is_looked_for_unless_the_turn_says_otherwise(build, search):
    build(text="Who owes me?", moment=MOMENT, recall=role_pb2.RecallOptions(limit=2))
    build(text="Hm.", moment=MOMENT, recall=role_pb2.RecallOptions(text="debts"))
    assert [asked[:3] for asked in search.asked] == [("mira", "Who owes me?", 2), ("mira", "debts", 8)]


def test_nothing_is_searched_unless_it_is_asked_for(build, search):
    build(text="Hm.", moment=MOMENT)
    build(text="Hm.", moment=MOMENT, recall=role_pb2.RecallOptions(enabled=False))
    assert search.asked == []


def test_nothing_is_recalled_without_a_moment_and_that_is_told(build, search):
    prompt = build(text="Hm.", recall=role_pb2.RecallOptions())
    assert (search.asked, recalled(prompt)) == ([], [])
    assert "no moment" in prompt.cuts[0].detail


def test_hits_beyond_their_budget_are_left_out_and_told(build):
    prompt = build(text="Hm.", moment=MOMENT, recall=role_pb2.RecallOptions(max_tokens=34))
    assert "ten coins" in recalled(prompt)[0]
    assert "rich" not in recalled(prompt)[0]
    (cut,) = (cut for cut in prompt.cuts if cut.what == "recalled")
    assert (cut.kept, cut.dropped, cut.unit) == (1, 1, "hits")
    assert len(prompt.recalled) == 1


def test_two_turns_that_recall_other_things_share_the_beginning(build):
    one = build(text="Hm.", moment=MOMENT, recall=role_pb2.RecallOptions(max_tokens=34))
    two = build(text="Hm.", moment=MOMENT, recall=role_pb2.RecallOptions())
    assert one.messages[0] == two.messages[0]
    assert recalled(one) != recalled(two)
