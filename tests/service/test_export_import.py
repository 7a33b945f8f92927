"""A save as one file: out, in, and what is refused of files from elsewhere."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import zipfile
from pathlib import Path

import pytest
from chat_client import Chat
from client import failure

from sidecar.gen.lorekeeper.v1 import common_pb2, compaction_pb2, memory_pb2, save_pb2


@pytest.fixture
def save(request):
    return f"save {request.node.name}"


def mira(save):
    return common_pb2.Actor(save_id=save, actor_id="mira", role_id="Merchant", player_id="Åda")


def remember(client, save, record_id, text):
    record = memory_pb2.NewRecord(
        record_id=record_id,
        scope="personal",
        kind=memory_pb2.RECORD_KIND_EVENT,
        payload_json="{}",
        searchable_text=text,
        moment=common_pb2.Moment(timeline_id="world", tick=1),
    )
    return client.memory.AddRecords(memory_pb2.AddRecordsRequest(actor=mira(save), records=[record]))


def recalled(client, save):
    request = memory_pb2.ListRecordsRequest(actor=mira(save))
    return {record.record_id: record.searchable_text for record in client.memory.ListRecords(request).records}


def export(client, save, **more):
    """The header, the file and the footer."""
    messages = list(client.saves.ExportSave(save_pb2.ExportSaveRequest(save_id=save, **more)))
    parts = [message.WhichOneof("part") for message in messages]
    assert parts == ["header", *["chunk"] * (len(parts) - 2), "footer"]
    return messages[0].header, b"".join(message.chunk for message in messages), messages[-1].footer


def take_in(client, data, pieces=65_536, **header):
    def messages():
        yield save_pb2.ImportSaveRequest(header=save_pb2.ImportHeader(**header))
        for start in range(0, len(data), pieces):
            yield save_pb2.ImportSaveRequest(chunk=data[start : start + pieces])

    return client.saves.ImportSave(messages())


@pytest.fixture
def exported(client, save):
    client.write(mira(save), "The player is kind.")
    client.append(mira(save), "The player has a dog.")
    remember(client, save, "wolf", "the wolf was spared")
    return export(client, save)


def test_an_imported_save_is_what_was_exported(client, save, exported):
    answer = take_in(client, exported[1], save_id=save + " copy")
    assert client.text(mira(save + " copy")) == client.text(mira(save))
    assert client.versions(mira(save + " copy"), include_content=True).versions == (
        client.versions(mira(save), include_content=True).versions
    )
    assert recalled(client, save + " copy") == recalled(client, save) == {"wolf": "the wolf was spared"}
    assert dict(answer.taken) == {"actors": 1, "documents": 1, "versions": 2, "records": 1}
    assert (answer.info.save_id, answer.info.actors, answer.info.records) == (save + " copy", 1, 1)


def test_what_is_superseded_and_what_is_gone_is_known_where_it_is_imported(client, save):
    def asked(kind, **given):
        return kind(actor=mira(save), **given)

    def new(record_id, tick):
        moment = common_pb2.Moment(timeline_id="world", tick=tick)
        return memory_pb2.NewRecord(
            record_id=record_id, scope="personal", kind=memory_pb2.RECORD_KIND_FACT, moment=moment
        )

    memory = client.memory
    memory.AddRecords(asked(memory_pb2.AddRecordsRequest, records=[new("gone", 1), new("old", 1)], idempotency_key="k"))
    memory.SupersedeRecord(
        asked(memory_pb2.SupersedeRecordRequest, record_id="old", replacement=new("new", 9), idempotency_key="k 2")
    )
    memory.ForgetRecords(asked(memory_pb2.ForgetRecordsRequest, record_ids=["gone"]))
    _, data, _ = export(client, save)
    other = take_in(client, data, save_id=f"{save} again").info.save_id
    early = memory_pb2.RecordFilter(at_or_before=common_pb2.Moment(timeline_id="world", tick=8))
    listed = [
        [one.record_id for one in memory.ListRecords(memory_pb2.ListRecordsRequest(actor=mira(other), **more)).records]
        for more in ({}, {"filter": early})
    ]
    assert listed == [["new"], ["old"]]


def test_an_export_is_a_zip_file_that_people_can_read(client, save, exported):
    header, data, footer = exported
    assert (footer.bytes, footer.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (footer.actors, footer.records) == (1, 1)
    assert header.file_name.endswith(".zip")
    assert header.file_name.isascii()
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        manifest = json.loads(zipped.read("manifest.json"))
        assert manifest["save_id"] == save
        assert [actor["player_id"] for actor in manifest["actors"]] == ["Åda"]
        for name, told in manifest["files"].items():
            assert hashlib.sha256(zipped.read(name)).hexdigest() == told["sha256"]
        (document,) = [name for name in zipped.namelist() if name.endswith("document.json")]
        assert "has a dog" in zipped.read(document).decode("utf-8")


def test_a_checkpoint_can_be_exported(client, save):
    client.write(mira(save), "then")
    kept = client.saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(save_id=save)).checkpoint
    client.write(mira(save), "now")
    _, data, _ = export(client, save, checkpoint_id=kept.checkpoint_id)
    take_in(client, data, save_id=save + " copy")
    assert client.text(mira(save + " copy")) == "then"


def change_journals(daemon, change):
    """What a crash, or a bad disk, does to the journals of records while no daemon runs."""
    daemon.kill()
    for journal in daemon.folder.rglob("records.jsonl"):
        journal.write_bytes(change(journal.read_bytes()))
    daemon.start()


def test_a_save_can_be_exported_and_imported_right_after_a_kill_in_the_middle_of_a_write(daemon, save):
    remember(daemon.client, save, "wolf", "the wolf was spared")
    change_journals(daemon, lambda data: data + b'{"crc":"8d1f0a3c","row":{"n":2,"op"')
    take_in(daemon.client, export(daemon.client, save)[1], save_id="copy")
    assert recalled(daemon.client, "copy") == {"wolf": "the wolf was spared"}


def test_what_nothing_could_import_is_not_exported(daemon, save):
    for record_id in ("wolf", "bear"):
        remember(daemon.client, save, record_id, "spared")
    change_journals(daemon, lambda data: data.replace(b"wolf", b"wulf", 1))
    failed = failure(lambda: export(daemon.client, save))
    assert failed.kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert (daemon.folder / failed.metadata["file"]).is_file()
    assert "spared" not in failed.message


def test_an_import_takes_the_id_in_the_file_where_none_is_given(daemon, save):
    daemon.client.write(mira(save), "mine")
    _, data, _ = export(daemon.client, save)
    daemon.client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id=save))
    assert take_in(daemon.client, data).info.save_id == save
    assert daemon.client.text(mira(save)) == "mine"


def test_a_save_that_exists_is_not_touched_unless_asked(client, save, exported):
    client.write(mira(save), "went on")
    assert failure(lambda: take_in(client, exported[1])).kind == ("ALREADY_EXISTS", "SAVE_EXISTS")
    assert client.text(mira(save)) == "went on"


def test_a_replaced_save_is_kept_as_a_safety_checkpoint(client, save, exported):
    before = client.write(mira(save), "went on").save
    answer = take_in(client, exported[1], conflict=save_pb2.IMPORT_CONFLICT_REPLACE)
    assert client.text(mira(save)) == "The player is kind.\nThe player has a dog."
    assert answer.save.epoch == before.epoch + 1
    request = save_pb2.RestoreCheckpointRequest(save_id=save, checkpoint_id=answer.safety.checkpoint_id)
    client.saves.RestoreCheckpoint(request)
    assert client.text(mira(save)) == "went on"


def test_a_merge_adds_what_is_new_and_tells_what_differs(client, save, exported):
    target = save + " target"
    client.write(mira(target), "another document")
    remember(client, target, "fox", "the fox got away")
    answer = take_in(client, exported[1], save_id=target, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    assert client.text(mira(target)) == "another document"
    assert recalled(client, target) == {"fox": "the fox got away", "wolf": "the wolf was spared"}
    assert dict(answer.taken) == {"records": 1}
    assert [item.kind for item in answer.skipped] == ["document"]
    again = take_in(client, exported[1], save_id=target, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    assert dict(again.taken) == {}


def test_a_merge_keeps_one_conversation_whole_and_never_mixes_two(client, save, exported):
    chat, target = Chat(client), save + " target"
    chat.append(mira(save), ("user", "the old history"), persist=True)
    chat.compaction.PutSummary(compaction_pb2.PutSummaryRequest(actor=mira(target), text="another life"))
    data = export(client, save)[1]
    answer = take_in(client, data, save_id=target, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    assert [item.kind for item in answer.skipped] == ["history"]
    assert chat.messages(mira(target)) == []
    fresh = take_in(client, data, save_id=save + " fresh", conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    assert fresh.taken["messages"] == 1


def test_a_merge_leaves_what_is_said_in_this_process_only(client, save, exported):
    chat, wolf = Chat(client), common_pb2.Actor(save_id=save, actor_id="wolf")
    chat.append(mira(save), ("user", "the old history"), persist=True)
    data = export(client, save)[1]
    client.memory.EraseActor(memory_pb2.EraseActorRequest(actor=mira(save)))
    chat.append(mira(save), ("user", "said a moment ago"), persist=False)
    chat.talk(wolf, 40, persist=False)
    assert chat.compact(wolf).compacted
    before = chat.messages(wolf), chat.summary(wolf)
    for dry_run in (True, False):
        answer = take_in(client, data, save_id=save, conflict=save_pb2.IMPORT_CONFLICT_MERGE, dry_run=dry_run)
        assert [item.kind for item in answer.skipped] == ["history"]
    assert chat.texts(mira(save)) == ["said a moment ago"]
    assert (chat.messages(wolf), chat.summary(wolf)) == before


def test_a_merged_record_is_known_to_everyone_it_was_shared_with(client, save, exported):
    wolf = common_pb2.Actor(save_id=save, actor_id="wolf")
    share = memory_pb2.Share(recipient=wolf, kind=memory_pb2.SHARE_KIND_WITNESS)
    client.memory.ShareRecord(memory_pb2.ShareRecordRequest(actor=mira(save), record_id="wolf", shares=[share]))
    target = save + " target"
    remember(client, target, "fox", "the fox got away")
    take_in(client, export(client, save)[1], save_id=target, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    request = memory_pb2.GetRecordRequest(actor=mira(target), record_id="wolf")
    assert [one.recipient.actor_id for one in client.memory.GetRecord(request).record.shares] == ["wolf"]


def test_a_record_that_both_have_is_known_to_everyone_who_knows_it_in_either(client, save, exported):
    def share(name):
        told = memory_pb2.Share(
            recipient=common_pb2.Actor(save_id=save, actor_id=name), kind=memory_pb2.SHARE_KIND_WITNESS
        )
        request = memory_pb2.ShareRecordRequest(actor=mira(save), record_id="wolf", shares=[told])
        client.memory.ShareRecord(request)

    share("fox")
    with_the_fox = export(client, save)[1]
    client.saves.EraseSave(save_pb2.EraseSaveRequest(save_id=save))
    remember(client, save, "wolf", "the wolf was spared")
    share("owl")
    take_in(client, with_the_fox, save_id=save, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    record = client.memory.GetRecord(memory_pb2.GetRecordRequest(actor=mira(save), record_id="wolf")).record
    assert sorted(one.recipient.actor_id for one in record.shares) == ["fox", "owl"]


def test_a_superseded_record_is_not_current_again_where_its_replacement_is_there_already(client, save, exported):
    replacement = memory_pb2.NewRecord(
        record_id="dead wolf",
        scope="personal",
        kind=memory_pb2.RECORD_KIND_EVENT,
        moment=common_pb2.Moment(timeline_id="world", tick=2),
    )
    request = memory_pb2.SupersedeRecordRequest(actor=mira(save), record_id="wolf", replacement=replacement)
    client.memory.SupersedeRecord(request)
    data = export(client, save)[1]
    client.memory.ForgetRecords(memory_pb2.ForgetRecordsRequest(actor=mira(save), record_ids=["wolf"]))
    answer = take_in(client, data, save_id=save, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    assert dict(answer.taken) == {"records": 1}
    assert list(recalled(client, save)) == ["dead wolf"]
    record = client.memory.GetRecord(memory_pb2.GetRecordRequest(actor=mira(save), record_id="wolf")).record
    assert record.superseded_by_id == "dead wolf"


def test_a_merge_tells_nothing_of_answers_to_calls_on_the_other_save(client, save):
    target = save + " target"
    for one in (save, target):
        remember(client, one, "wolf", "the wolf was spared")
        forget = memory_pb2.ForgetRecordsRequest(actor=mira(one), record_ids=["nothing"], idempotency_key=one)
        client.memory.ForgetRecords(forget)
    answer = take_in(client, export(client, save)[1], save_id=target, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    assert list(answer.skipped) == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_fork_with_its_own_timeline_is_not_merged_into_a_save_that_reads_its_moments_otherwise(
    client, save, exported, dry_run
):
    fork = save_pb2.ForkSaveRequest(save_id=save, new_save_id=save + " fork", new_timeline_id="elsewhere")
    client.saves.ForkSave(fork)
    data = export(client, save + " fork")[1]
    merge = {"conflict": save_pb2.IMPORT_CONFLICT_MERGE, "dry_run": dry_run}
    failed = failure(lambda: take_in(client, data, save_id=save, **merge))
    assert failed.kind == ("INVALID_ARGUMENT", "FIELD_INVALID")
    assert list(take_in(client, data, save_id=save + " fork", **merge).skipped) == []
    assert take_in(client, data, save_id=f"{save} own {dry_run}").info.records == 1


def test_a_record_with_other_content_is_passed_over_in_a_merge(client, save, exported):
    target = save + " target"
    remember(client, target, "wolf", "the wolf was killed")
    answer = take_in(client, exported[1], save_id=target, conflict=save_pb2.IMPORT_CONFLICT_MERGE)
    assert recalled(client, target) == {"wolf": "the wolf was killed"}
    assert "record" in [item.kind for item in answer.skipped]


@pytest.mark.parametrize("conflict", [save_pb2.IMPORT_CONFLICT_REPLACE, save_pb2.IMPORT_CONFLICT_MERGE])
def test_a_dry_run_changes_nothing(client, save, exported, conflict):
    client.write(mira(save), "went on")
    before = client.read(mira(save))
    answer = take_in(client, exported[1], conflict=conflict, dry_run=True)
    assert client.read(mira(save)) == before
    fresh = take_in(client, exported[1], save_id=save + " fresh", dry_run=True)
    assert dict(fresh.taken) == {"actors": 1, "documents": 1, "versions": 2, "records": 1}
    assert not fresh.HasField("info")
    assert answer.HasField("info")


def rezipped(data, change):
    """The archive with its files changed by ``change(files)``, the manifest told of the new content."""
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        files = {name: zipped.read(name) for name in zipped.namelist()}
    manifest = json.loads(files.pop("manifest.json"))
    change(files, manifest)
    manifest["files"] = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in files.items()
    } | manifest.get("lies", {})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(name, content)
        zipped.writestr("manifest.json", json.dumps(manifest))
    return out.getvalue()


def first(files, ending):
    return next(name for name in files if name.endswith(ending))


def with_file(name, content=b"{}"):
    return lambda files, manifest: files.__setitem__(name, content)


def with_manifest(**more):
    return lambda files, manifest: manifest.update(more)


def truncate_journal(files, manifest):
    name = first(files, "records.jsonl")
    files[name] = files[name][:-9]


def break_document(files, manifest):
    files[first(files, "document.json")] = b'{"text": 3}'


def swap_actors(files, manifest):
    name = first(files, "actor.json")
    files[name] = files[name].replace(b"mira", b"mirx")


def drop_actor(files, manifest):
    del files[first(files, "actor.json")]


def drop_save(files, manifest):
    del files["save/save.json"]


def with_json(name, **more):
    def change(files, manifest):
        files[name] = json.dumps(json.loads(files.get(name, b"{}")) | more).encode()

    return change


HOSTILE = {
    "has groups of another form": with_file("save/groups.json"),
    "has a group whose name is no text": with_json(
        "save/groups.json",
        groups=[{"id": "g", "name": [1], "members": [], "recall_weight": 1, "retention": None}],
        retention=None,
        owners=[],
    ),
    "has settings that are none": with_json("save/settings.json", settings=None),
    "has settings that no save may have": with_json("save/settings.json", settings={"fusion": {"rrf_k": -1}}),
    "has settings of another type": with_json("save/settings.json", settings={"languages": [1]}),
    "has a setting that is null": with_json("save/settings.json", settings={"languages": None}),
    "was made at no time": with_json("save/save.json", created=1e300),
    "reads timelines as nothing": with_json("save/save.json", timelines=[["a"]]),
    "has no revision": with_json("save/save.json", revision="one"),
    "is no object": with_file("save/save.json", b"[]"),
    "brings records that have no owner": with_file("save/inbox.jsonl", b""),
    "climbs out": with_file("save/../../../tmp/evil.json"),
    "is absolute": with_file("/etc/evil.json"),
    "climbs out on Windows": with_file("save/..\\..\\evil.json"),
    "has a drive": with_file("c:evil.json"),
    "lies outside": with_file("evil.json"),
    "is a program": with_file("save/evil.exe"),
    "is a device": with_file("save/con.json"),
    "is in a strange folder": with_file("save/a-xyz/document.json"),
    "is hidden": with_file("save/.evil.json"),
    "is no JSON": with_file("save/groups.json", b"{broken"),
    "has a name twice inside": with_file("save/groups.json", b'{"a":1,"a":2}'),
    "nests deeply": with_file("save/groups.json", b'{"a":' + b"[" * 100_000),
    "lies about its size": with_manifest(lies={"save/save.json": {"bytes": 10**10, "sha256": "0" * 64}}),
    "lies about its hash": with_manifest(lies={"save/save.json": {"bytes": 5, "sha256": "0" * 64}}),
    "misses a file": with_manifest(lies={"save/missing.json": {"bytes": 5, "sha256": "0" * 64}}),
    "has no form": with_manifest(lorekeeper_export="one"),
    "has a damaged document": break_document,
    "has a journal cut short": truncate_journal,
    "has an actor in another's folder": swap_actors,
    "has an actor without a name": drop_actor,
    "has no save": drop_save,
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_an_archive_that(client, save, exported, shared_daemon, change):
    data = rezipped(exported[1], change)
    failed = failure(lambda: take_in(client, data, save_id=save + " new"))
    assert failed.kind == ("INVALID_ARGUMENT", "ARCHIVE_INVALID")
    assert save + " new" not in [info.save_id for info in client.saves.ListSaves(save_pb2.ListSavesRequest()).saves]
    found = [name for _, folders, files in os.walk(shared_daemon.folder.parent) for name in (*folders, *files)]
    assert not [name for name in found if "evil" in name]


def test_answers_to_calls_on_another_save_are_not_taken(client, save, exported):
    data = rezipped(exported[1], with_file("save/answers.jsonl", b"broken"))
    take_in(client, data, save_id=save + " new")
    forget = memory_pb2.ForgetRecordsRequest(actor=mira(save + " new"), record_ids=["wolf"], idempotency_key="k")
    assert client.memory.ForgetRecords(forget).forgotten == 1


def raw_zip(*entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as zipped:
        for info, content in entries:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("warnings.warn", lambda *_, **__: None)
                zipped.writestr(info, content)
    return out.getvalue()


def link():
    info = zipfile.ZipInfo("save/save.json")
    info.external_attr = 0o120777 << 16
    return raw_zip((info, b"/etc/passwd"), ("manifest.json", b"{}"))


def claimed_ten_gigabytes():
    data = bytearray(raw_zip(("save/save.json", b"{}"), ("manifest.json", b"{}")))
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 4_000_000_000)
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a zip",
        b"PK\x03\x04" + b"\0" * 100,
        raw_zip(),
        raw_zip(("save/save.json", b"{}")),
        raw_zip(("save/save.json", b"{}"), ("save/save.json", b"{}"), ("manifest.json", b"{}")),
        raw_zip(("manifest.json", b"[]")),
        raw_zip(("manifest.json", b"{broken")),
        link(),
    ],
)
def test_what_is_no_archive_is_refused(client, save, data):
    failed = failure(lambda: take_in(client, data, save_id=save))
    assert failed.code.name == "INVALID_ARGUMENT"


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
def test_an_archive_that_is_cut_short_or_damaged_is_refused(client, save, exported, cut):
    data = exported[1]
    short = data[: int(len(data) * cut)]
    assert failure(lambda: take_in(client, short, save_id=save + " new")).reason == "ARCHIVE_INVALID"


def test_a_bomb_is_refused_before_it_goes_off(client, save):
    bomb = raw_zip(("save/groups.json", b" " * 50_000_000), ("manifest.json", b"{}"))
    assert failure(lambda: take_in(client, bomb, save_id=save)).kind == ("RESOURCE_EXHAUSTED", "ARCHIVE_TOO_LARGE")
    claimed = failure(lambda: take_in(client, claimed_ten_gigabytes(), save_id=save))
    assert claimed.kind == ("RESOURCE_EXHAUSTED", "ARCHIVE_TOO_LARGE")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b"{" + b" " * 2_000_000),
        ("save/groups.json", b" " * 2_000_000),
        ("save/groups.jsonl", b" " * 2_000_000 + b"\n"),
    ],
)
def test_what_is_read_as_one_is_bounded(start_daemon, save, exported, name, content):
    limits = {"saves.max_archive_object_bytes": 1_048_576, "saves.max_pack_ratio": 100_000}
    client = start_daemon(*(word for limit in limits.items() for word in ("--set", "{}={}".format(*limit)))).client
    data = raw_zip((name, content)) if name == "manifest.json" else rezipped(exported[1], with_file(name, content))
    failed = failure(lambda: take_in(client, data, save_id=save))
    assert (failed.reason, failed.metadata["limit"]) == ("ARCHIVE_TOO_LARGE", "saves.max_archive_object_bytes")


def test_a_conflict_that_the_contract_does_not_have_is_refused_by_name(client, save, exported):
    failed = failure(lambda: take_in(client, exported[1], save_id=f"{save} copy", conflict=9))
    assert (failed.kind, failed.fields) == (("INVALID_ARGUMENT", "FIELD_INVALID"), ("header.conflict",))


def test_an_archive_of_a_newer_version_is_refused(client, save, exported):
    data = rezipped(exported[1], with_manifest(lorekeeper_export=2))
    assert failure(lambda: take_in(client, data)).kind == ("FAILED_PRECONDITION", "ARCHIVE_TOO_NEW")
    data = rezipped(exported[1], with_manifest(store_format=1_000))
    assert failure(lambda: take_in(client, data)).kind == ("FAILED_PRECONDITION", "ARCHIVE_TOO_NEW")


def test_a_file_that_is_not_the_announced_one_is_refused(client, save, exported):
    _, data, footer = exported
    assert failure(lambda: take_in(client, data, save_id=save + " new", sha256="0" * 64)).reason == "ARCHIVE_INVALID"
    assert take_in(client, data, save_id=save + " new", sha256=footer.sha256.upper()).info.actors == 1


def test_the_size_of_an_upload_is_bounded(start_daemon, save):
    client = start_daemon("--set", "saves.max_archive_bytes=1024").client
    failed = failure(lambda: take_in(client, b"x" * 2_000, save_id=save))
    assert failed.kind == ("RESOURCE_EXHAUSTED", "ARCHIVE_TOO_LARGE")


def test_an_import_begins_with_its_header(client):
    messages = iter([save_pb2.ImportSaveRequest(chunk=b"x")])
    assert failure(lambda: client.saves.ImportSave(messages)).kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")
    assert failure(lambda: client.saves.ImportSave(iter([]))).kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")


def test_an_export_of_nothing_is_not_found(client, save):
    assert failure(lambda: export(client, save)).kind == ("NOT_FOUND", "SAVE_NOT_FOUND")


def test_no_upload_is_left_behind(daemon, save):
    for data in (b"broken", b""):
        failure(lambda data=data: take_in(daemon.client, data, save_id=save))
    daemon.stop()
    assert not any(Path(daemon.folder, "exchange").iterdir())
