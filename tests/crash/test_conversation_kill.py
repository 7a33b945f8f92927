"""A daemon that dies in the middle: what was told is there, each message once, and the summary fits its history."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from chat_client import SUMMARY, Chat, parts
from compaction_samples import policy
from record_samples import archived, store_on

from sidecar.chat.archive import Archive
from sidecar.chat.conversations import Conversations
from sidecar.chat.history_store import HistoryStore
from sidecar.chat.roles import Role, SummaryOptions
from sidecar.chat.rows import Row, message_kind
from sidecar.compaction.summaries import SummaryStore
from sidecar.compaction.tokens import HeuristicCounter
from sidecar.settings import ChatSettings
from sidecar.storage.actors import Actors
from sidecar.storage.keys import actor_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.session_disk import SessionDisk

WHO = actor_id(actor="mira")
ROLE = Role("Merchant", max_history_messages=2, summary=SummaryOptions(max_summary_tokens=0))
COUNTER = HeuristicCounter()


class Crash(BaseException):
    """The process is gone."""


class CrashingDisk(SessionDisk):
    """Takes so many writes, then dies before the next one; ``after`` it, another one finds what was written."""

    def __init__(self, writes=-1, *, after=None):
        super().__init__(Path("/world"))
        self._left = writes
        if after:
            self._files, self._folders = after._files, after._folders

    def _write(self):
        if self._left == 0:
            raise Crash
        self._left -= 1

    def replace(self, path, data):
        self._write()
        super().replace(path, data)

    def append(self, path, data, *, sync=True):
        self._write()
        return super().append(path, data, sync=sync)

    def remove(self, path):
        self._write()
        super().remove(path)


def opened(disk):
    actors, saves = Actors(disk), SaveStates(disk)
    histories = HistoryStore(disk, actors, saves, ChatSettings(max_messages=6), lambda diagnostic: None)
    summaries, records = SummaryStore(disk, actors, saves), store_on(disk, actors, saves)
    archive = Archive(lambda: records, most=1_000, report=lambda diagnostic: None)
    conversations = Conversations(
        cleared=lambda _: None,
        report=lambda _: None,
        histories=histories,
        summaries=summaries,
        archive=archive,
        epoch=lambda save: saves.state(save).epoch,
    )
    return conversations, records


def say(conversations, text):
    conversations.append(WHO, [Row(message_kind("user"), "user", text)], role=ROLE, counter=COUNTER)


def limits():
    return policy(10_000, messages=2, cap=0, prune=False)


def play(disk, acknowledged):
    """Twelve lines, compacted twice, beyond the cap; ``acknowledged`` gets what was told to be stored."""
    conversations, _ = opened(disk)
    for number in range(12):
        say(conversations, f"<{number}>")
        acknowledged.append(f"<{number}>")
        if number in (4, 9):
            pending = conversations.begin(WHO, limits(), COUNTER)
            conversations.commit(pending, pending.run(), archive=True)


def where_things_are(disk):
    conversations, records = opened(CrashingDisk(after=disk))
    snapshot = conversations.begin(WHO, limits(), COUNTER).run()
    whole = [stored.record.text for stored in archived(records, WHO)]
    return lines(snapshot.summary), [message.content for message in snapshot.recent], whole


def folded_for_good(disk):
    conversations, _ = opened(CrashingDisk(after=disk))
    return lines(conversations.begin(WHO, limits(), COUNTER).base.text)


def lines(summary):
    return [line.removeprefix("- user: ") for line in summary.splitlines()[1:]]


def test_wherever_it_dies_each_message_that_was_told_is_in_one_place():
    for writes in itertools.count():
        disk, acknowledged = CrashingDisk(writes), []
        try:
            play(disk, acknowledged)
        except Crash:
            ended = False
        else:
            ended = True
        folded, verbatim, whole = where_things_are(disk)
        found = folded + verbatim
        assert sorted(found) == sorted(set(found)), f"after {writes} writes"
        assert set(acknowledged) <= set(found)
        assert len(set(found) - set(acknowledged)) <= 1
        assert len(whole) == len(set(whole))
        assert set(folded_for_good(disk)) <= set(whole)
        if ended:
            assert writes > 15
            return


def test_a_clear_that_dies_leaves_no_summary_without_its_history():
    for writes in itertools.count():
        disk = CrashingDisk()
        play(disk, [])
        conversations, _ = opened(CrashingDisk(writes, after=disk))
        try:
            conversations.clear(WHO, archive=True)
        except Crash:
            ended = False
        else:
            ended = True
        folded, verbatim, _ = where_things_are(disk)
        assert verbatim or not folded
        if ended:
            assert not verbatim
            return


def test_a_killed_daemon_has_every_message_that_it_acknowledged_once(daemon, actor):
    chat, told, stop = Chat(daemon.client), [], threading.Event()

    def talk(speaker):
        for number in itertools.count():
            if stop.is_set():
                return
            text = f"<{speaker}:{number}>"
            try:
                chat.append(actor, ("user", text), persist=True)
                if number % 7 == 0:
                    chat.compact(actor)
            except grpc.RpcError:
                return
            told.append(text)
            if len(told) == 150:
                enough.set()

    enough = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        for speaker in range(4):
            pool.submit(talk, speaker)
        assert enough.wait(30)
        daemon.kill()
        stop.set()
    again = Chat(daemon.start().client)
    prompt = again.prompt(actor, context_tokens=100_000)
    (summary,) = parts(prompt, SUMMARY)
    everywhere = "\n".join(message.content for message in prompt.messages)
    assert prompt.window.stored >= 150
    assert "<0:0>" in summary
    assert [text for text in told if everywhere.count(text) != 1] == []
