"""Random edits, records, talk, checkpoints, restores, forks, exports, imports and erasures against a plain model of all
saves, with kills in between: every read agrees at every step."""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path

import pytest
from daemon_process import DaemonProcess
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from sidecar.gen.lorekeeper.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    common_pb2,
    memory_pb2,
    save_pb2,
    search_pb2,
    search_pb2_grpc,
)

SAVES = ("one", "two", "three")
ACTORS = ("mira", "wolf")
ROLE = "PlainChat"
texts = st.sampled_from(["wolves", "lanterns", "saffron", "orchard", "猫守在门口"])
saves, actors = st.sampled_from(SAVES), st.sampled_from(ACTORS)


def who(save, actor):
    return common_pb2.Actor(save_id=save, actor_id=actor, role_id=ROLE)


def empty():
    return {"document": "", "versions": 0, "records": {}, "messages": [], "whispers": set()}


def stored(memories):
    """What of them survives the process."""
    kept = copy.deepcopy(memories)
    for memory in kept.values():
        memory["messages"] = [text for text in memory["messages"] if text not in memory["whispers"]]
        memory["whispers"] = set()
    return kept


class Saves(RuleBasedStateMachine):
    """``model[save][actor]`` is what each remembers."""

    checkpoints, files = Bundle("checkpoints"), Bundle("files")

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        every_safety = ("--set", "saves.kept_safety_checkpoints=100")
        self.daemon = DaemonProcess(self.folder / "data", *every_safety, stderr=self.folder / "stderr.txt").start()
        self.model = {}
        self.kept = {}
        self.epochs = {}

    @property
    def client(self):
        return self.daemon.client

    @property
    def chat(self):
        return chat_pb2_grpc.ChatServiceStub(self.client.channel)

    def memory(self, save, actor):
        return self.model.setdefault(save, {}).setdefault(actor, empty())

    @rule(save=saves, actor=actors, text=texts)
    def edit(self, save, actor, text):
        self.client.append(who(save, actor), f"{text} {self.memory(save, actor)['versions']}")
        memory = self.memory(save, actor)
        memory["document"] = "\n".join(filter(None, (memory["document"], f"{text} {memory['versions']}")))
        memory["versions"] += 1

    @rule(save=saves, text=texts)
    def remember(self, save, text):
        """One batch for two owners, which goes through the inbox."""
        for actor in ACTORS:
            record_id = f"r{len(self.memory(save, actor)['records'])}"
            record = memory_pb2.NewRecord(
                record_id=record_id,
                scope="personal",
                kind=memory_pb2.RECORD_KIND_EVENT,
                payload_json="{}",
                searchable_text=text,
                moment=common_pb2.Moment(timeline_id="world", tick=1),
            )
            self.client.memory.AddRecords(memory_pb2.AddRecordsRequest(actor=who(save, actor), records=[record]))
            self.memory(save, actor)["records"][record_id] = text

    @rule(save=saves, actor=actors, text=texts)
    def say(self, save, actor, text):
        message = chat_pb2.NewMessage(role="user", content=text)
        self.chat.AppendMessages(chat_pb2.AppendMessagesRequest(actor=who(save, actor), messages=[message]))
        self.memory(save, actor)["messages"].append(text)

    @rule(save=saves, actor=actors, text=texts)
    def whisper(self, save, actor, text):
        """What is said in this process only, where there is a save."""
        if actor not in self.model.get(save, {}):
            return
        memory = self.memory(save, actor)
        said = f"{text} {len(memory['whispers'])}"
        request = chat_pb2.AppendMessagesRequest(
            actor=who(save, actor), messages=[chat_pb2.NewMessage(role="user", content=said)], persist=False
        )
        self.chat.AppendMessages(request)
        memory["messages"].append(said)
        memory["whispers"].add(said)

    @rule(target=checkpoints, save=saves)
    def keep(self, save):
        made = self.client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=save)).checkpoint
        self.kept[made.checkpoint_id] = save, stored(self.model.setdefault(save, {}))
        return made.checkpoint_id

    @rule(target=checkpoints, checkpoint=checkpoints)
    def restore(self, checkpoint):
        if checkpoint not in self.kept:
            return multiple()
        save, then = self.kept[checkpoint]
        request = save_pb2.RestoreCheckpointRequest(save_id=save, checkpoint_id=checkpoint)
        answer = self.client.saves.RestoreCheckpoint(request)
        assert answer.save.epoch > self.epochs.get(save, -1)
        self.epochs[save] = answer.save.epoch
        self.kept[answer.safety.checkpoint_id] = save, stored(self.model[save])
        self.model[save] = copy.deepcopy(then)
        return answer.safety.checkpoint_id

    @rule(checkpoint=checkpoints, new=saves)
    def fork(self, checkpoint, new):
        if checkpoint not in self.kept or new in self.model:
            return
        save, then = self.kept[checkpoint]
        request = save_pb2.ForkSaveRequest(save_id=save, checkpoint_id=checkpoint, new_save_id=new)
        self.client.saves.ForkSave(request)
        self.model[new] = copy.deepcopy(then)

    @rule(save=saves, new=saves)
    def fork_now(self, save, new):
        if save not in self.model or new in self.model:
            return
        self.client.saves.ForkSave(save_pb2.ForkSaveRequest(save_id=save, new_save_id=new))
        self.model[new] = stored(self.model[save])

    @rule(save=saves)
    def erase(self, save):
        self.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id=save))
        self.model.pop(save, None)
        self.epochs.pop(save, None)
        self.kept = {checkpoint: kept for checkpoint, kept in self.kept.items() if kept[0] != save}

    @rule(save=saves, actor=actors)
    def erase_actor(self, save, actor):
        self.client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=who(save, actor)))
        for kept_save, memories in [(save, self.model.get(save, {})), *self.kept.values()]:
            if kept_save == save:
                memories.pop(actor, None)

    @rule()
    def kill(self):
        self.daemon.kill()
        self.daemon.start()
        self.model = {save: stored(memories) for save, memories in self.model.items()}

    @rule(target=files, save=saves)
    def export(self, save):
        if save not in self.model:
            return multiple()
        messages = self.client.saves.ExportSave(save_pb2.ExportSaveRequest(save_id=save))
        return b"".join(message.chunk for message in messages), stored(self.model[save])

    def take_in(self, data, save, conflict):
        header = save_pb2.ImportHeader(save_id=save, conflict=conflict)
        messages = [save_pb2.ImportSaveRequest(header=header), save_pb2.ImportSaveRequest(chunk=data)]
        return self.client.saves.ImportSave(iter(messages))

    @rule(file=files, save=saves)
    def replace(self, file, save):
        data, then = file
        answer = self.take_in(data, save, save_pb2.IMPORT_CONFLICT_REPLACE)
        if answer.safety.checkpoint_id:
            assert answer.save.epoch > self.epochs.get(save, -1)
            self.epochs[save] = answer.save.epoch
            self.kept[answer.safety.checkpoint_id] = save, stored(self.model[save])
        self.model[save] = copy.deepcopy(then)

    @rule(file=files, save=saves)
    def merge(self, file, save):
        data, then = file
        self.take_in(data, save, save_pb2.IMPORT_CONFLICT_MERGE)
        self.model.setdefault(save, {})
        for actor, came in copy.deepcopy(then).items():
            memory = self.memory(save, actor)
            if not memory["versions"]:
                memory |= {"document": came["document"], "versions": came["versions"]}
            memory["records"] = came["records"] | memory["records"]
            memory["messages"] = memory["messages"] or came["messages"]

    @invariant()
    def every_read_agrees(self):
        for save in SAVES:
            for actor in ACTORS:
                self.check(who(save, actor), self.model.get(save, {}).get(actor, empty()))

    def check(self, actor, expected):
        read = self.client.read(actor)
        assert (read.text, read.version) == (expected["document"], expected["versions"])
        records = self.client.memory.ListRecords(memory_pb2.ListRecordsRequest(actor=actor)).records
        assert {record.record_id: record.searchable_text for record in records} == expected["records"]
        messages = self.chat.ListMessages(chat_pb2.ListMessagesRequest(actor=actor)).messages
        assert [message.content for message in messages] == expected["messages"]
        search = search_pb2_grpc.SearchServiceStub(self.client.channel)
        hits = search.Search(search_pb2.SearchRequest(actor=actor, text="wolves", limit=50)).hits
        known = {record_id for record_id, text in expected["records"].items() if text == "wolves"}
        assert {hit.record.record_id for hit in hits} == known

    def teardown(self):
        self.daemon.close()
        shutil.rmtree(self.folder)


@pytest.mark.slow
def test_every_read_agrees_with_the_model_at_every_step():
    run_state_machine_as_test(
        Saves,
        settings=settings(
            max_examples=2,
            database=None,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
