"""Every message is in exactly one place, whatever is said, folded, thrown away, restarted or kept off the disk."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from compaction_samples import policy
from hypothesis import given, settings
from hypothesis import strategies as st
from record_samples import archived, store_on

from sidecar.chat.actor_part import ConversationPart
from sidecar.chat.archive import Archive
from sidecar.chat.conversations import Conversations
from sidecar.chat.history_store import HistoryStore
from sidecar.chat.roles import Role, SummaryOptions
from sidecar.chat.rows import Row, message_kind
from sidecar.compaction.summaries import SummaryStore
from sidecar.compaction.summariser import CompletionAnswer, Summariser
from sidecar.compaction.tokens import HeuristicCounter
from sidecar.errors import LimitReached
from sidecar.settings import ChatSettings
from sidecar.storage.actors import Actors
from sidecar.storage.keys import actor_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.session_disk import SessionDisk

WHO = actor_id(save="slot", actor="mira")
COUNTER = HeuristicCounter()
CAPS = ChatSettings(max_messages=8, max_transcript_rows=12)
SUMMARIZING = Role("Merchant", max_history_messages=3, summary=SummaryOptions(max_summary_tokens=0))
FORGETTING = replace(SUMMARIZING, summary=SummaryOptions(enabled=False))


class World:
    """The stores of one actor on a disk that outlives them."""

    def __init__(self, role=SUMMARIZING, caps=CAPS):
        self.caps = caps
        self.disk = SessionDisk(Path("/world"))
        self.role = role
        self.epoch = 0
        self.said = []
        self.names = itertools.count()
        self.restart()

    def restart(self):
        """A new process on the same disk."""
        actors, saves = Actors(self.disk), SaveStates(self.disk)
        self.histories = HistoryStore(self.disk, actors, saves, self.caps, lambda diagnostic: None)
        self.summaries = SummaryStore(self.disk, actors, saves)
        self.records = store_on(self.disk, actors, saves)
        self.told = []
        self.archive = Archive(lambda: self.records, most=self.caps.max_archived_messages, report=self.told.append)
        self.conversations = Conversations(
            cleared=lambda _: None,
            report=lambda _: None,
            histories=self.histories,
            summaries=self.summaries,
            archive=self.archive,
            epoch=lambda save: self.epoch,
        )
        self.said = [(text, persisted) for text, persisted in self.said if persisted]

    def say(self, count, *, persist=True):
        texts = [f"<{next(self.names)}{'' if persist else ' secret'}>" for _ in range(count)]
        drafts = [Row(message_kind("user"), "user", text, persisted=persist) for text in texts]
        self.conversations.append(WHO, drafts, role=self.role, counter=COUNTER)
        self.said += [(text, persist) for text in texts]

    def begin(self, tokens=10_000, messages=3, **options):
        limits = policy(tokens, messages=messages, cap=0, prune=False, summarize=self.role.summary.enabled, **options)
        return self.conversations.begin(WHO, limits, COUNTER)

    def commit(self, pending):
        return self.conversations.commit(pending, pending.run(), archive=True)

    def compact(self, **options):
        return self.commit(self.begin(**options))

    def verbatim(self, **options):
        return [message.content for message in self.begin(**options).run().recent]

    def summary(self):
        return [line.removeprefix("- user: ") for line in self.summaries.read(WHO).text.splitlines()[1:]]

    def archived(self):
        return [stored.record.text for stored in archived(self.records, WHO)]

    def bytes_on_disk(self):
        return b"".join(bytes(data) for data in self.disk._files.values())


steps = st.one_of(
    st.tuples(st.just("say"), st.integers(1, 6)),
    st.tuples(st.just("whisper"), st.integers(1, 3)),
    st.tuples(st.just("compact"), st.integers(1, 5)),
    st.tuples(st.just("lose"), st.integers(1, 5)),
    st.tuples(st.just("restart"), st.just(0)),
)


def act(world, step):
    what, number = step
    if what == "say":
        world.say(number)
    elif what == "whisper":
        world.say(number, persist=False)
    elif what == "compact":
        world.compact(messages=number)
    elif what == "lose":
        world.begin(messages=number).run()
    else:
        world.restart()


@settings(max_examples=150)
@given(st.lists(steps, max_size=25))
def test_every_message_is_verbatim_or_folded_and_never_both(plan):
    world = World()
    for step in plan:
        act(world, step)
        snapshot = world.begin().run()
        summary = snapshot.summary.splitlines()[1:]
        folded = [line.removeprefix("- user: ") for line in summary]
        verbatim = [message.content for message in snapshot.recent]
        assert sorted(folded + verbatim) == sorted(text for text, _ in world.said)
        assert b"secret" not in world.bytes_on_disk()


@settings(max_examples=100)
@given(st.lists(steps, max_size=25))
def test_what_left_the_history_without_a_summary_is_in_the_archive(plan):
    world = World(FORGETTING)
    for step in plan:
        act(world, step)
        kept = [row.content for row in world.histories.read(WHO).chat]
        gone = [text for text, persisted in world.said if persisted and text not in kept]
        assert set(gone) <= set(world.archived())
        assert len(world.archived()) == len(set(world.archived()))


@settings(max_examples=100)
@given(st.lists(steps, max_size=25))
def test_folded_messages_are_archived_whole_and_once(plan):
    world = World()
    for step in plan:
        act(world, step)
    stored = {text for text, persisted in world.said if persisted}
    assert set(world.summary()) & stored <= set(world.archived())
    assert len(world.archived()) == len(set(world.archived()))


def test_a_compaction_of_an_older_epoch_is_thrown_away():
    world = World()
    world.say(8)
    pending = world.begin()
    world.epoch += 1
    assert world.commit(pending) is None
    assert world.summary() == []


def test_a_compaction_whose_history_was_cleared_meanwhile_is_thrown_away():
    world = World()
    world.say(8)
    pending = world.begin()
    world.conversations.clear(WHO, archive=True)
    world.say(5)
    assert world.commit(pending) is None
    assert world.summary() == []


def test_a_compaction_may_run_while_more_is_said():
    world = World()
    world.say(7)
    pending = world.begin()
    world.say(1)
    assert world.commit(pending) is not None
    assert world.summary() + world.verbatim(messages=4) == [text for text, _ in world.said]


def test_the_second_of_two_compactions_is_thrown_away():
    world = World()
    world.say(8)
    first, second = world.begin(), world.begin(messages=1)
    assert world.commit(first) is not None
    assert world.commit(second) is None
    assert world.summary() + world.verbatim() == [text for text, _ in world.said]


def test_a_summary_put_while_a_model_wrote_another_stays():
    world = World()
    world.say(8)
    pending = replace(world.begin(wants_model=True), summariser=Summariser(lambda request: CompletionAnswer("model's")))
    world.summaries.save(WHO, replace(world.summaries.read(WHO).stored, text="the game's"), persist=True)
    assert world.commit(pending) is None
    assert world.summaries.read(WHO).text == "the game's"


def test_a_model_may_write_the_summary():
    world = World()
    world.say(8)
    pending = replace(
        world.begin(wants_model=True), summariser=Summariser(lambda request: CompletionAnswer("all of it"))
    )
    assert world.commit(pending).text == "all of it"
    assert world.begin().run().folded == ()


def test_folding_before_loss_happens_in_blocks_so_that_not_every_append_pays_for_it():
    world = World(caps=ChatSettings(max_messages=100))
    world.say(100)
    for _ in range(30):
        world.say(1)
    assert world.summaries.read(WHO).version == 3
    assert world.summary()[:30] == [f"<{number}>" for number in range(30)]


def test_messages_of_this_process_only_are_bounded():
    world = World(caps=ChatSettings(max_session_chars=1_000))
    with pytest.raises(LimitReached):
        for _ in range(20):
            world.say(1, persist=False)


def test_the_histories_in_memory_are_bounded_but_for_those_that_are_nowhere_else():
    disk = SessionDisk(Path("/world"))
    actors, saves = Actors(disk), SaveStates(disk)
    limits = ChatSettings(max_cached_chars=4_000)
    store = HistoryStore(disk, actors, saves, limits, lambda diagnostic: None)
    people = [actor_id(actor=f"a{number}") for number in range(10)]
    for number, who in enumerate(people):
        row = Row(message_kind("user"), "user", "x" * 100, persisted=number != 0)
        store.append(who, [row], messages=True)
    in_memory = [who for who in people if store.cached(who)]
    assert people[0] in in_memory
    assert len(in_memory) < 5
    assert all(len(store.read(who).chat) == 1 for who in people)


def test_a_save_that_was_restored_brings_back_nothing_of_this_process():
    world = World()
    other = actor_id(save="other", actor="mira")
    world.say(4)
    world.say(4, persist=False)
    world.compact()
    whisper = Row(message_kind("user"), "user", "elsewhere", persisted=False)
    world.conversations.append(other, [whisper], role=SUMMARIZING, counter=COUNTER)
    ConversationPart(world.histories, world.summaries, forgets=()).exchanged("slot")
    assert [row.content for row in world.histories.read(WHO).chat] == [text for text, kept in world.said if kept]
    assert "secret" not in world.summaries.read(WHO).text
    assert [row.content for row in world.histories.read(other).chat] == ["elsewhere"]


def test_a_history_that_lost_its_end_in_a_power_cut_loses_nothing_that_is_said_later():
    world = World()
    world.say(8)
    world.compact(messages=1)
    (file,) = (path for path in world.disk._files if path.name == "history.jsonl")
    lines = bytes(world.disk._files[file]).splitlines(keepends=True)
    world.disk.replace(file, b"".join(lines[:5]))
    world.said = world.said[:5]
    world.restart()
    world.say(8)
    world.say(8)
    snapshot = world.begin().run()
    folded = {line.removeprefix("- user: ") for line in snapshot.summary.splitlines()}
    assert {text for text, _ in world.said} <= folded | {message.content for message in snapshot.recent}
    assert {text for text, _ in world.said[:13]} <= set(world.archived())


def test_the_numbers_of_a_damaged_history_go_on_after_it_was_cleared():
    world = World()
    world.say(6)
    (file,) = (path for path in world.disk._files if path.name == "history.jsonl")
    lines = bytes(world.disk._files[file]).splitlines(keepends=True)
    world.disk.replace(file, b"".join([lines[0], b"garbage\n", *lines[2:]]))
    world.said.clear()
    world.restart()
    world.conversations.clear(WHO, archive=False)
    world.say(1)
    assert world.histories.read(WHO).chat[0].number == 7
