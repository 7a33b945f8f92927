"""Rows C and F of the cases, and the faults of hybrid search, over a real socket with an embedding server F."""

import json
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import embedding_server
import grpc
import pytest
from client import failure
from fake_meaning import fake_meaning
from records_client import Records, m, wanted

from sidecar.gen.lorekeeper.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    common_pb2,
    embedding_pb2,
    embedding_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    role_pb2,
    save_pb2,
    save_pb2_grpc,
    search_pb2,
    system_pb2,
    system_pb2_grpc,
)

pytestmark = pytest.mark.embeds
READY, PENDING = memory_pb2.EMBEDDING_STATE_READY, memory_pb2.EMBEDDING_STATE_PENDING
VECTOR, LEXICAL = search_pb2.SEARCH_MODE_VECTOR, search_pb2.SEARCH_MODE_LEXICAL
CAT_QUERY = "cat"


def until(true, seconds: float = 15.0) -> None:
    """Return once ``true()``; fail where that never comes."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def degraded(answer) -> list[str]:
    names = [common_pb2.DegradedReason.Name(reason) for reason in answer.degraded_reasons]
    return [name.removeprefix("DEGRADED_REASON_") for name in names]


def stage_kinds(answer) -> list[str]:
    names = [search_pb2.SearchStageKind.Name(stage.kind) for stage in answer.stages]
    return [name.removeprefix("SEARCH_STAGE_KIND_") for name in names]


@pytest.fixture
def meaning():
    with fake_meaning() as server:
        yield server


@pytest.fixture
def house(meaning, start_daemon, actor):
    """A daemon that embeds with F; ``house(**settings)`` gives its records once the model is ready."""

    def start(**settings) -> Records:
        records = Records(start_daemon(*meaning.settings(**settings)).client, actor)
        until(lambda: records.status().HasField("identity"))
        return records

    return start


def all_ready(records, count: int) -> None:
    until(lambda: records.status().ready == count)


# C: what is found


def test_c1_a_record_is_found_by_what_it_means(house, meaning):
    records = house()
    assert records.add(m("m1", "A quiet feline watches the gate.")).records[0].embedding_state == PENDING
    all_ready(records, 1)
    answer = records.search(CAT_QUERY)
    (hit,) = answer.hits
    assert (hit.record.record_id, hit.record.embedding_state, answer.degraded) == ("m1", READY, False)
    assert meaning.texts() == ["A quiet feline watches the gate.", CAT_QUERY]
    assert answer.mode == search_pb2.SEARCH_MODE_HYBRID
    assert answer.identity.dimensions == 2


def test_a_record_is_found_by_its_words_before_it_has_its_vector(house, meaning):
    records = house()
    meaning.hangs = lambda asked: CAT_QUERY not in asked.texts
    records.add(m("m1", "the cat"))
    answer = records.search(CAT_QUERY)
    assert [hit.record.record_id for hit in answer.hits] == ["m1"]
    assert answer.hits[0].record.embedding_state == PENDING
    assert degraded(answer) == ["VECTORS_PENDING"]


def test_what_is_written_and_forgotten_while_the_model_thinks_of_the_query_counts(house, meaning):
    records = house()
    records.add(m("old", "the cat"), m("gone", "a cat"))
    all_ready(records, 2)
    meaning.hangs = lambda asked: "cat food" in asked.texts
    with ThreadPoolExecutor(1) as pool:
        search = pool.submit(records.found, "cat food")
        meaning.until_asked("cat food")
        records.add(m("new", "food"))
        records.forget("gone")
        meaning.released.set()
        assert sorted(search.result()) == ["new", "old"]


def test_c9_nothing_of_the_future_another_owner_or_another_save_is_found_by_meaning(house):
    records = house()
    records.add(m("visible", "feline", tick=2), m("future", "feline", tick=8))
    records.add(m("other", "feline"), actor=records.other("b"))
    records.add(m("elsewhere", "feline"), actor=records.other("a", "slot 2"))
    until(lambda: records.status().ready == 3)
    assert records.found(CAT_QUERY, filter=wanted(now=5), similarity_floor=0.5) == ["visible"]


def test_c12_the_stages_are_told_in_order_and_what_was_there_is_told_as_reused(house):
    records = house()
    records.add(m("m1", "feline"), m("m2", "bread"))
    all_ready(records, 2)
    records.search(CAT_QUERY, limit=9)
    answer = records.search(CAT_QUERY)
    assert stage_kinds(answer) == [
        "AUTHORITATIVE_SNAPSHOT",
        "LEXICAL_SEARCH",
        "EMBEDDING",
        "VECTOR_INDEX_READ",
        "VECTOR_SCORING",
        "FUSION",
        "RERANK",
    ]
    assert [stage.reused for stage in answer.stages] == [True, False, True, True, False, False, False]
    assert [(stage.scanned, stage.candidates) for stage in answer.stages[2:6]] == [(1, 1), (2, 2), (2, 2), (2, 2)]


def test_a_search_by_meaning_only_uses_no_words(house):
    records = house()
    records.add(m("cats", "feline"), m("words", "the word gate"))
    all_ready(records, 2)
    answer = records.search("cat gate", mode=VECTOR)
    assert {channel.channel for hit in answer.hits for channel in hit.channels} == {search_pb2.SEARCH_CHANNEL_VECTOR}
    assert [hit.record.record_id for hit in answer.hits] == ["cats", "words"]
    assert answer.fusion.lexical_weight == 0


def test_a_floor_leaves_out_what_only_meaning_found_and_is_not_similar(house):
    records = house()
    records.add(m("cats", "feline"), m("bread", "bread"), m("words", "cat-less gate"))
    all_ready(records, 3)
    assert records.found("feline gate", similarity_floor=0.5) == ["cats", "words"]
    assert len(records.found("feline gate")) == 3


def test_a_filter_of_one_in_a_hundred_still_gives_a_full_page_of_right_answers(house):
    records = house()
    records.add(*(m(f"m{n}", f"feline {n}", tags=["rare"] if n % 100 == 0 else []) for n in range(500)))
    all_ready(records, 500)
    answer = records.search(CAT_QUERY, limit=5, filter=wanted(tags=["rare"]))
    assert {hit.record.record_id for hit in answer.hits} == {f"m{n}" for n in range(0, 500, 100)}


def test_a_reciprocal_rank_query_tells_ranks_and_the_formula_holds(house):
    records = house()
    records.add(m("a", "cat gate"), m("b", "feline"), m("c", "gate"))
    all_ready(records, 3)
    fusion = search_pb2.FusionOptions(mode=search_pb2.FUSION_MODE_RRF)
    answer = records.search("cat gate", fusion=fusion, rerank=search_pb2.RerankOptions(enabled=False))
    assert answer.fusion.rrf_k == 60
    best = answer.hits[0]
    assert best.record.record_id == "a"
    assert best.score == pytest.approx(sum(1 / (60 + channel.rank) for channel in best.channels))
    assert not best.HasField("rerank")


@pytest.mark.parametrize("mode", [search_pb2.FUSION_MODE_RRF, search_pb2.FUSION_MODE_WEIGHTED])
@pytest.mark.parametrize("count", [4, 300])
def test_what_the_channels_of_a_hit_tell_adds_up_to_its_fused_score(house, mode, count):
    records = house()
    records.add(m("z", "bread cold"), *(m(f"m{n}", f"feline {n}") for n in range(count)))
    all_ready(records, count + 1)
    answer = records.search("cat bread", limit=8, similarity_floor=0.5, fusion=search_pb2.FusionOptions(mode=mode))
    for hit in answer.hits:
        assert sum(said.weight * said.normalized for said in hit.channels) == pytest.approx(hit.fused_score)
    if mode == search_pb2.FUSION_MODE_RRF:
        told = [sum(1 / (60 + said.rank) for said in hit.channels) for hit in answer.hits]
        assert told == pytest.approx([hit.fused_score for hit in answer.hits])


def test_recency_counts_with_a_half_life_and_scaling_time_changes_nothing(house):
    orders = []
    records = house()
    for scale, name in ((1, "short"), (1_000, "long")):
        who = records.other(name)
        records.add(*(m(f"m{n}", "the cat", tick=n * scale) for n in range(1, 9)), actor=who)
        rerank = search_pb2.RerankOptions(half_life_ticks=2 * scale)
        orders.append(records.found("cat", who, filter=wanted(now=8 * scale), rerank=rerank))
    assert orders[0] == orders[1]
    assert orders[0][0] == "m8"


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("fusion.rrf_k", {"fusion": search_pb2.FusionOptions(rrf_k=0.5)}),
        ("fusion.vector_weight", {"fusion": search_pb2.FusionOptions(vector_weight=101)}),
        ("rerank.half_life_ticks", {"rerank": search_pb2.RerankOptions(half_life_ticks=0)}),
        ("rerank.max_greedy_selections", {"rerank": search_pb2.RerankOptions(max_greedy_selections=5_000)}),
        ("similarity_floor", {"similarity_floor": 1.5}),
        ("similarity_floor", {"similarity_floor": float("nan")}),
        ("mode", {"mode": 9}),
    ],
)
def test_an_option_out_of_its_range_is_refused(shared_daemon, actor, field, more):
    failed = failure(lambda: Records(shared_daemon.client, actor).search("x", **more))
    assert (failed.kind, failed.fields) == (("INVALID_ARGUMENT", "FIELD_INVALID"), (field,))


def test_an_explanation_tells_channels_fusion_and_order(house):
    records = house()
    records.add(m("m1", "the cat", tick=3))
    all_ready(records, 1)
    (hit,) = records.search("cat", explain=True).hits
    for part in ("words ", "meaning ", "Fused", "Reranked", "'cat' x1"):
        assert part in hit.explanation.text
    assert hit.explanation.age_ticks == 97


# C: what goes wrong with the model


def test_c3_a_model_that_never_answers_costs_neither_writes_nor_the_answer(house, meaning):
    records = house(search__query_embedding_seconds=0.05)
    meaning.hangs = lambda _asked: True
    begun = time.monotonic()
    records.add(m("m1", "the cat"))
    answer = records.search("cat")
    assert time.monotonic() - begun < 2
    assert [hit.record.record_id for hit in answer.hits] == ["m1"]
    assert degraded(answer) == ["EMBEDDING_TIMEOUT"]
    assert answer.mode == LEXICAL


def test_c4_a_stuck_text_keeps_its_place_so_that_texts_do_not_pile_up_and_queries_have_their_own(house, meaning):
    records = house(search__query_embedding_seconds=0.1)
    meaning.hangs = lambda _asked: True
    records.add(m("m1", "one"))
    meaning.until_asked("one")
    records.add(m("m2", "two"))
    assert degraded(records.search("cat")) == ["EMBEDDING_TIMEOUT"]
    assert meaning.texts() == ["one", "cat"]


def test_a_model_that_fails_is_told_and_require_semantic_makes_it_an_error(house, meaning):
    records = house()
    records.add(m("m1", "the cat"))
    all_ready(records, 1)
    meaning.down = True
    assert degraded(records.search("a cat")) == ["EMBEDDING_FAILED"]
    assert failure(lambda: records.search("a cat", require_semantic=True)).code.name == "UNAVAILABLE"
    assert failure(lambda: records.search("a cat", mode=VECTOR)).code.name == "UNAVAILABLE"
    assert records.search("a cat", mode=LEXICAL).degraded is False


def test_a_query_that_is_too_large_for_the_model_is_told_and_require_semantic_makes_it_an_error(house):
    records = house(embedding__max_request_bytes=1_024)
    records.add(m("m1", "feline"))
    all_ready(records, 1)
    text = "feline " * 200
    answer = records.search(text)
    assert ([hit.record.record_id for hit in answer.hits], degraded(answer)) == (["m1"], ["EMBEDDING_FAILED"])
    for more in ({"mode": VECTOR}, {"require_semantic": True}):
        failed = failure(lambda more=more: records.search(text, **more))
        assert (failed.kind, failed.fields) == (("INVALID_ARGUMENT", "FIELD_TOO_LONG"), ("text",))
        assert failed.metadata["limit"] == "embedding.max_request_bytes"


def test_what_a_model_did_not_read_of_a_query_is_told_in_its_own_unit(house):
    records = house(embedding__max_text_chars=10)
    records.add(m("m1", "feline"))
    all_ready(records, 1)
    (cut,) = records.search("a cat and a dog").cuts
    assert (cut.what, cut.unit, cut.kept, cut.dropped) == ("query_meaning", "code_points", 10, 5)
    assert "embedding.max_text_chars" in cut.detail


def test_a_search_that_looks_at_no_vectors_tells_nothing_of_them(house):
    records = house()
    records.add(m("m1", "feline"))
    all_ready(records, 1)
    (hit,) = records.search("feline", mode=LEXICAL).hits
    assert hit.record.embedding_state == memory_pb2.EMBEDDING_STATE_UNSPECIFIED
    (hit,) = records.search("feline").hits
    assert hit.record.embedding_state == READY


def test_figures_count_what_waits_in_the_background_and_what_needed_no_embedding(house, meaning):
    records = house(search__embedding_batch=2)
    stub = embedding_pb2_grpc.EmbeddingServiceStub(records.channel)

    def figures():
        told = stub.GetEmbeddingStats(embedding_pb2.GetEmbeddingStatsRequest())
        return told.background_pending, told.vector_cache_hits

    meaning.hangs = lambda _asked: True
    records.add(*(m(f"m{number}", f"text {number}") for number in range(5)))
    meaning.until_asked("text")
    assert figures() == (5, 0)
    meaning.released.set()
    all_ready(records, 5)
    until(lambda: figures() == (0, 0))
    records.add(m("again", "text 3"))
    assert figures()[1] == 1


def test_a_server_that_gives_no_numbers_for_once_costs_no_vector(house, meaning):
    records = house()
    nothing = {"data": [{"index": 0, "embedding": None}]}
    meaning.server.replies += [lambda _asked, handler: embedding_server.answer(handler, nothing)] * 3
    records.add(m("m1", "feline"))
    all_ready(records, 1)


def test_the_search_tool_tells_the_game_that_it_found_less_than_it_could(house, meaning):
    records = house()
    records.add(m("m1", "the cat"))
    all_ready(records, 1)
    meaning.down = True
    response = records.call_tool("search_game_memory", {"text": CAT_QUERY})
    assert (response.succeeded, response.degraded_reason) == (True, common_pb2.DEGRADED_REASON_EMBEDDING_FAILED)
    assert [memory["memoryId"] for memory in json.loads(response.result_json)["memories"]] == ["m1"]
    meaning.down = False
    response = records.call_tool("search_game_memory", {"text": CAT_QUERY})
    assert response.degraded_reason == common_pb2.DEGRADED_REASON_UNSPECIFIED


def test_a_query_while_the_model_loads_is_answered_by_words(meaning, start_daemon, actor):
    meaning.hangs = lambda _asked: True
    records = Records(start_daemon(*meaning.settings()).client, actor)
    assert records.add(m("m1", "the cat")).records[0].embedding_state in (PENDING, memory_pb2.EMBEDDING_STATE_NONE)
    until(lambda: degraded(records.search("cat")) == ["MODEL_LOADING"])
    assert failure(lambda: records.search("cat", require_semantic=True)).kind == (
        "FAILED_PRECONDITION",
        "MODEL_LOADING",
    )
    meaning.hangs = lambda _asked: False
    meaning.released.set()
    all_ready(records, 1)
    assert not records.search("cat").degraded


def test_a_model_that_could_not_be_loaded_is_told_as_that(meaning, start_daemon, actor):
    meaning.down = True
    records = Records(start_daemon(*meaning.settings()).client, actor)
    until(lambda: degraded(records.search("cat")) == ["MODEL_FAILED"])
    assert records.status().degraded_reason == common_pb2.DEGRADED_REASON_MODEL_FAILED


def test_one_text_that_fails_costs_its_own_vector_only(house, meaning):
    meaning.spoils = {"poison"}
    records = house()
    records.add(*(m(f"m{n}", f"feline {n}") for n in range(9)), m("bad", "poison"))
    all_ready(records, 9)
    assert records.get("bad").embedding_state in (PENDING, memory_pb2.EMBEDDING_STATE_FAILED)
    until(lambda: records.get("bad").embedding_state == memory_pb2.EMBEDDING_STATE_FAILED)
    assert records.found("poison", mode=LEXICAL) == ["bad"]
    meaning.spoils = set()
    records.rebuild(vectors=True)
    assert records.get("bad").embedding_state == READY


def test_a_text_on_which_the_model_takes_too_long_costs_its_own_vector_only(house, meaning):
    records = house(embedding__inference_seconds=0.2)
    meaning.hangs = lambda asked: "slow" in asked.texts
    records.add(m("slow", "slow"), *(m(f"m{n}", f"feline {n}") for n in range(5)))
    all_ready(records, 5)
    until(lambda: records.get("slow").embedding_state == memory_pb2.EMBEDDING_STATE_FAILED)
    meaning.hangs = lambda _asked: False
    assert records.rebuild(vectors=True)[-1].failed == 0
    assert records.get("slow").embedding_state == READY


def test_an_outage_is_waited_for_and_nothing_is_given_up(house, meaning):
    records = house()
    meaning.down = True
    records.add(*(m(f"m{n}", f"feline {n}") for n in range(40)))
    until(lambda: len(meaning.server.asked) > 2)
    meaning.down = False
    all_ready(records, 40)


# C6, C7: status and rebuild


def test_c6_records_from_before_the_model_are_pending_and_embedded_once_it_is_there(meaning, make_daemon, actor):
    daemon = make_daemon().start()
    records = Records(daemon.client, actor)
    records.add(m("m1", "A quiet feline watches the gate."))
    status = records.status()
    assert (status.state, status.pending, status.degraded_reason) == (
        search_pb2.INDEX_STATE_DEGRADED,
        1,
        common_pb2.DEGRADED_REASON_NO_MODEL,
    )
    daemon.stop()
    records = Records(make_daemon(*meaning.settings(), folder=daemon.folder).start().client, actor)
    all_ready(records, 1)
    assert records.status().state == search_pb2.INDEX_STATE_READY
    assert not records.status().requires_rebuild
    assert records.found(CAT_QUERY, similarity_floor=0.5) == ["m1"]


def test_c6_an_empty_save_is_empty(house):
    assert house().status().state == search_pb2.INDEX_STATE_EMPTY


def test_c7_what_is_added_while_a_rebuild_runs_keeps_its_vector(house, meaning):
    records = house()
    meaning.hangs = lambda asked: "feline 0" in asked.texts
    records.add(m("existing", "feline 0"))
    until(lambda: len(meaning.server.asked) == 2)
    with ThreadPoolExecutor(1) as threads:
        rebuilt = threads.submit(records.rebuild)
        records.add(m("concurrent", "feline 1"))
        assert set(records.found("feline", mode=LEXICAL)) == {"existing", "concurrent"}
        meaning.released.set()
        rebuilt.result(20)
    all_ready(records, 2)
    assert sorted(meaning.texts()) == ["feline 0", "feline 1"]


def test_a_rebuild_tells_phases_and_skips_what_is_ready(house, meaning):
    records = house()
    records.add(*(m(f"m{n}", f"feline {n}") for n in range(70)))
    all_ready(records, 70)
    steps = records.rebuild()
    phases = [search_pb2.RebuildPhase.Name(step.phase).removeprefix("REBUILD_PHASE_") for step in steps]
    assert list(dict.fromkeys(phases)) == ["TERMS", "CLEANUP", "VECTORS", "DONE"]
    vectors = [step for step in steps if step.phase == search_pb2.REBUILD_PHASE_VECTORS][-1]
    assert (vectors.total, vectors.done, vectors.skipped, vectors.failed) == (70, 70, 70, 0)
    assert len(meaning.texts()) == 70
    records.rebuild(vectors=True, force=True)
    assert len(meaning.texts()) == 140


def test_vectors_of_another_identity_are_stale_never_mixed_and_replaced_behind(meaning, make_daemon, actor):
    daemon = make_daemon(*meaning.settings()).start()
    records = Records(daemon.client, actor)
    records.add(m("m1", "feline"), m("m2", "bread"))
    all_ready(records, 2)
    daemon.stop()
    meaning.hangs = lambda asked: "feline" in asked.texts
    settings = meaning.settings(embedding__openai_version=2)
    again = make_daemon(*settings, folder=daemon.folder).start()
    records = Records(again.client, actor)
    until(lambda: records.status().HasField("identity"))
    status = records.status()
    assert (status.state, status.stale, status.ready) == (search_pb2.INDEX_STATE_REBUILD_REQUIRED, 2, 0)
    answer = records.search("feline gate")
    assert "VECTORS_STALE" in degraded(answer)
    assert {channel.channel for hit in answer.hits for channel in hit.channels} == {search_pb2.SEARCH_CHANNEL_LEXICAL}
    meaning.released.set()
    all_ready(records, 2)
    assert not records.search("feline gate").degraded


def test_the_same_text_is_embedded_once_for_all_saves_and_owners(house, meaning):
    records = house()
    for place in range(3):
        records.add(m("m1", "feline"), actor=records.other(f"a{place}", f"slot {place}"))
    until(lambda: meaning.texts().count("feline") == 1)
    records.add(m("again", "feline"))
    until(lambda: records.get("again").embedding_state == READY)
    assert meaning.texts() == ["feline"]


def test_embedding_goes_on_after_a_kill_and_repeats_little(meaning, make_daemon, actor):
    daemon = make_daemon(*meaning.settings(search__embedding_batch=8)).start()
    records = Records(daemon.client, actor)
    records.add(*(m(f"m{n}", f"feline {n}") for n in range(200)))
    until(lambda: len(meaning.texts()) > 40)
    daemon.kill()
    records = Records(daemon.restart().client, actor)
    all_ready(records, 200)
    assert len(meaning.texts()) <= 200 + 2 * 8 + 2


def test_an_owner_with_many_records_does_not_keep_others_waiting(house, meaning):
    records = house(search__embedding_batch=16)
    meaning.hangs = lambda asked: len(meaning.server.asked) == 2
    records.add(*(m(f"m{n}", f"long {n}") for n in range(400)))
    until(lambda: len(meaning.server.asked) == 2)
    records.add(m("m1", "feline"), actor=records.other("short"))
    time.sleep(0.1)
    meaning.released.set()
    until(lambda: "feline" in meaning.texts())
    assert meaning.texts().index("feline") < 200


# C10, C13: a derived file that is damaged or gone


def spoil(folder, sql, *values):
    with sqlite3.connect(folder / "index" / "vectors.sqlite3") as database:
        database.execute(sql, values)
    database.close()


@pytest.fixture
def with_a_vector(meaning, make_daemon, actor):
    """A daemon that is not running, with one record whose vector is stored."""
    daemon = make_daemon(*meaning.settings()).start()
    records = Records(daemon.client, actor)
    records.add(m("m1", "feline"))
    all_ready(records, 1)
    daemon.stop()
    return daemon


@pytest.fixture
def with_damaged_vector(meaning, make_daemon, actor):
    """Two records, of which the vector of one was overwritten while the daemon was not running."""

    def records_after(value):
        daemon = make_daemon(*meaning.settings()).start()
        records = Records(daemon.client, actor)
        records.add(m("m1", "feline"), m("m2", "bread"))
        all_ready(records, 2)
        daemon.stop()
        spoil(daemon.folder, "UPDATE vectors SET value = ? WHERE id = 1", value)
        records = Records(daemon.restart().client, actor)
        until(lambda: records.status().HasField("identity"))
        return records

    return records_after


@pytest.mark.parametrize(
    ("value", "told"),
    [(b"\x00" * 8, True), (b"\x00\x00\xc0\x7f" * 2, True), (b"\x00" * 5, False), (b"", False)],
    ids=["zero", "nan", "length", "empty"],
)
def test_a_damaged_vector_is_left_out_told_and_made_again(with_damaged_vector, value, told):
    records = with_damaged_vector(value)
    answer = records.search("cat bread")
    assert len(answer.hits) >= 1
    assert not told or "INDEX_DAMAGED" in degraded(answer)
    all_ready(records, 2)
    until(lambda: not records.search("cat bread").degraded)


def test_a_vector_that_is_damaged_between_two_looks_at_the_status_is_counted(meaning, start_daemon, actor):
    daemon = start_daemon(*meaning.settings())
    records = Records(daemon.client, actor)
    records.add(m("m1", "feline"), m("m2", "bread"))
    all_ready(records, 2)
    assert (records.status().ready, records.status().damaged) == (2, 0)
    spoil(daemon.folder, "UPDATE vectors SET value = ? WHERE id = 1", b"\x00" * 8)
    assert (records.status().ready, records.status().damaged) == (1, 1)


@pytest.mark.parametrize("value", [b"\x00" * 8, b"\x00\x00\xc0\x7f" * 2], ids=["zero", "nan"])
def test_c6_c7_damaged_vectors_are_counted_and_made_again_by_a_rebuild(with_damaged_vector, value):
    records = with_damaged_vector(value)
    status = records.status()
    assert (status.total, status.ready, status.pending, status.stale, status.damaged) == (2, 1, 1, 0, 1)
    assert (status.state, status.requires_rebuild) == (search_pb2.INDEX_STATE_DEGRADED, True)
    (*_, done) = records.rebuild(vectors=True)
    assert (done.skipped, done.failed) == (1, 0)
    status = records.status()
    assert (status.ready, status.damaged, status.requires_rebuild) == (2, 0, False)
    assert not records.search("cat bread").degraded


def test_c10_c13_vectors_that_are_garbled_or_deleted_are_made_again(with_a_vector, actor):
    daemon = with_a_vector
    (daemon.folder / "index" / "vectors.sqlite3").write_bytes(b"{broken")
    records = Records(daemon.restart().client, actor)
    assert records.found("feline") == ["m1"]
    all_ready(records, 1)
    daemon.stop()
    for path in (daemon.folder / "index").iterdir():
        path.unlink()
    records = Records(daemon.restart().client, actor)
    assert records.found("feline") == ["m1"]
    all_ready(records, 1)


def test_a_vector_file_of_somebody_else_is_thrown_away_told_and_made_again(with_a_vector, actor):
    daemon = with_a_vector
    for path in (daemon.folder / "index").glob("vectors*"):
        path.unlink()
    spoil(daemon.folder, "CREATE TABLE vectors (id)")
    records = Records(daemon.restart().client, actor)
    assert records.found("feline") == ["m1"]
    all_ready(records, 1)
    assert records.found(CAT_QUERY) == ["m1"]
    assert "vectors_thrown_away" in daemon.stderr


def test_records_whose_vectors_could_not_be_looked_up_are_embedded_once_they_can(with_a_vector, actor):
    daemon = with_a_vector
    cache = daemon.folder / "index" / "vectors.sqlite3"
    cache.unlink()
    cache.mkdir()
    daemon.start()
    records = Records(daemon.client, actor)
    until(lambda: degraded(records.search(CAT_QUERY)) == ["INDEX_UNAVAILABLE"])
    until(lambda: "embedding_paused" in daemon.stderr)
    cache.rmdir()
    all_ready(records, 1)


def test_c16_more_rows_than_may_be_compared_are_searched_by_words(house):
    records = house(search__max_compared=3)
    records.add(*(m(f"m{n}", f"feline {n}") for n in range(4)))
    all_ready(records, 4)
    answer = records.search("feline")
    assert (len(answer.hits), degraded(answer)) == (4, ["SCAN_LIMIT"])
    (read,) = [stage for stage in answer.stages if stage.kind == search_pb2.SEARCH_STAGE_KIND_VECTOR_INDEX_READ]
    assert (read.scanned, read.candidates, read.reused) == (len(records.list().records), 0, False)
    told = failure(lambda: records.search(CAT_QUERY, require_semantic=True))
    assert told.kind == ("UNAVAILABLE", "VECTORS_UNAVAILABLE")
    assert told.metadata["degraded"] == "SCAN_LIMIT"


def test_what_is_forgotten_or_erased_leaves_no_vector_behind(house, meaning):
    records = house()
    other = records.other("b")
    records.add(m("m1", "feline"), m("m2", "only mine"))
    records.add(m("m1", "feline"), actor=other)
    until(lambda: records.status().ready == 3)
    folder = meaning_folder(records)
    records.forget("m1", "m2")
    until(lambda: count_vectors(folder) == 1)
    records.memory.EraseActor(memory_pb2.EraseActorRequest(actor=other))
    until(lambda: count_vectors(folder) == 0)


def meaning_folder(records):
    stub = system_pb2_grpc.SystemServiceStub(records.channel)
    return stub.GetInfo(system_pb2.GetInfoRequest()).data_dir


def count_vectors(folder) -> int:
    database = sqlite3.connect(f"file:{folder}/index/vectors.sqlite3?mode=ro", uri=True)
    try:
        return database.execute("SELECT count(*) FROM vectors").fetchone()[0]
    finally:
        database.close()


# owners erased and saves restored under a search


@contextmanager
def searching(ask, *, threads: int = 3):
    """Asks again and again; what was answered, and the codes of calls that were ended, once it is over."""
    answers, ended, over = [], [], threading.Event()

    def ask_on():
        while not over.is_set():
            try:
                answers.append(ask())
            except grpc.RpcError as error:
                ended.append(error.code().name)

    with ThreadPoolExecutor(threads) as pool:
        asking = [pool.submit(ask_on) for _ in range(threads)]
        try:
            until(lambda: len(answers) > threads)
            yield answers, ended
        finally:
            over.set()
        for one in asking:
            one.result()


def test_an_owner_that_is_erased_while_it_is_searched_leaves_whole_answers(house):
    records = house()
    records.add(*(m(f"m{n}", f"feline {n}") for n in range(200)))
    all_ready(records, 200)
    with searching(lambda: records.search("feline", limit=200)) as (answers, ended):
        records.memory.EraseActor(memory_pb2.EraseActorRequest(actor=records.actor))
        until(lambda: not answers[-1].hits)
    assert {len(answer.hits) for answer in answers} == {0, 200}
    assert not any("INDEX_DAMAGED" in degraded(answer) for answer in answers)
    assert set(ended) <= {"ABORTED", "FAILED_PRECONDITION"}


def test_an_owner_that_is_erased_while_others_search_what_it_shared_leaves_the_rest(house):
    records = house()
    witness = records.other("witness")
    records.add(*(m(f"own{n}", f"feline {n}") for n in range(30)), actor=witness)
    records.add(*(m(f"m{n}", f"feline {n}", audience=["*"]) for n in range(30)))
    all_ready(records, 60)
    with searching(lambda: records.search("feline", witness, limit=200)) as (answers, ended):
        records.memory.EraseActor(memory_pb2.EraseActorRequest(actor=records.actor))
        until(lambda: len(answers[-1].hits) == 30)
    assert {len(answer.hits) for answer in answers} == {30, 60}
    assert set(ended) <= {"ABORTED", "FAILED_PRECONDITION"}


def test_a_save_that_is_restored_while_it_is_searched_answers_from_one_epoch(house):
    records = house()
    saves = save_pb2_grpc.SaveServiceStub(records.channel)
    slot = {"save_id": records.actor.save_id}
    records.add(*(m(f"old{n}", f"feline {n}") for n in range(60)))
    kept = saves.CreateCheckpoint(save_pb2.CreateCheckpointRequest(**slot)).checkpoint.checkpoint_id
    records.add(*(m(f"new{n}", f"feline {60 + n}") for n in range(60)))
    all_ready(records, 120)
    with searching(lambda: records.search("feline", limit=200)) as (answers, ended):
        for _ in range(4):
            saves.RestoreCheckpoint(save_pb2.RestoreCheckpointRequest(checkpoint_id=kept, **slot))
        until(lambda: answers[-1].save.epoch == 4)
    for answer in answers:
        found = {hit.record.record_id for hit in answer.hits}
        assert len(found) == (60 if answer.save.epoch else 120)
        assert not answer.save.epoch or not any(record_id.startswith("new") for record_id in found)
    assert set(ended) <= {"ABORTED", "FAILED_PRECONDITION"}


# near duplicates


def test_a_record_that_says_nearly_the_same_is_flagged_never_dropped(house):
    records = house()
    records.add(m("first", "a feline"))
    all_ready(records, 1)
    records.add(m("second", "the cat"), m("goal", "cat", kind=memory_pb2.RECORD_KIND_GOAL), m("bread", "bread"))
    all_ready(records, 4)
    until(lambda: records.get("second").near_duplicate_of == "first")
    assert records.get("goal").near_duplicate_of == records.get("bread").near_duplicate_of == ""
    assert records.get("first").near_duplicate_of == ""
    near = {hit.record.record_id: hit.record.near_duplicate_of for hit in records.search("cat").hits}
    assert near == {"first": "", "second": "first", "goal": "", "bread": ""}
    records.forget("first")
    assert {hit.record.near_duplicate_of for hit in records.search("cat").hits} == {""}


def test_a_text_that_was_embedded_before_is_flagged_in_the_answer(house):
    records = house()
    records.add(m("first", "a feline"))
    all_ready(records, 1)
    (added,) = records.add(m("second", "a feline")).records
    assert (added.embedding_state, added.near_duplicate_of) == (READY, "first")
    (added,) = records.add(m("third", "a feline"), near_duplicate_threshold=0).records
    assert added.near_duplicate_of == ""


# F: observability


def test_a_watcher_is_told_of_a_search_that_is_answered_from_before_too(house):
    records = house()
    records.add(m("m1", "wolf"))
    all_ready(records, 1)
    while not all(stage.reused for stage in records.search("wolf", mode=LEXICAL).stages):
        pass
    stub = system_pb2_grpc.SystemServiceStub(records.channel)
    watch = stub.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(codes=["search_completed"]))
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(next, watch)
        until(lambda: records.search("wolf", mode=LEXICAL) and first.done())
        details = first.result().diagnostic.details
    watch.cancel()
    assert (details["hits"], details["mode"], details["words.reused"]) == ("1", "LEXICAL", "true")


def test_f_a_search_is_told_to_watchers_with_stages_and_without_content(house):
    records = house()
    records.add(m("secret id", "the feline secret"))
    all_ready(records, 1)
    stub = system_pb2_grpc.SystemServiceStub(records.channel)
    watch = stub.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest())
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(lambda: next(one for one in watch if one.diagnostic.code == "search_completed"))
        until(lambda: records.search("secret") and first.done())
        diagnostic = first.result().diagnostic
    watch.cancel()
    for name in ("embedding.ms", "vectors_compared.scanned", "words.candidates", "rerank.ms"):
        assert name in diagnostic.details
    assert "secret" not in str(diagnostic)


@pytest.mark.parametrize("text", ["...", "?!", "\u0301"])
@pytest.mark.parametrize("mode", [search_pb2.SEARCH_MODE_HYBRID, VECTOR])
def test_a_text_without_a_letter_a_digit_or_a_sign_finds_nothing_by_meaning_either(house, meaning, text, mode):
    records = house()
    records.add(m("m1", "feline"))
    all_ready(records, 1)
    assert records.found(text, mode=mode) == []
    assert meaning.texts() == ["feline"]


def test_a_rebuild_of_vectors_is_told_while_it_runs(house, meaning):
    records = house(search__index_delay_seconds=30)
    meaning.hangs = lambda asked: "feline" in asked.texts
    records.add(m("m1", "feline"))
    steps = records.stub.RebuildIndex(search_pb2.RebuildIndexRequest(save_id=records.actor.save_id))
    next(step for step in steps if step.phase == search_pb2.REBUILD_PHASE_VECTORS)
    assert records.status().rebuilding
    meaning.released.set()
    assert list(steps)[-1].phase == search_pb2.REBUILD_PHASE_DONE
    assert not records.status().rebuilding


def test_a_watcher_is_told_who_searched(house):
    records = house()
    records.add(m("m1", "feline"))
    stub = system_pb2_grpc.SystemServiceStub(records.channel)
    watch = stub.WatchDiagnostics(system_pb2.WatchDiagnosticsRequest(after_sequence=0, codes=["search_completed"]))
    now = common_pb2.Moment(timeline_id="main", tick=9)
    chat = chat_pb2_grpc.ChatServiceStub(records.channel)
    recall = role_pb2.RecallOptions(mode=LEXICAL)
    line = chat_pb2.TurnInput(text="feline", moment=now, recall=recall, backend_id="offline")
    tool = memory_pb2.CallToolRequest(
        actor=records.actor, name="search_game_memory", arguments_json='{"text": "feline"}', moment=now
    )
    records.search("feline", mode=LEXICAL)
    chat.BuildPrompt(chat_pb2.BuildPromptRequest(actor=records.actor, input=line))
    memory_pb2_grpc.MemoryServiceStub(records.channel).CallTool(tool)
    told = [next(watch).diagnostic.details["asked_by"] for _ in range(3)]
    watch.cancel()
    assert told == ["call", "prompt", "tool"]
