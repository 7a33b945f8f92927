"""Data of CoreAI and OpenGameAgent, made here from the described formats, becomes a save."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import pytest
from client import failure

from sidecar.gen.lorekeeper.v1 import chat_pb2, chat_pb2_grpc, common_pb2, memory_pb2, save_pb2

KIND_KEY = "scope-v1-59adbee3447e42deb120dcf4c73f398e7849c6b58240b702bc365045a5292005"


@pytest.fixture
def save(request):
    return f"save {request.node.name}"


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def put(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def take_in(client, wanted, save, folder=None, data=b"", **more):
    header = save_pb2.ImportHeader(save_id=save, format=wanted, source_directory=str(folder) if folder else "", **more)
    messages = [save_pb2.ImportSaveRequest(header=header)]
    return client.saves.ImportSave(iter([*messages, *([save_pb2.ImportSaveRequest(chunk=data)] if data else [])]))


def record(session="session", owner="npc", memory="m1", **more):
    return {
        "FormatVersion": 1,
        "MemoryId": memory,
        "SessionId": session,
        "OwnerId": owner,
        "Scope": "personal",
        "Kind": "Fact",
        "PayloadJson": '{"affinity": 0.75}',
        "Moment": {"TimelineId": "world", "Tick": -12, "CalendarJson": None},
        "Importance": 0.63,
        "SearchableText": "猫守在门口",
        "Tags": ["friend"],
        "SourceInputId": None,
        "ExpiresAt": None,
        "Metadata": {"a": "b"},
        **more,
    }


def flat(stored):
    return sha("\n".join((stored["SessionId"], stored["OwnerId"], stored["MemoryId"]))) + ".memory.json"


def partitioned(stored):
    session, owner, memory = (sha(stored[name]) for name in ("SessionId", "OwnerId", "MemoryId"))
    return f".memory-v2/s-{session}/o-{owner}/{memory}.memory.json"


def opengameagent(client, save, folder=None, **more):
    return take_in(client, save_pb2.IMPORT_FORMAT_OPENGAMEAGENT, save, folder, **more)


def coreai(client, save, folder=None, **more):
    return take_in(client, save_pb2.IMPORT_FORMAT_COREAI, save, folder, **more)


def recalled(client, save, owner="npc"):
    actor = common_pb2.Actor(save_id=save, actor_id=owner)
    return list(client.memory.ListRecords(memory_pb2.ListRecordsRequest(actor=actor)).records)


def test_the_described_names_are_those_that_are_looked_for():
    stored = record("session-a", "owner-a", "one")
    assert flat(stored) == "687e35e706f298cbf6d974fe5747e8abb4209eb6cd9632b1b63616ad74dfd4e3.memory.json"


@pytest.mark.parametrize("name_of", [flat, partitioned])
def test_records_of_both_layouts_become_records(client, save, tmp_path, name_of):
    put(tmp_path, {name_of(record()): record()})
    answer = opengameagent(client, save, tmp_path)
    assert dict(answer.taken) == {"actors": 1, "records": 1}
    (found,) = recalled(client, save)
    assert (found.record_id, found.searchable_text, found.payload_json) == ("m1", "猫守在门口", '{"affinity": 0.75}')
    assert (found.moment.timeline_id, found.moment.tick, found.importance) == ("world", -12, 0.63)
    assert (list(found.tags), dict(found.metadata)) == (["friend"], {"a": "b"})
    assert found.authority == memory_pb2.RECORD_AUTHORITY_IMPORT


def test_records_come_from_a_zip_file_too(client, save):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as zipped:
        zipped.writestr("backup/" + partitioned(record()), json.dumps(record()))
    assert dict(opengameagent(client, save, data=data.getvalue()).taken) == {"actors": 1, "records": 1}


def test_a_record_in_both_layouts_is_taken_once(client, save, tmp_path):
    put(tmp_path, {flat(record()): record(), partitioned(record()): record()})
    assert opengameagent(client, save, tmp_path).taken["records"] == 1


def test_what_is_damaged_or_in_conflict_is_told_and_the_rest_is_taken(client, save, tmp_path):
    put(
        tmp_path,
        {
            flat(record()): record(),
            partitioned(record()): record(SearchableText="another"),
            flat(record(memory="broken")): b"{broken",
            flat(record(memory="renamed")): record(memory="somebody else"),
            flat(record(memory="newer")): record(memory="newer", FormatVersion=2),
            flat(record(memory="strange")): record(memory="strange", Kind="Rumour"),
            flat(record(memory="early")): record(memory="early", ExpiresAt={"TimelineId": "other", "Tick": 1}),
            ".memory-v2/pending-add.json": {"FormatVersion": 1},
            "notes.txt": b"hello",
        },
    )
    answer = opengameagent(client, save, tmp_path)
    assert answer.taken["records"] == 1
    assert sum(item.count for item in answer.skipped) == 7
    assert all(item.kind == "record" and item.reason for item in answer.skipped)


@pytest.mark.parametrize(("given", "told"), [("", "default"), ("chapter 2", "chapter 2")])
def test_a_moment_without_a_timeline_lies_on_the_one_that_is_given(client, save, tmp_path, given, told):
    timeless = record(memory="m2", Moment={"TimelineId": "", "Tick": 1}, ExpiresAt={"Tick": 9})
    put(tmp_path, {flat(one): one for one in (record(), timeless)})
    assert dict(opengameagent(client, save, tmp_path, timeline_id=given).taken) == {"actors": 1, "records": 2}
    who = common_pb2.Actor(save_id=save, actor_id="npc")
    for record_id, timeline in (("m1", "world"), ("m2", told)):
        request = memory_pb2.GetRecordRequest(actor=who, record_id=record_id)
        assert client.memory.GetRecord(request).record.moment.timeline_id == timeline


def test_vectors_are_dropped_and_told(client, save, tmp_path):
    put(tmp_path, {flat(record()): record(), sha("k") + ".vector-memory.json": {"Vector": [1, 2]}})
    answer = opengameagent(client, save, tmp_path)
    assert [(item.kind, item.count) for item in answer.skipped] == [("vector", 1)]


def test_of_several_sessions_the_named_one_is_taken(client, tmp_path, save):
    put(tmp_path, {flat(one): one for one in (record(), record("other", memory="m2"), record("other", memory="m3"))})
    failed = failure(lambda: opengameagent(client, save, tmp_path))
    assert failed.kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")
    answer = opengameagent(client, "other", tmp_path)
    assert (answer.taken["records"], answer.skipped[0].count) == (2, 1)


def test_links_in_a_folder_are_not_followed(client, save, tmp_path):
    outside = tmp_path / "outside"
    put(outside, {flat(record()): record()})
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / flat(record())).symlink_to(outside / flat(record()))
    (tmp_path / "inside" / ".memory-v2").symlink_to(outside)
    answer = opengameagent(client, save, tmp_path / "inside")
    assert dict(answer.taken) == {}
    assert [(item.kind, item.path) for item in answer.skipped] == [
        ("link", ".memory-v2"),
        ("link", flat(record())),
    ]


def test_a_record_that_was_whole_when_its_writer_ended_is_taken_and_not_told_as_lost(client, save, tmp_path):
    first, second = record(), record(memory="m2")
    hashes = {"SessionHash": sha("session"), "OwnerHash": sha("npc"), "MemoryHash": sha("m2")}
    pending = {"FormatVersion": 1, "ExpectedEntryCount": 1, **hashes}
    layout = {"FormatVersion": 2, "EntryCount": 1}
    files = {partitioned(first): first, ".memory-v2/layout.json": layout, ".memory-v2/pending-add.json": pending}
    put(tmp_path, files)
    answer = opengameagent(client, save, tmp_path, dry_run=True)
    assert (answer.taken["records"], [item.path for item in answer.skipped]) == (1, [".memory-v2/pending-add.json"])
    put(tmp_path, {partitioned(second): second})
    answer = opengameagent(client, save, tmp_path)
    assert (answer.taken["records"], list(answer.skipped)) == (2, [])


@pytest.mark.parametrize("folder", ["relative/path", "/does/not/exist/at/all"])
def test_a_folder_that_is_not_there_is_refused(client, save, folder):
    assert failure(lambda: opengameagent(client, save, folder)).code.name == "INVALID_ARGUMENT"


VERSIONS = [
    {"Version": 3, "Timestamp": 1_700_000_000, "Action": "write", "ContentAfter": "calm", "Note": "chars 0->4 (+4)"},
    {"Version": 4, "Timestamp": 1_700_000_060, "Action": "unknown", "ContentAfter": "calm\nbrave", "Note": ""},
]


def document(**more):
    return {"lastSystemPrompt": "x", "memory": "calm\nbrave", "versionsJson": json.dumps(VERSIONS), **more}


def read(client, save, role="", **more):
    return client.read(common_pb2.Actor(save_id=save, role_id=role, **more))


def test_a_document_and_its_versions_become_those_of_its_role(client, save, tmp_path):
    put(tmp_path, {"CoreAI/AgentMemory/Blacksmith.json": document()})
    answer = coreai(client, save, tmp_path)
    assert dict(answer.taken) == {"actors": 1, "documents": 1, "versions": 2}
    found = read(client, save, "Blacksmith")
    assert (found.text, found.version) == ("calm\nbrave", 4)
    actor = common_pb2.Actor(save_id=save, role_id="Blacksmith")
    versions = client.versions(actor, include_content=True).versions
    assert [(one.version, one.content) for one in versions] == [(3, "calm"), (4, "calm\nbrave")]
    assert client.append(actor, "kind").version == 5


def test_a_text_that_no_version_holds_becomes_the_newest(client, save, tmp_path):
    put(tmp_path, {"Teacher.json": document(memory="newest"), "Smith.json": {"memory": "only", "versionsJson": ""}})
    coreai(client, save, tmp_path)
    assert (read(client, save, "Teacher").text, read(client, save, "Teacher").version) == ("newest", 5)
    assert (read(client, save, "Smith").text, read(client, save, "Smith").version) == ("only", 1)


def test_damaged_versions_cost_the_versions_and_not_the_text(client, save, tmp_path):
    put(tmp_path, {"Teacher.json": document(versionsJson="[{broken")})
    answer = coreai(client, save, tmp_path)
    assert read(client, save, "Teacher").text == "calm\nbrave"
    assert [item.kind for item in answer.skipped] == ["version"]


def test_histories_and_summaries_are_taken(client, save, tmp_path, shared_daemon):
    lines = [
        {"k": 0, "r": "user", "c": "hello", "t": 1_700_000_000, "o": 1, "m": True},
        {"k": 2, "r": "give", "c": "{}", "t": 1_700_000_001, "o": 2, "id": "c1"},
        {"k": 1, "r": "assistant", "c": "hi", "t": 1_700_000_002, "o": 3, "m": True},
    ]
    torn = b"\n".join(json.dumps(line).encode() for line in lines) + b'\n\n{"k":0,"r":"us'
    put(
        tmp_path,
        {
            "AgentMemory/SmartChat.history.jsonl": torn,
            "ConversationSummaries/SmartChat.json": {"Summary": " they met "},
        },
    )
    answer = coreai(client, save, tmp_path)
    assert dict(answer.taken) == {"actors": 1, "messages": 2, "summaries": 1}
    assert [(item.kind, item.count) for item in answer.skipped] == [("history_line", 1)]


def test_a_history_of_the_first_format_is_merged_from_both_of_its_lists(client, save, tmp_path):
    chat = [
        {"Role": "user", "Content": "hello", "Timestamp": 1_700_000_000_000},
        {"Role": "assistant", "Content": "hi", "Timestamp": 1_700_000_002_000},
    ]
    rows = [
        {"Kind": 0, "Key": "user", "Content": "hello", "CallId": "", "Timestamp": 1_700_000_000_000},
        {"Kind": 3, "Key": "give", "Content": "done", "CallId": "c1", "Timestamp": 1_700_000_001_000},
        {"Kind": 1, "Key": "assistant", "Content": "hi", "CallId": "", "Timestamp": 1_700_000_002_000},
    ]
    legacy = {"chatHistoryJson": json.dumps(chat), "transcriptEntriesJson": json.dumps({"Items": rows})}
    put(tmp_path, {"Merchant.json": document(**legacy)})
    assert coreai(client, save, tmp_path).taken["messages"] == 2


def test_a_hashed_key_finds_the_actor_that_has_it(client, save, tmp_path):
    who = common_pb2.Actor(save_id=save, role_id="Blacksmith", player_id="player-7")
    client.write(who, "mine")
    client.memory.ResetDocument(memory_pb2.ResetDocumentRequest(actor=who))
    put(tmp_path, {f"{KIND_KEY}.json": document()})
    answer = coreai(client, save, tmp_path, conflict=save_pb2.IMPORT_CONFLICT_REPLACE)
    assert not answer.skipped
    assert client.text(who) == "calm\nbrave"


def test_a_hashed_key_that_nobody_has_is_kept_and_told(client, save, tmp_path):
    put(tmp_path, {f"{KIND_KEY}.json": document(), "A_B_7e560f81.json": document()})
    answer = coreai(client, save, tmp_path)
    assert {item.kind for item in answer.skipped} == {"address"}
    assert read(client, save, actor_id=KIND_KEY).text == "calm\nbrave"
    assert read(client, save, "A_B_7e560f81").text == "calm\nbrave"


def test_what_no_document_may_hold_is_told(client, save, tmp_path):
    put(tmp_path, {"Teacher.json": document(memory="a\0b"), "Long.json": document(memory="x" * 200_001), "n.json": [1]})
    answer = coreai(client, save, tmp_path)
    assert dict(answer.taken) == {}
    assert len(answer.skipped) == 3


@pytest.mark.parametrize("take", [coreai, opengameagent])
def test_a_dry_run_reports_and_makes_nothing(client, save, tmp_path, take):
    put(tmp_path, {"Teacher.json": document(), flat(record()): record()})
    answer = take(client, save, tmp_path, dry_run=True)
    assert answer.taken["actors"] == 1
    assert save not in [info.save_id for info in client.saves.ListSaves(save_pb2.ListSavesRequest()).saves]
    assert take(client, save, tmp_path).taken == answer.taken


def heard(client, save, role):
    chat = chat_pb2_grpc.ChatServiceStub(client.channel)
    actor = common_pb2.Actor(save_id=save, role_id=role)
    messages = chat.ListMessages(chat_pb2.ListMessagesRequest(actor=actor)).messages
    return [(message.role, message.content, message.time.seconds) for message in messages]


def test_odd_times_numbers_and_halves_of_characters_cost_no_message(client, save, tmp_path):
    lines = [
        {"k": 0, "r": "user", "c": "clipped \ud83d", "t": -62_135_596_800, "m": True},
        {"k": 1, "r": "assistant", "c": "whole \ud83d\ude00", "t": 10**18, "o": 1, "m": True},
        {"k": 0, "c": "nobody", "o": 2, "m": True},
        {"k": 0, "r": "user", "c": "never", "t": float("inf"), "o": 3, "m": True},
    ]
    data = b"\xef\xbb\xbf" + "\r\n".join(map(json.dumps, lines)).replace("Infinity", "1e999").encode()
    put(tmp_path, {"Teacher.history.jsonl": data, "ConversationSummaries/Teacher.json": {"Summary": "cut \ud83d"}})
    answer = coreai(client, save, tmp_path)
    assert heard(client, save, "Teacher") == [
        ("user", "clipped \ufffd", 0),
        ("assistant", "whole \U0001f600", 253_402_300_799),
        ("", "nobody", 0),
    ]
    assert [(item.kind, item.count) for item in answer.skipped] == [("history_line", 1)]


def test_versions_with_numbers_that_no_version_has_are_told_and_the_document_can_be_read(client, save, tmp_path):
    versions = [*VERSIONS, {**VERSIONS[0], "Version": 2**40}, {**VERSIONS[0], "Version": "x"}]
    put(tmp_path, {"Teacher.json": document(versionsJson=json.dumps(versions))})
    answer = coreai(client, save, tmp_path)
    assert (read(client, save, "Teacher").text, read(client, save, "Teacher").version) == ("calm\nbrave", 4)
    assert [(item.kind, item.count) for item in answer.skipped] == [("version", 2)]


def test_what_was_migrated_half_way_counts_once(client, save, tmp_path):
    old = [{"Role": "user", "Content": "hello", "Timestamp": 1_700_000_000_000}, {"Role": "user", "Content": "again"}]
    new = {"k": 0, "r": "user", "c": "hello", "t": 1_700_000_000, "m": True}
    put(
        tmp_path,
        {
            "Teacher.json": document(chatHistoryJson=json.dumps(old)),
            "Teacher.history.jsonl": json.dumps(new).encode(),
        },
    )
    coreai(client, save, tmp_path)
    assert [content for _, content, _ in heard(client, save, "Teacher")] == ["again", "hello"]


def test_the_same_key_in_two_folders_is_taken_once_and_told(client, save, tmp_path):
    put(tmp_path, {"AgentMemory/Teacher.json": document(), "old/Teacher.json": document(memory="older")})
    answer = coreai(client, save, tmp_path)
    assert read(client, save, "Teacher").text == "calm\nbrave"
    assert [(item.path, item.kind) for item in answer.skipped] == [("old/Teacher.json", "document")]


def test_a_file_whose_name_had_to_change_finds_the_role_that_it_stands_for(client, save, tmp_path):
    client.write(common_pb2.Actor(save_id=save, role_id="A/B"), "known")
    put(tmp_path, {"A_B_7e560f81.history.jsonl": json.dumps({"k": 0, "r": "user", "c": "hello", "m": True}).encode()})
    answer = coreai(client, save, tmp_path, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    assert not answer.skipped
    assert [content for _, content, _ in heard(client, save, "A/B")] == ["hello"]


ODD = {
    "Kind": ["9", 1, "²", "Turn"],
    "Importance": [10**400, None, float("nan")],
    "Tags": ["friend", [1], {"a": "b"}],
    "Metadata": [[["a", "b"]], {"a": 1}],
    "Moment": [{"TimelineId": "world", "Tick": 1e999}, {"TimelineId": 5, "Tick": 1}, None, {"TimelineId": "world"}],
    "PayloadJson": [{"a": 1}, "{broken"],
    "OwnerId": ["x" * 600, "a\nb"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in ODD.items() for value in values])
def test_a_record_that_is_not_allowed_is_told_and_the_rest_is_taken(client, save, tmp_path, field, value):
    odd = record(memory="odd", **{field: value})
    put(tmp_path, {flat(one): one for one in (record(), odd)})
    answer = opengameagent(client, save, tmp_path)
    assert dict(answer.taken) == {"actors": 1, "records": 1}
    assert [item.kind for item in answer.skipped] == ["record"]


def test_a_session_that_no_save_may_be_called_needs_a_name(client, save, tmp_path):
    put(tmp_path, {flat(one): one for one in (record(session="a\nb"),)})
    assert failure(lambda: opengameagent(client, "", tmp_path)).fields == ("header.save_id",)
    assert opengameagent(client, save, tmp_path).info.save_id == save
