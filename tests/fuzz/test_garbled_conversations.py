"""Whatever stands in a conversation's files: it is read, or it is told to be damaged; it is never written over."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.chat.history_store import HistoryStore
from sidecar.chat.salvage import check_conversation, check_summary
from sidecar.chat.wire import add_entries, add_messages
from sidecar.compaction.summaries import SummaryStore
from sidecar.compaction.tokens import HeuristicCounter
from sidecar.compaction.wire import summary_to
from sidecar.daemon.rooms import Rooms
from sidecar.errors import Corrupt, LorekeeperError
from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2
from sidecar.settings import ChatSettings, Config
from sidecar.storage.actors import Actors
from sidecar.storage.journal import encode
from sidecar.storage.json_file import dump
from sidecar.storage.keys import actor_id
from sidecar.storage.save_state import SaveStates
from sidecar.storage.session_disk import SessionDisk

WHO = actor_id(actor="mira")

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)
row_names = st.sampled_from(["k", "r", "c", "t", "o", "m", "id", "in", "sp", "at", "last", "answers", "answer"])
good_rows = st.fixed_dictionaries(
    {
        "k": st.integers(0, 3),
        "r": st.text(max_size=4),
        "c": st.text(max_size=9),
        "t": st.integers(0, 9),
        "o": st.integers(1, 9),
    }
)
rows = st.one_of(
    good_rows,
    st.dictionaries(row_names, values, max_size=7),
    st.builds(lambda good, bad: {**good, **bad}, good_rows, st.dictionaries(row_names, values, max_size=2)),
)
journals = st.one_of(
    st.binary(max_size=200), st.lists(rows, max_size=4).map(lambda found: encode(found) if found else b"")
)
summaries = st.one_of(
    st.binary(max_size=100),
    st.builds(
        lambda bad: dump({"Summary": "x", **bad}), st.dictionaries(st.sampled_from(["version", "updated"]), values)
    ),
    st.dictionaries(st.sampled_from(["Summary", "folded_through", "version", "updated", "answers"]), values).map(dump),
)


def world(name, data):
    disk = SessionDisk(Path("/world"))
    actors, saves = Actors(disk), SaveStates(disk)
    saves.ensure(WHO.save)
    disk.replace(actors.ensure(WHO) / name, data)
    return disk, actors, saves, actors.folder(WHO) / name


@settings(max_examples=300)
@given(journals)
def test_a_history_is_read_or_told_to_be_damaged(data):
    disk, actors, saves, file = world("history.jsonl", data)
    store = HistoryStore(disk, actors, saves, ChatSettings(), lambda diagnostic: None)
    try:
        history = store.read(WHO)
    except Corrupt:
        assert disk.read(file) == data
        (finding,) = check_conversation(disk, file)
        finding.mend()
        history = store.read(WHO)
    messages, transcript = chat_pb2.ListMessagesResponse(), chat_pb2.ListTranscriptResponse()
    add_messages(messages.messages, history.chat)
    add_entries(transcript.entries, history.transcript)


@settings(max_examples=300)
@given(summaries)
def test_a_summary_is_read_or_told_to_be_damaged(data):
    disk, actors, saves, file = world("summary.json", data)
    store = SummaryStore(disk, actors, saves)
    try:
        summary_to(store.read(WHO), HeuristicCounter())
    except Corrupt:
        assert disk.read(file) == data
        (finding,) = check_summary(disk, file)
        finding.mend()
        assert store.read(WHO).version == 0


texts = st.text(max_size=30)
turns = st.builds(
    chat_pb2.TurnInput,
    text=texts,
    instructions=texts,
    world_state=texts,
    source_tag=st.sampled_from(["", "Chat", "x"]),
    telemetry=st.dictionaries(texts, texts, max_size=2),
    context_tokens=st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
    max_output_tokens=st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
)


@settings(max_examples=60)
@given(turns, st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_any_turn_of_any_conversation_makes_a_prompt_or_is_refused(turn, said):
    rooms = Rooms(
        SessionDisk(Path("/world")), Config(), serving=lambda service, can: None, report=lambda diagnostic: None
    )
    actor = common_pb2.Actor(actor_id="mira")
    messages = [chat_pb2.NewMessage(role=role, content=content) for role, content in said]

    async def play():
        service = rooms.chat.service
        with contextlib.suppress(LorekeeperError):
            await service.AppendMessages(chat_pb2.AppendMessagesRequest(actor=actor, messages=messages), None)
        try:
            prompt = await rooms.turns.service.BuildPrompt(chat_pb2.BuildPromptRequest(actor=actor, input=turn), None)
        except LorekeeperError:
            return
        finally:
            await rooms.close()
        assert prompt.total.tokens == sum(section.count.tokens for section in prompt.sections)

    asyncio.run(play())
