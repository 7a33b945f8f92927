"""CompactionService with a model that writes summaries: a function of the test stands for the backend."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sidecar.chat.aim import Routed
from sidecar.compaction.summariser import CompletionAnswer, Writer
from sidecar.daemon.chat_rooms import ChatRooms
from sidecar.daemon.rooms import Rooms
from sidecar.errors import Reason, TimedOut
from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, compaction_pb2, role_pb2
from sidecar.settings import Config
from sidecar.storage.session_disk import SessionDisk

ACTOR = common_pb2.Actor(actor_id="mira")
MODEL = compaction_pb2.COMPACTION_STRATEGY_MODEL


class Game:
    """The chat and compaction services over stores in memory, with ``complete`` as the backend."""

    def __init__(self, folder, complete):
        self.diagnostics = []
        self.asked_for = []
        self.rooms = Rooms(
            SessionDisk(folder), Config(), serving=lambda service, can: None, report=self.diagnostics.append
        )

        def find(role, backend_id, api_key):
            self.asked_for.append((role.role_id, backend_id))
            return Writer(complete)

        self.chat = ChatRooms(
            self.rooms.ground,
            records=self.rooms.records.followed_store,
            documents=self.rooms.documents,
            toolbox=self.rooms.toolbox,
            roles=self.rooms.roles,
            route=lambda role, backend_id: Routed(self.rooms.chat.counters),
            look=lambda: None,
            find_writer=find,
        )

    async def talk(self, count, first=0):
        messages = [chat_pb2.NewMessage(role="user", content=f"line {n}") for n in range(first, first + count)]
        await self.chat.service.AppendMessages(chat_pb2.AppendMessagesRequest(actor=ACTOR, messages=messages), None)

    async def compact(self, **more):
        return await self.chat.compaction_service.Compact(compaction_pb2.CompactRequest(actor=ACTOR, **more), None)

    async def summary(self):
        request = compaction_pb2.GetSummaryRequest(actor=ACTOR)
        return (await self.chat.compaction_service.GetSummary(request, None)).summary

    async def close(self):
        await self.chat.close()
        await self.rooms.close()


@pytest.fixture
def play(tmp_path):
    """Runs a scene, which is handed a game with the backend that is given."""

    def run(complete, scene):
        async def whole():
            game = Game(tmp_path, complete)
            try:
                return await scene(game)
            finally:
                await game.close()

        return asyncio.run(whole())

    return run


def test_a_model_writes_the_summary_and_what_it_used_is_told(play):
    async def scene(game):
        await game.talk(45)
        return await game.compact(), await game.summary()

    answer, summary = play(lambda r: CompletionAnswer("They talked.", prompt_tokens=90, completion_tokens=7), scene)
    assert (answer.strategy, answer.attempts, summary.text) == (MODEL, 1, "They talked.")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.reported) == (90, 7, True)
    assert answer.failure == 0


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (TimedOut("too slow", reason=Reason.INFERENCE_TIMEOUT), compaction_pb2.COMPACTION_FAILURE_SUMMARY_TIMEOUT),
        (ConnectionError(), compaction_pb2.COMPACTION_FAILURE_SUMMARY_FAILED),
        (None, compaction_pb2.COMPACTION_FAILURE_SUMMARY_BLANK),
    ],
)
def test_a_model_that_fails_is_told_and_the_history_is_folded_by_rule(play, failure, told):
    def complete(request):
        if failure:
            raise failure
        return CompletionAnswer("  ")

    async def scene(game):
        await game.talk(45)
        return await game.compact()

    answer = play(complete, scene)
    assert answer.failure == told
    assert answer.strategy == compaction_pb2.COMPACTION_STRATEGY_DETERMINISTIC
    assert "- user: line 0" in answer.summary.text


def test_the_actor_goes_on_talking_while_a_model_writes(play):
    begun, go_on = threading.Event(), threading.Event()

    def complete(request):
        begun.set()
        assert go_on.wait(10)
        return CompletionAnswer("They talked.")

    async def scene(game):
        await game.talk(45)
        compaction = asyncio.create_task(game.compact())
        assert await asyncio.to_thread(begun.wait, 10)
        await game.talk(2, first=45)
        go_on.set()
        return await compaction, await game.compact()

    first, second = play(complete, scene)
    assert (first.compacted, first.summary.text) == (True, "They talked.")
    assert second.window.stored == 47


def test_what_a_model_wrote_of_a_history_that_was_cleared_is_thrown_away(play):
    begun, go_on = threading.Event(), threading.Event()

    def complete(request):
        begun.set()
        assert go_on.wait(10)
        return CompletionAnswer("The old story.")

    async def scene(game):
        await game.talk(45)
        compaction = asyncio.create_task(game.compact())
        assert await asyncio.to_thread(begun.wait, 10)
        await game.chat.service.ClearHistory(chat_pb2.ClearHistoryRequest(actor=ACTOR), None)
        go_on.set()
        answer = await compaction
        return answer, await game.summary()

    answer, summary = play(complete, scene)
    assert (answer.compacted, summary.version) == (False, 0)


def test_the_role_says_how_its_summaries_are_made(play):
    requests = []

    def complete(request):
        requests.append(request)
        return CompletionAnswer("x" * 5_000)

    async def scene(game):
        options = role_pb2.SummaryOptions(
            system_prompt="Only names.",
            max_output_tokens=64,
            temperature=0.5,
            max_summary_chars=300,
            backend_id="small",
        )
        role = role_pb2.Role(role_id="Creator", summary=options)
        await game.chat.service.PutRole(chat_pb2.PutRoleRequest(role=role), None)
        await game.talk(45)
        return await game.compact(), game.asked_for

    answer, asked_for = play(complete, scene)
    assert (requests[0].system, requests[0].max_output, requests[0].temperature) == ("Only names.", 64, 0.5)
    assert len(answer.summary.text) <= 300
    assert asked_for == [("Creator", "small")]


def test_a_role_that_wants_no_model_asks_none_unless_the_call_does(play):
    async def scene(game):
        role = role_pb2.Role(role_id="Creator", summary=role_pb2.SummaryOptions(use_model=False))
        await game.chat.service.PutRole(chat_pb2.PutRoleRequest(role=role), None)
        await game.talk(45)
        by_rule = await game.compact()
        await game.talk(20, first=45)
        return by_rule, await game.compact(strategy=MODEL)

    by_rule, by_model = play(lambda request: CompletionAnswer("They talked."), scene)
    assert (by_rule.attempts, by_model.attempts) == (0, 1)


def test_cuts_are_told_as_diagnostics_without_text(play):
    async def scene(game):
        await game.talk(45)
        await game.compact()
        return game.diagnostics

    diagnostics = play(lambda request: CompletionAnswer("secret " * 1_000), scene)
    assert {"cut_summary", "cut_history_window"} <= {diagnostic.code for diagnostic in diagnostics}
    assert not any("secret" in str(diagnostic) for diagnostic in diagnostics)
