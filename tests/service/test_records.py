"""Records over a real socket: add, read, list, supersede, forget, share, groups, retention."""

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from client import failure
from records_client import FACT, Records, at, m, wanted

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, save_pb2, save_pb2_grpc, search_pb2

CREATED, UNCHANGED = memory_pb2.ADD_OUTCOME_CREATED, memory_pb2.ADD_OUTCOME_UNCHANGED


@pytest.fixture
def records(shared_daemon, actor):
    return Records(shared_daemon.client, actor)


@pytest.fixture
def own_records(daemon, actor):
    """On a daemon of this test alone, which may be restarted."""
    return lambda: Records(daemon.client, actor)


# A and B: the acceptance cases


def test_a1_a_tag_and_a_moment_find_only_what_has_happened(records):
    given = m("m1", tick=12, importance=0.63, tags=["friend"], payload_json='{"affinity":0.75}')
    records.add(given, m("m2", tick=30, tags=["friend"]))
    (hit,) = records.search(filter=wanted(now=20, tags=["friend"])).hits
    assert (hit.record.record_id, hit.record.importance) == ("m1", 0.63)
    assert hit.record.payload_json == '{"affinity":0.75}'


def test_a2_the_same_id_lives_once_in_each_owner_and_save(records):
    npc, other = records.actor, records.other("other")
    elsewhere = common_pb2.Actor(save_id=f"{npc.save_id} b", actor_id=npc.actor_id, role_id=npc.role_id)
    for actor, text in ((npc, "first wolf"), (other, "second wolf"), (elsewhere, "third wolf")):
        assert records.add(m("m1", text), actor=actor).records[0].outcome == CREATED
        (hit,) = records.search("wolf", actor).hits
        assert (hit.record.searchable_text, hit.owner.actor_id) == (text, actor.actor_id)
    assert len(records.search("wolf", owners=[npc, other], sources=[other], limit=2).hits) == 2


def test_a4_what_is_found_is_the_stored_record(records):
    records.add(m("m1", "wolf", tags=["b", "a"], metadata={"k": "v"}, speaker="Mira", pinned=True))
    (hit,) = records.search("wolf").hits
    assert hit.record == records.get("m1")


def test_a7_records_are_listed_by_owner_then_id_and_never_those_of_another_save(records):
    first, second = records.other("1"), records.other("2")
    foreign = common_pb2.Actor(save_id="foreign", actor_id=first.actor_id)
    records.add(m("b"), m("a"), actor=second)
    records.add(m("a"), m("\U0001f600"), m("\uffff"), actor=first)
    records.add(m("x"), actor=foreign)
    page = records.list(owners=[second, first])
    assert [record.record_id for record in page.records] == ["a", "\U0001f600", "\uffff", "a", "b"]
    assert (page.total, page.next_page_token) == (5, "")


def test_owners_are_listed_by_their_utf_16_page_by_page(records):
    names = ["1", "1\u4e00", "11", "\U0001f600", "\uffff"]
    for name in reversed(names):
        records.add(m(f"of {name}", "wolf"), actor=records.other(name))
    owners = [records.other(name) for name in names]
    seen, token = [], ""
    while not seen or token:
        page = records.list(owners=owners, page_size=1, page_token=token)
        seen += [record.record_id for record in page.records]
        token = page.next_page_token
    assert seen == ["of 1", "of 11", "of 1\u4e00", "of \U0001f600", "of \uffff"]
    assert records.found("wolf", owners=owners, sources=owners) == seen


def test_groups_are_listed_by_the_utf_16_of_their_ids(records):
    prefix = records.other("g").actor_id
    ids = [f"{prefix} \U0001f600", f"{prefix} \uffff"]
    groups = [memory_pb2.Group(group_id=one) for one in reversed(ids)]
    save = records.actor.save_id
    records.memory.PutGroups(memory_pb2.PutGroupsRequest(save_id=save, groups=groups))
    listed = [group.group_id for group in records.memory.ListGroups(memory_pb2.ListGroupsRequest(save_id=save)).groups]
    assert [one for one in listed if one in ids] == ids


def test_b1_a_record_is_intact_after_a_restart(daemon, own_records):
    given = m("m1", "wolf", tags=["friend"], expires_at=at(20), metadata={"place": "den"})
    own_records().add(given)
    before = own_records().get("m1")
    daemon.restart()
    (hit,) = own_records().search(filter=wanted(now=8, tags=["friend"])).hits
    for record in (hit.record, before):
        record.ClearField("embedding_state")  # a search that asks nothing of meaning does not look at it
    assert hit.record == before
    assert dict(hit.record.metadata) == {"place": "den"}
    assert own_records().found(filter=wanted(now=20)) == []


def test_b4_a_query_looks_at_its_owner_alone(records):
    others = [common_pb2.Actor(save_id=f"save {n % 6}", actor_id=f"owner {n % 12}") for n in range(12)]
    for number, other in enumerate(others):
        records.add(*(m(f"{number} {n}", "target") for n in range(10)), actor=other)
    records.add(*(m(f"t{n}", "target") for n in range(3)))
    found = records.search("target")
    assert sorted(hit.record.record_id for hit in found.hits) == ["t0", "t1", "t2"]
    assert found.stages[0].scanned == 3


def test_b9_a_link_in_the_data_folder_is_refused(daemon, own_records, tmp_path):
    own_records().add(m("m1", "wolf"))
    daemon.stop()
    journal = next(daemon.folder.rglob("records.jsonl"))
    journal.rename(tmp_path / "elsewhere")
    journal.symlink_to(tmp_path / "elsewhere")
    daemon.start()
    assert failure(lambda: own_records().get("m1")).kind == ("DATA_LOSS", "STORAGE_UNSAFE")
    daemon.stop()
    journal.unlink()
    (tmp_path / "elsewhere").rename(journal)
    daemon.start()
    assert own_records().listed() == ["m1"]


# adding


def test_adding_the_same_record_again_changes_nothing(records):
    first = records.add(m("m1", "wolf"))
    again = records.add(m("m1", "wolf", payload_json='{ "text" : "w\\u006flf" }'))
    assert (first.records[0].outcome, again.records[0].outcome) == (CREATED, UNCHANGED)
    assert again.save == first.save
    assert records.get("m1").payload_json == '{"text": "wolf"}'


def test_other_content_under_the_same_id_already_exists(records):
    records.add(m("m1", "wolf"))
    failed = failure(lambda: records.add(m("m2"), m("m1", "bear")))
    assert failed.kind == ("ALREADY_EXISTS", "CONTENT_CONFLICT")
    assert failed.fields == ("records[1].record_id",)
    assert "wolf" not in failed.message
    assert records.listed() == ["m1"]


def test_thousands_of_records_of_many_owners_are_added_in_one_call(records):
    new = [m(f"m{n}", "wolf", owner=records.other(str(n % 300))) for n in range(3_000)]
    assert all(added.outcome == CREATED for added in records.add(*new).records)
    assert records.list(records.other("299"), page_size=1).total == 10


def test_an_id_that_is_made_is_the_same_for_the_same_input(records):
    first = records.add(m("", "wolf", source_input_id="input 1"), turn=2).records[0]
    again = records.add(m("", "wolf", source_input_id="input 1"), turn=2).records[0]
    other = records.add(m("", "wolf", source_input_id="input 1"), turn=3).records[0]
    assert first.record_id == again.record_id != other.record_id
    assert (again.outcome, other.outcome) == (UNCHANGED, CREATED)
    changed = failure(lambda: records.add(m("", "bear", source_input_id="input 1"), turn=2))
    assert changed.kind == ("ALREADY_EXISTS", "CONTENT_CONFLICT")


def test_an_idempotency_key_makes_a_retry_safe_also_after_a_restart(daemon, own_records):
    first = own_records().add(m("", "wolf"), idempotency_key="key 1")
    assert own_records().add(m("", "wolf"), idempotency_key="key 1") == first
    reused = failure(lambda: own_records().add(m("", "bear"), idempotency_key="key 1"))
    assert reused.kind == ("ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")
    daemon.restart()
    again = own_records().add(m("", "wolf"), idempotency_key="key 1")
    assert (again.records[0].record_id, again.records[0].outcome) == (first.records[0].record_id, CREATED)


@pytest.mark.parametrize("restarts", [1, 2])
def test_a_record_that_was_forgotten_stays_forgotten_when_its_call_is_resent_after_a_kill(
    daemon, own_records, restarts
):
    records = own_records()
    records.add(
        m("gone", "wolf"), m("kept", "bear"), m("gone", "fox", owner=records.other("a")), idempotency_key="key 1"
    )
    records.forget("gone")
    for _ in range(restarts):
        daemon.kill()
        daemon.start()
        again = own_records().add(
            m("gone", "wolf"), m("kept", "bear"), m("gone", "fox", owner=records.other("a")), idempotency_key="key 1"
        )
    assert [one.outcome for one in again.records] == [CREATED] * 3
    assert own_records().listed() == ["kept"]
    assert own_records().listed(records.other("a")) == ["gone"]
    own_records().add(m("gone", "wolf"), idempotency_key="key 2")
    assert own_records().listed() == ["gone", "kept"]


def test_what_retention_dropped_is_not_added_again_by_a_retry(daemon, own_records):
    records = own_records()
    retention(records, memory_pb2.RetentionPolicy(max_records=1))
    records.add(m("old", tick=1), idempotency_key="key 1")
    records.add(m("new", tick=2), idempotency_key="key 2")
    daemon.kill()
    daemon.start()
    own_records().add(m("old", tick=1), idempotency_key="key 1")
    assert own_records().listed() == ["new"]


@pytest.mark.parametrize("forgotten", [["new"], ["old"], ["new", "old"]])
def test_a_replacement_that_is_resent_after_a_kill_is_told_as_before(daemon, own_records, forgotten):
    records = own_records()
    records.add(m("old", "wolf"))
    first = records.supersede("old", m("new", "bear"), idempotency_key="key 1").record
    records.forget(*forgotten)
    daemon.kill()
    daemon.start()
    assert own_records().supersede("old", m("new", "bear"), idempotency_key="key 1").record == first
    assert not set(forgotten) & set(own_records().listed(filter=wanted(include_superseded=True)))


def test_forgetting_by_a_filter_that_is_resent_after_a_kill_spares_what_was_added_since(daemon, own_records):
    records = own_records()
    records.add(m("old 1"), m("old 2"))
    given = {"filter": memory_pb2.RecordFilter(), "idempotency_key": "key 1"}
    first = records.forget(**given)
    records.add(m("new"))
    daemon.kill()
    daemon.start()
    again = own_records().forget(**given)
    assert (again.matched, again.forgotten) == (first.matched, first.forgotten) == (2, 2)
    assert own_records().listed() == ["new"]
    other = failure(lambda: own_records().forget("new", idempotency_key="key 1"))
    assert other.kind == ("ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")


def test_groups_that_are_resent_after_a_kill_do_not_put_back_what_was_changed_since(daemon, own_records):
    records = own_records()

    def put(name, **more):
        groups = [memory_pb2.Group(group_id="watch", name=name)]
        request = memory_pb2.PutGroupsRequest(save_id=records.actor.save_id, groups=groups, **more)
        return daemon.client.memory.PutGroups(request)

    first = put("old", idempotency_key="key 1")
    put("new", idempotency_key="key 2")
    daemon.kill()
    daemon.start()
    assert put("old", idempotency_key="key 1").groups == first.groups
    listed = daemon.client.memory.ListGroups(memory_pb2.ListGroupsRequest(save_id=records.actor.save_id))
    assert [group.name for group in listed.groups] == ["new"]


def test_a_key_of_the_save_that_a_fork_came_from_is_a_new_key_in_the_fork(daemon, own_records):
    records = own_records()
    records.add(m("m1"))
    given = {"filter": memory_pb2.RecordFilter(), "idempotency_key": "key 1"}
    saves = save_pb2_grpc.SaveServiceStub(records.channel)
    records.forget(**given)
    records.add(m("m2"))
    saves.ForkSave(save_pb2.ForkSaveRequest(save_id=records.actor.save_id, new_save_id="fork"))
    forked = common_pb2.Actor(save_id="fork", actor_id=records.actor.actor_id, role_id=records.actor.role_id)
    assert records.forget(actor=forked, **given).forgotten == 1
    assert records.listed() == ["m2"]


def test_a_key_that_is_too_long_names_its_limit(records):
    refused = failure(lambda: records.add(m("m1"), idempotency_key="k" * 513))
    assert refused.kind == ("INVALID_ARGUMENT", "FIELD_TOO_LONG")
    assert refused.metadata["limit"] == "max_key_chars"


def test_damaged_groups_cost_what_groups_recall_and_nothing_else(daemon, own_records):
    records = own_records()
    bran = records.other("bran")
    group = memory_pb2.Group(group_id="watch", members=[records.actor])
    memory = daemon.client.memory
    memory.PutGroups(memory_pb2.PutGroupsRequest(save_id=records.actor.save_id, groups=[group]))
    records.add(m("own", "wolf"), m("theirs", "wolf", owner=bran, audience=["watch"]))
    records.add(m("everybody's", "wolf", owner=bran, audience=["*"]))
    assert sorted(records.found("wolf")) == ["everybody's", "own", "theirs"]
    daemon.stop()
    next(daemon.folder.rglob("groups.json")).write_bytes(b"{")
    daemon.start()
    records = own_records()
    for _ in range(2):
        answer = records.search("wolf", mode=search_pb2.SEARCH_MODE_LEXICAL)
        assert sorted(hit.record.record_id for hit in answer.hits) == ["everybody's", "own"]
        assert list(answer.degraded_reasons) == [common_pb2.DEGRADED_REASON_GROUPS_DAMAGED]
    records.add(m("later", "wolf"))
    for call, request in [
        ("ListGroups", memory_pb2.ListGroupsRequest(save_id=records.actor.save_id)),
        ("PutGroups", memory_pb2.PutGroupsRequest(save_id=records.actor.save_id, groups=[group])),
        ("GetRetention", memory_pb2.GetRetentionRequest(save_id=records.actor.save_id)),
    ]:
        refused = failure(lambda call=call, request=request: getattr(daemon.client.memory, call)(request))
        assert refused.kind == ("DATA_LOSS", "STORAGE_CORRUPT")
        assert refused.metadata["file"].endswith("groups.json")


def test_every_record_tells_the_revision_that_wrote_it(records):
    answer = records.add(m("m1"))
    assert records.get("m1").revision == answer.save.revision > 0


@pytest.mark.parametrize(
    ("record", "kind", "field"),
    [
        (m("a\x00b"), "FIELD_INVALID", "records[0].record_id"),
        (m("a\nb"), "FIELD_INVALID", "records[0].record_id"),
        (m("x" * 513), "FIELD_TOO_LONG", "records[0].record_id"),
        (m("m", scope=" "), "FIELD_REQUIRED", "records[0].scope"),
        (m("m", kind=0), "FIELD_REQUIRED", "records[0].kind"),
        (m("m", kind=99), "FIELD_INVALID", "records[0].kind"),
        (m("m", kind=memory_pb2.RECORD_KIND_TURN), "FIELD_INVALID", "records[0].kind"),
        (m("m", importance=float("nan")), "FIELD_INVALID", "records[0].importance"),
        (m("m", importance=float("inf")), "FIELD_INVALID", "records[0].importance"),
        (m("m", payload_json='{"a":1,"a":1}'), "FIELD_INVALID", "records[0].payload_json"),
        (m("m", payload_json="[" * 129 + "]" * 129), "FIELD_INVALID", "records[0].payload_json"),
        (m("m", payload_json="NaN"), "FIELD_INVALID", "records[0].payload_json"),
        (m("m", searchable_text="x" * 1_000_001), "FIELD_TOO_LONG", "records[0].searchable_text"),
        (m("m", tags=[str(n) for n in range(257)]), "TOO_MANY_ITEMS", "records[0].tags"),
        (m("m", moment=common_pb2.Moment(tick=1)), "FIELD_REQUIRED", "records[0].moment.timeline_id"),
        (m("m", expires_at=at(9, "dream")), "FIELD_INVALID", "records[0].expires_at"),
        (m("m", expires_at=at(0)), "FIELD_INVALID", "records[0].expires_at"),
        (m("m", owner=common_pb2.Actor(save_id="another")), "FIELD_INVALID", "records[0].owner.save_id"),
        (m("m", shares=[memory_pb2.Share(kind=1)]), "FIELD_REQUIRED", "records[0].shares[0].recipient"),
        (
            m("m", shares=[memory_pb2.Share(recipient=common_pb2.Actor())]),
            "FIELD_REQUIRED",
            "records[0].shares[0].kind",
        ),
        (memory_pb2.NewRecord(record_id="m", scope="s", kind=FACT), "FIELD_REQUIRED", "records[0].moment"),
    ],
)
def test_bad_input_names_the_field_and_changes_nothing(records, record, kind, field):
    failed = failure(lambda: records.add(record))
    assert failed.kind == ("INVALID_ARGUMENT", kind)
    assert failed.fields == (field,)
    assert records.listed() == []


def test_a_bad_address_is_named_by_its_place_in_the_request(records):
    bad = common_pb2.Actor(actor_id="a\x00")
    witness = memory_pb2.Share(recipient=bad, kind=memory_pb2.SHARE_KIND_WITNESS)
    for call, field in (
        (lambda: records.add(m("m1"), m("m2", owner=bad)), "records[1].owner.actor_id"),
        (lambda: records.add(m("m1", shares=[witness])), "records[0].shares[0].recipient.actor_id"),
        (lambda: records.list(owners=[records.actor, bad]), "owners[1].actor_id"),
        (lambda: records.search("wolf", sources=[bad]), "sources[0].actor_id"),
        (lambda: records.list(actor=bad), "actor.actor_id"),
    ):
        assert failure(call).fields == (field,)


def test_a_call_without_records_is_refused(records):
    assert failure(lambda: records.add()).kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")
    assert failure(lambda: records.add(*[m(str(n)) for n in range(4_097)])).kind == (
        "INVALID_ARGUMENT",
        "TOO_MANY_ITEMS",
    )


def test_a_full_save_is_told_with_its_limit(start_daemon, actor):
    records = Records(start_daemon("--set", "records.max_records_per_save=2").client, actor)
    records.add(m("m1"), m("m2"))
    failed = failure(lambda: records.add(m("m3")))
    assert failed.kind == ("RESOURCE_EXHAUSTED", "TOO_MANY_RECORDS")
    assert failed.metadata == {"limit": "records.max_records_per_save", "value": "2"}
    assert records.add(m("m1")).records[0].outcome == UNCHANGED


# listing


def test_pages_hold_everything_once_while_records_are_added(records):
    records.add(*(m(f"m{n:02}") for n in range(25)))
    seen, token = [], ""
    while True:
        page = records.list(page_size=10, page_token=token)
        seen += [record.record_id for record in page.records]
        token = page.next_page_token
        if not token:
            break
        records.add(m(f"late {len(seen)}"))
    assert [name for name in seen if name.startswith("m")] == [f"m{n:02}" for n in range(25)]


def test_a_list_is_filtered_as_a_search_is(records):
    records.add(m("old"), m("wolf", "Der WOLF"), m("expiring", expires_at=at(9)), m("future", tick=500))
    records.supersede("old", m("new"))
    assert records.listed() == ["future", "new", "wolf"]
    assert records.listed(filter=wanted(include_superseded=True)) == ["new", "old", "wolf"]
    assert records.listed(filter=wanted(now=8)) == ["expiring", "new", "wolf"]
    assert records.listed(filter=memory_pb2.RecordFilter(text="der wolf")) == ["wolf"]


def test_all_owners_of_a_save_are_listed_when_asked_for(start_daemon, actor):
    records = Records(start_daemon().client, actor)
    records.add(m("m1", owner=records.other("a")), m("m2", owner=records.other("b")))
    assert records.listed(all_owners=True) == ["m1", "m2"]
    assert records.listed() == []


def test_a_token_that_no_page_gave_is_refused(records):
    assert failure(lambda: records.list(page_token="?")).kind == ("INVALID_ARGUMENT", "PAGE_TOKEN_INVALID")


def test_a_record_that_is_not_there_is_not_found(records):
    assert failure(lambda: records.get("nothing")).kind == ("NOT_FOUND", "RECORD_NOT_FOUND")
    assert failure(lambda: records.get("")).kind == ("INVALID_ARGUMENT", "FIELD_REQUIRED")


# superseding and forgetting


def test_superseding_is_seen_at_once_and_a_retry_changes_nothing(records):
    records.add(m("old", "the wolf lives"))
    assert records.found("wolf") == ["old"]
    assert records.supersede("old", m("new", "the wolf is dead")).record.outcome == CREATED
    assert records.found("wolf") == ["new"]
    assert records.get("old").superseded_by_id == "new"
    assert records.get("new").supersedes_id == "old"
    assert records.supersede("old", m("new", "the wolf is dead")).record.outcome == UNCHANGED
    failed = failure(lambda: records.supersede("old", m("newer")))
    assert failed.kind == ("FAILED_PRECONDITION", "RECORD_SUPERSEDED")


def test_one_input_may_supersede_several_records_without_ids(records):
    records.add(m("rain", "it rains"), m("door", "the door is shut"), m("", "a knock", source_input_id="line 1"))
    dry, open_door = m("", "it is dry", source_input_id="line 1"), m("", "the door is open", source_input_id="line 1")
    ids = [records.supersede(old, new).record.record_id for old, new in (("rain", dry), ("door", open_door))]
    assert len(set(ids)) == 2
    assert records.supersede("rain", dry).record.outcome == UNCHANGED


def test_as_of_a_moment_before_its_replacement_a_record_is_found(daemon, own_records):
    records = own_records()
    records.add(m("old", "the wolf is alive", tick=10))
    records.supersede("old", m("new", "the wolf is dead", tick=20))

    def known() -> list[list[str]]:
        seen = [(own_records().found("wolf", filter=wanted(now=now)), now) for now in (9, 19, 20)]
        assert all(own_records().listed(filter=wanted(now=now)) == found for found, now in seen)
        return [found for found, _ in seen]

    assert known() == [[], ["old"], ["new"]]
    assert own_records().found("wolf", filter=wanted(now=None)) == ["new"]
    records.forget("new")
    assert known() == [[], ["old"], []]
    daemon.restart()
    assert known() == [[], ["old"], []]


def test_a_replacement_belongs_to_the_same_owner(records):
    records.add(m("old"))
    failed = failure(lambda: records.supersede("old", m("new", owner=records.other("a"))))
    assert failed.kind == ("INVALID_ARGUMENT", "FIELD_INVALID")


def test_forgetting_by_id_is_seen_at_once(records):
    records.add(m("m1", "wolf"), m("m2", "wolf"))
    answer = records.forget("m1", "unknown")
    assert (answer.matched, answer.forgotten) == (1, 1)
    assert records.found("wolf") == records.listed() == ["m2"]
    assert records.forget("m1").forgotten == 0


def test_a_dry_run_only_counts(records):
    records.add(m("m1", tags=["a"]), m("m2"))
    answer = records.forget(filter=memory_pb2.RecordFilter(tags=["a"]), dry_run=True)
    assert (answer.matched, answer.forgotten) == (1, 0)
    assert len(records.listed()) == 2


def test_an_empty_filter_forgets_everything_of_the_owner(records):
    records.add(m("old"), m("expiring", expires_at=at(5)), m("m3"))
    records.supersede("old", m("new"))
    records.add(m("kept"), actor=records.other("a"))
    assert records.forget(filter=memory_pb2.RecordFilter()).forgotten == 4
    assert records.listed(records.other("a")) == ["kept"]


def test_ids_and_a_filter_together_or_neither_are_refused(records):
    for request in ({}, {"filter": memory_pb2.RecordFilter()}):
        ids = ("m1",) if request else ()
        assert failure(lambda ids=ids, request=request: records.forget(*ids, **request)).code.name == "INVALID_ARGUMENT"


def test_forgotten_text_is_nowhere_in_the_data_folder(daemon, own_records):
    own_records().add(m("m1", "unspeakable"), m("m2", "wolf"))
    own_records().rebuild()
    own_records().forget("m1")
    own_records().rebuild()
    daemon.stop()
    assert not [path for path in daemon.folder.rglob("*") if path.is_file() and b"unspeak" in path.read_bytes()]


# groups, shares, retention


def guards(records, *members, **more):
    group = memory_pb2.Group(group_id=f"{records.actor.actor_id} guards", members=members, **more)
    records.memory.PutGroups(memory_pb2.PutGroupsRequest(save_id=records.actor.save_id, groups=[group]))
    return group.group_id


def test_both_guards_recall_what_is_addressed_to_them_and_the_thief_does_not(records):
    one, two, thief = (records.other(name) for name in ("one", "two", "thief"))
    group = guards(records, one, two)
    records.add(m("m1", "the gate code", audience=[group]))
    for guard in (one, two):
        (hit,) = records.search("gate", guard).hits
        assert (hit.group_id, hit.owner.actor_id) == (group, records.actor.actor_id)
    assert records.found("gate", thief) == []
    assert records.found("gate", one, include_groups=False) == []
    guards(records, one, thief)
    assert records.found("gate", thief) == ["m1"]
    assert records.found("gate", two) == []


def test_groups_are_listed_replaced_and_removed(records):
    member = records.other("one")
    group = guards(records, member, name="Guards", recall_weight=2.0)
    request = memory_pb2.ListGroupsRequest(save_id=records.actor.save_id, member=member)
    (listed,) = records.memory.ListGroups(request).groups
    assert (listed.group_id, listed.name, listed.recall_weight) == (group, "Guards", 2.0)
    records.memory.PutGroups(
        memory_pb2.PutGroupsRequest(save_id=records.actor.save_id, remove_group_ids=[group, "unknown"])
    )
    assert not records.memory.ListGroups(request).groups


def test_a_share_is_recalled_by_who_was_there_or_was_told(records):
    witness, told = records.other("witness"), records.other("told")
    records.add(m("m1", "the robbery", tick=10))
    shares = [
        memory_pb2.Share(recipient=witness, kind=memory_pb2.SHARE_KIND_WITNESS),
        memory_pb2.Share(recipient=told, kind=memory_pb2.SHARE_KIND_HEARSAY, moment=at(20), told_by=witness),
    ]
    answer = records.share("m1", *shares)
    assert (answer.changed, len(answer.shares)) == (2, 2)
    assert records.share("m1", *shares).changed == 0
    assert records.found("robbery", witness, filter=wanted(now=10)) == ["m1"]
    assert records.found("robbery", told, filter=wanted(now=19)) == []
    (hit,) = records.search("robbery", told, filter=wanted(now=20)).hits
    assert hit.share.told_by.actor_id == witness.actor_id


def test_who_was_told_of_a_record_and_is_a_witness_later_goes_on_knowing_it(records):
    guard = records.other("guard")
    records.add(m("m1", "wolf", tick=5))
    for kind, tick in ((memory_pb2.SHARE_KIND_HEARSAY, 8), (memory_pb2.SHARE_KIND_WITNESS, 12)):
        records.share("m1", memory_pb2.Share(recipient=guard, kind=kind, moment=at(tick)))
    assert records.found("wolf", guard, filter=wanted(now=7)) == []
    (hit,) = records.search("wolf", guard, filter=wanted(now=8)).hits
    assert (hit.share.kind, hit.share.moment.tick) == (memory_pb2.SHARE_KIND_WITNESS, 8)


def test_shares_and_groups_are_there_after_a_restart(daemon, own_records):
    guard = own_records().other("guard")
    group = guards(own_records(), guard)
    own_records().add(m("m1", "gate", audience=[group]), m("m2", "robbery"))
    own_records().share("m2", memory_pb2.Share(recipient=guard, kind=memory_pb2.SHARE_KIND_WITNESS))
    daemon.kill()
    daemon.start()
    assert own_records().found("gate robbery", guard) == ["m1", "m2"]


def retention(records, policy=None, owner=None, **more):
    return records.memory.PutRetention(
        memory_pb2.PutRetentionRequest(save_id=records.actor.save_id, policy=policy, owner=owner, **more)
    )


def test_retention_is_applied_at_once_and_after_each_addition(records):
    records.add(*(m(f"m{n}", tick=n) for n in range(5)))
    policy = memory_pb2.RetentionPolicy(max_records=2)
    assert retention(records, policy, records.actor, dry_run=True).dropped == 3
    assert len(records.listed()) == 5
    assert retention(records, policy, records.actor).dropped == 3
    records.add(m("m9", tick=9))
    assert records.listed() == ["m4", "m9"]
    answer = records.memory.GetRetention(
        memory_pb2.GetRetentionRequest(save_id=records.actor.save_id, owner=records.actor)
    )
    assert (answer.own, answer.policy.max_records) == (True, 2)
    retention(records, None, records.actor)
    records.add(m("m10"))
    assert len(records.listed()) == 3


def test_what_retention_drops_for_an_addition_is_told(records):
    retention(records, memory_pb2.RetentionPolicy(max_records=2), records.actor)
    assert records.add(m("a", importance=0.2), m("b", importance=0.3)).dropped == 0
    assert records.add(m("least", importance=0.1)).dropped == 1
    assert records.supersede("b", m("c", importance=0.9)).dropped == 1
    assert records.listed(filter=wanted(include_superseded=True)) == ["b", "c"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("word " * 4_096, None),
        ("word " * 4_097, 20_485),
        ("x" * 100_000, None),
        ("x" * 100_001, 100_000),
        ("猫" * 2_048, None),
        ("猫" * 2_049, 2_049),
    ],
)
def test_what_of_a_record_cannot_be_found_by_words_is_told(records, text, kept):
    added = records.add(m("long", text.strip(), payload_json="{}")).records[0]
    assert [cut.what for cut in added.cuts] == ([] if kept is None else ["terms"])
    assert kept is None or added.cuts[0].kept in (kept, kept - 1)


def test_a_dry_run_counts_what_retention_would_really_drop(records):
    save = f"{records.actor.save_id} {records.actor.actor_id[:400]}"
    own = Records(records.client, common_pb2.Actor(save_id=save, actor_id="npc"))
    free, bound = own.other("free"), own.other("bound")
    for owner in (free, bound):
        own.add(*(m(f"m{n}", tick=n) for n in range(5)), actor=owner)
    few, many = (memory_pb2.RetentionPolicy(max_records=most) for most in (2, 10))
    assert retention(own, many, bound).dropped == 0
    for dry_run in (True, False):
        assert retention(own, few, dry_run=dry_run).dropped == 3
    for dry_run in (True, False):
        answer = retention(own, None, bound, dry_run=dry_run)
        assert (answer.dropped, answer.policy.max_records) == (3, 2)


# whole actors


def test_erasing_an_actor_forgets_its_records(records):
    records.add(m("m1", "wolf"), m("m2", "wolf", owner=records.other("a")))
    erased = records.memory.EraseActor(memory_pb2.EraseActorRequest(actor=records.actor)).erased
    assert erased.records == 1
    assert records.found("wolf") == records.listed() == []
    assert records.found("wolf", records.other("a")) == ["m2"]
    assert records.add(m("m1", "another wolf")).records[0].outcome == CREATED


def test_a_list_never_fails_for_records_that_are_forgotten_meanwhile(records):
    records.add(*(m(f"a{n}", "wolf") for n in range(100)))
    done = threading.Event()

    def come_and_go():
        try:
            for _ in range(40):
                records.add(*(m(f"z{n}", "fox") for n in range(20)))
                records.forget(*(f"z{n}" for n in range(20)))
        finally:
            done.set()

    with ThreadPoolExecutor(1) as other:
        going = other.submit(come_and_go)
        while not done.is_set():
            listed = records.listed(page_size=1_000)
            assert [one for one in listed if one.startswith("a")] == sorted(f"a{n}" for n in range(100))
        going.result()


def test_what_is_forgotten_leaves_the_disk_while_the_daemon_runs(daemon, own_records):
    own_records().add(m("m1", "xylophone"), m("m2", "wolf"))
    own_records().until_indexed(2)
    assert files_with(daemon.folder, b"xyloph")
    own_records().forget("m1")
    own_records().until_indexed(1)
    deadline = time.monotonic() + 10
    while files_with(daemon.folder, b"xyloph"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert own_records().found("wolf") == ["m2"]


def files_with(folder, word):
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "daemon.json"]
    return [path.name for path in files if word in path.read_bytes()]


def test_actors_that_only_have_records_are_listed(start_daemon, actor):
    records = Records(start_daemon().client, actor)
    records.add(m("m1", owner=records.other("a")), m("m2", owner=records.other("b")))
    listed = records.memory.ListActors(memory_pb2.ListActorsRequest(save_id=actor.save_id)).actors
    assert sorted((one.actor.actor_id, one.records) for one in listed) == [
        (records.other("a").actor_id, 1),
        (records.other("b").actor_id, 1),
    ]


def test_a_damaged_journal_is_data_loss_for_its_owner_alone(daemon, own_records):
    own_records().add(m("m1"), m("m2"))
    own_records().add(m("m1", "wolf"), actor=own_records().other("a"))
    daemon.stop()
    journal = next(path for path in daemon.folder.rglob("records.jsonl") if len(path.read_bytes().splitlines()) == 2)
    journal.write_bytes(journal.read_bytes().replace(b'"m1"', b'"mx"', 1))
    daemon.start()
    assert failure(lambda: own_records().get("m2")).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert failure(lambda: own_records().search("wolf")).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    assert own_records().found("wolf", own_records().other("a")) == ["m1"]


def test_a_damaged_journal_is_never_left_out_in_silence_also_where_the_index_is_lost(daemon, own_records):
    records = own_records()
    listener = common_pb2.Actor(save_id=records.actor.save_id, actor_id="a listener")
    records.add(m("m1", "wolf", audience=["*"]), m("m2", "wolf"))
    records.add(m("m1", "wolf"), actor=listener)
    daemon.stop()
    journal = next(path for path in daemon.folder.rglob("records.jsonl") if len(path.read_bytes().splitlines()) == 2)
    journal.write_bytes(journal.read_bytes().replace(b'"m1"', b'"mx"', 1))
    shutil.rmtree(daemon.folder / "index", ignore_errors=True)
    daemon.start()
    records, everything = own_records(), memory_pb2.RecordFilter()
    for call in (
        lambda: records.list(all_owners=True),
        lambda: records.forget(filter=everything, all_owners=True),
        lambda: retention(records, memory_pb2.RetentionPolicy(max_records=1)),
    ):
        assert failure(call).kind == ("DATA_LOSS", "STORAGE_CORRUPT")
    unbound = memory_pb2.GetRetentionRequest(save_id=records.actor.save_id)
    assert not records.memory.GetRetention(unbound).own
    assert records.listed(listener) == ["m1"]
    answer = records.search("wolf", listener)
    assert [hit.record.record_id for hit in answer.hits] == ["m1"]
    assert common_pb2.DEGRADED_REASON_INDEX_DAMAGED in answer.degraded_reasons
    assert records.found("wolf", listener, include_groups=False, include_shared=False) == ["m1"]
