"""Search answers exactly what the rules say: who may know what, as of when, in which order, and why."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_samples import House, house_on, owner, record

from sidecar.errors import Corrupt, Denied
from sidecar.memory.groups import Group
from sidecar.memory.moments import Moment
from sidecar.memory.record_filter import RecordFilter
from sidecar.memory.records import Kind, Share, ShareKind
from sidecar.search.access import Access, allowed_owners
from sidecar.search.options import Mode, Options
from sidecar.search.outcome import Degraded, Stage
from sidecar.search.recall import Query, Recall
from sidecar.search.rerank import RerankOptions, rerank
from sidecar.settings import SearchSettings
from sidecar.storage.keys import ActorId, actor_folder
from sidecar.storage.session_disk import SessionDisk

NPC, OTHER, THIEF = owner("npc"), owner("other"), owner("thief")
NOW = Moment("world", 100)


@pytest.fixture
def house(tmp_path):
    return house_on(tmp_path)


def add(house, *records, who=NPC):
    house.store.add(who.save, [(who, one) for one in records])


def find(house, text="", who=NPC, *, owners=(), limit=10, explain=False, groups=True, shared=True, **wanted):
    wanted = RecordFilter(**{"at_or_before": NOW, **wanted})
    query = Query(who, owners or [who], text, wanted, limit, groups=groups, shared=shared, explain=explain)
    return house.recall.run(query)


def ids(recalled) -> list[str]:
    return [hit.stored.entry.head.record_id for hit in recalled.hits]


# what is found


def test_an_added_record_is_found_at_once_and_before_it_is_indexed(house):
    add(house, record("m1", "the wolf"))
    assert ids(find(house, "wolves")) == ["m1"]
    add(house, record("m2", "a wolf pack"))
    assert ids(find(house, "wolves")) == ["m1", "m2"]


def test_what_was_superseded_or_forgotten_is_not_found_from_then_on(house):
    add(house, record("old", "the wolf"), record("gone", "wolf"))
    assert len(find(house, "wolf").hits) == 2
    house.store.supersede(NPC, "old", record("new", "the wolf is dead"))
    house.store.forget(NPC, ["gone"])
    assert ids(find(house, "wolf")) == ["new"]
    assert set(ids(find(house, "wolf", include_superseded=True))) == {"old", "new"}


def test_each_query_sees_its_own_owner_only(house):
    add(house, record("mine", "wolf"))
    add(house, record("other", "wolf"), who=OTHER)
    add(house, record("elsewhere", "wolf"), who=owner("npc", save="other save"))
    assert ids(find(house, "wolf")) == ["mine"]


def test_several_owners_are_searched_in_one_query(house):
    add(house, record("mine", "wolf"))
    add(house, record("theirs", "wolf"), who=OTHER)
    found = find(house, "wolf", owners=[NPC, OTHER])
    assert [(hit.stored.owner, hit.known.access) for hit in found.hits] == [(NPC, Access.OWN), (OTHER, Access.SOURCE)]


def test_an_owner_that_is_not_among_the_sources_is_denied():
    assert allowed_owners(NPC, [], []) == [NPC]
    assert allowed_owners(NPC, [OTHER, NPC, OTHER], [OTHER]) == [OTHER, NPC]
    with pytest.raises(Denied) as caught:
        allowed_owners(NPC, [NPC, OTHER], [THIEF])
    assert caught.value.field == "owners[1]"


def test_an_empty_text_asks_for_everything_by_importance_then_newest_first(house):
    add(house, record("a", "x", tick=1, importance=0.5), record("b", "y", tick=2, importance=0.9))
    add(house, record("c", "z", tick=3, importance=0.5))
    assert ids(find(house)) == ["b", "c", "a"]


@pytest.mark.parametrize("text", ["...", "?!", " ", "the of and", "\u0301", '""', "*"])
def test_a_text_without_a_searchable_word_finds_nothing(house, text):
    add(house, record("m1", "the wolf"))
    assert find(house, text).hits == []


@pytest.mark.parametrize("text", ['wolf" OR "bear', "wolf AND NOT den", "wolf*", "NEAR(wolf)", "{wolf}:x", "a'; DROP"])
def test_operators_and_quotes_are_text(house, text):
    add(house, record("wolf", "a wolf"), record("moss", "some moss"))
    assert ids(find(house, text)) == (["wolf"] if "wolf" in text else [])


def test_names_in_a_payload_are_not_searched_but_tags_and_decoded_texts_are(house):
    given = replace(record("m1", tags=("quest",)), payload='{"secretkey":"\\u732b sleeps"}')
    add(house, given)
    assert ids(find(house, "secretkey")) == []
    assert ids(find(house, "猫")) == ids(find(house, "sleep")) == ids(find(house, "quest")) == ["m1"]


def test_a_selective_filter_still_gives_a_full_page(house):
    add(house, *(record(f"m{n}", "wolf", tags=("rare",) if n % 100 == 0 else ()) for n in range(500)))
    assert len(find(house, "wolf", limit=5, tags=frozenset({"rare"})).hits) == 5


def test_the_filter_text_narrows_by_substring_in_any_case(house):
    add(house, record("m1", "Wolfram the smith"), record("m2", "a wolf"))
    assert ids(find(house, text="", minimum_importance=0)) == ["m1", "m2"]
    found = house.recall.run(Query(NPC, [NPC], "", RecordFilter(at_or_before=NOW, text="WOLFR"), 10))
    assert ids(found) == ["m1"]


# order and account


def test_words_are_scored_by_bm25_and_importance_moves_near_equal_hits_only(house):
    """A4 with our own rule: importance is no part of the words' score, it belongs to reranking."""
    add(house, record("one", "orchard", importance=1.0), record("three", "orchard orchard orchard", importance=0.1))
    add(house, record("none", "market", importance=0.9))
    found = find(house, "orchard")
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))

    def bm25(frequency, length):
        return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / (5 / 3)))

    scores = {hit.stored.entry.head.record_id: hit.channels[0].score for hit in found.hits}
    assert scores == pytest.approx({"one": bm25(1, 1), "three": bm25(3, 3)})
    assert ids(found)[0] == "three"  # it answers clearly better


def test_importance_reorders_near_equal_hits(house):
    add(house, record("dull", "the wolf came at night", importance=0.0, tick=2))
    add(house, record("dear", "the wolf came at night", importance=1.0, tick=1))
    assert ids(find(house, "wolf")) == ["dear", "dull"]


def test_counts_are_taken_over_what_may_be_seen(house):
    add(house, record("m1", "wolf"), record("m2", "bear"))
    alone = find(house, "wolf").hits[0].score
    add(house, *(record(f"future {n}", "wolf", tick=101) for n in range(20)))
    add(house, *(record(f"m {n}", "wolf") for n in range(20)), who=OTHER)
    assert find(house, "wolf").hits[0].score == alone


def test_equal_hits_are_ordered_by_tick_then_owner_then_id(house):
    add(house, record("b", "wolf"), record("a", "wolf"), record("late", "wolf", tick=2))
    add(house, record("a", "wolf"), who=OTHER)
    found = find(house, "wolf", owners=[OTHER, NPC])
    order = [(hit.stored.owner.actor, hit.stored.entry.head.record_id) for hit in found.hits]
    assert order == [("npc", "late"), ("npc", "a"), ("npc", "b"), ("other", "a")]
    for limit in range(1, 4):
        assert ids(find(house, "wolf", owners=[NPC, OTHER], limit=limit)) == [name for _, name in order][:limit]


def test_the_stages_tell_what_was_looked_at(house):
    add(house, *(record(f"m{n}", "wolf", tick=n) for n in range(8)))
    add(house, *(record(f"m{n}", "wolf") for n in range(9)), who=OTHER)
    snapshot, words, fusion, rerank = find(house, "wolf", at_or_before=Moment("world", 5)).stages
    assert (snapshot.scanned, snapshot.candidates, snapshot.reused) == (8, 8, False)
    assert [(stage.scanned, stage.candidates) for stage in (words, fusion, rerank)] == [(8, 6), (6, 6), (6, 6)]
    assert find(house, "wolf").stages[0].reused


def test_an_explanation_names_the_words_and_what_they_were_worth(house):
    add(house, record("m1", "the wolf hunts at night"), record("m2", "night"))
    hit = find(house, "wolves at night", explain=True).hits[0]
    assert {(word.term, word.frequency, word.records) for word in hit.explained} == {("wolf", 1, 1), ("night", 1, 2)}
    assert sum(word.score for word in hit.explained) == pytest.approx(hit.channels[0].score)


def test_a_limit_of_nothing_finds_nothing(house):
    add(house, record("m1", "wolf"))
    assert find(house, "wolf", limit=0).hits == []


# groups, witnesses, hearsay

GUARDS = ("faction:guards",)
GUARD, GUARD_2 = owner("guard 1"), owner("guard 2", role="Merchant")


def members(*who: ActorId) -> tuple[ActorId, ...]:
    return tuple(one._replace(role="") for one in who)


def put_guards(house, *who, **more):
    house.groups.put("session", [Group("faction:guards", members=members(*who), **more)], [])


def test_what_is_addressed_to_a_group_is_recalled_by_its_members_alone(house):
    add(house, record("m1", "the gate code", audience=GUARDS))
    put_guards(house, GUARD, GUARD_2)
    for guard in (GUARD, GUARD_2):
        (hit,) = find(house, "gate", who=guard).hits
        assert (hit.known.access, hit.known.group_id, hit.stored.owner) == (Access.GROUP, "faction:guards", NPC)
    assert find(house, "gate", who=THIEF).hits == []


def test_membership_counts_when_the_query_runs(house):
    add(house, record("m1", "the gate code", audience=GUARDS))
    put_guards(house, GUARD)
    assert find(house, "gate", who=GUARD_2).hits == []
    put_guards(house, GUARD_2)
    assert ids(find(house, "gate", who=GUARD_2)) == ["m1"]
    assert find(house, "gate", who=GUARD).hits == []


def test_everybody_recalls_what_is_addressed_to_everybody(house):
    add(house, record("m1", "the king is dead", audience=("*",)), record("m2", "the king snores"))
    assert ids(find(house, "king", who=THIEF)) == ["m1"]
    assert find(house, "king", who=owner("thief", save="other save")).hits == []


def test_a_group_may_weigh_its_records(house):
    add(house, record("m1", "gate", audience=GUARDS, importance=0.5))
    put_guards(house, GUARD, recall_weight=2.0)
    plain = find(house, "gate", who=NPC).hits[0].reranked.importance
    assert find(house, "gate", who=GUARD).hits[0].reranked.importance == 2 * plain


@pytest.mark.parametrize(("kind", "access"), [(ShareKind.WITNESS, Access.WITNESS), (ShareKind.HEARSAY, Access.HEARSAY)])
def test_who_was_there_or_was_told_recalls_it_from_that_moment_on(house, kind, access):
    add(house, record("m1", "the robbery", tick=10))
    house.store.share(NPC, "m1", [Share(THIEF, kind, Moment("world", 20), confidence=0.5)])
    assert find(house, "robbery", who=THIEF, at_or_before=Moment("world", 19)).hits == []
    (hit,) = find(house, "robbery", who=THIEF, at_or_before=Moment("world", 20)).hits
    assert (hit.known.access, hit.known.share.confidence) == (access, 0.5)
    assert find(house, "robbery", who=GUARD).hits == []
    assert find(house, "robbery", who=THIEF, shared=False).hits == []


def test_shared_records_are_known_again_after_a_restart(house):
    add(house, record("m1", "the robbery"), record("m2", "the gate", audience=GUARDS))
    house.store.share(NPC, "m1", [Share(THIEF, ShareKind.WITNESS, Moment("world", 1))])
    put_guards(house, GUARD)
    for again in (house.again(), (house.index_now(), house.again())[1]):
        assert ids(find(again, "robbery", who=THIEF)) == ["m1"]
        assert ids(find(again, "gate", who=GUARD)) == ["m2"]


def test_an_unreadable_owner_is_left_out_of_what_it_shares_and_told(house):
    add(house, record("m1", "robbery", audience=("*",)), record("m2", "robbery", audience=("*",)))
    add(house, record("mine", "robbery"), who=THIEF)
    house.index_now()
    journal = actor_folder(house.disk.root, NPC) / "records.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"rev"', b'"rex"', 1))
    again = house.again()
    found = find(again, "robbery", who=THIEF)
    assert ids(found) == ["mine"]
    assert Degraded.INDEX_DAMAGED in found.degraded
    with pytest.raises(Corrupt):
        find(again, "robbery")


# bounds


def test_views_are_kept_within_bounds_and_come_back(tmp_path):
    house = house_on(tmp_path)
    house.views._limits = SearchSettings(max_cached_views=16, max_cached_rows=1_000)
    owners = [owner(f"npc {n}") for n in range(40)]
    for who in owners:
        add(house, record("m1", "wolf"), who=who)
    for who in owners * 2:
        assert ids(find(house, "wolf", who=who)) == ["m1"]
    assert len(house.views._views) == 16


def test_a_view_is_made_anew_when_most_of_it_is_forgotten(house):
    add(house, *(record(f"m{n}", "wolf") for n in range(200)))
    assert len(find(house, "wolf", limit=500).hits) == 200
    house.store.forget(NPC, [f"m{n}" for n in range(150)])
    assert len(find(house, "wolf", limit=500).hits) == 50
    find(house, "wolf")
    assert len(house.views.of(house.store.owner_at_hand(NPC))[0].entries) == 50


# properties

ticks = st.integers(-3, 3)
timelines = st.sampled_from(["world", "dream"])
moments = st.builds(Moment, timelines, ticks)


@st.composite
def records(draw, number):
    moment = draw(moments)
    lasts = draw(st.none() | st.integers(0, 3))
    return record(
        f"m{number}",
        draw(st.sampled_from(["wolf", "wolf den", "bear", "wolf wolf bear", "", "狼の森"])),
        kind=draw(st.sampled_from([Kind.FACT, Kind.GOAL])),
        scope=draw(st.sampled_from(["personal", "public"])),
        moment=moment,
        importance=draw(st.sampled_from([0.0, 0.5, 1.0])),
        tags=tuple(sorted(draw(st.sets(st.sampled_from("ab"))))),
        expires=None if lasts is None else Moment(moment.timeline, moment.tick + lasts),
        audience=draw(st.sampled_from([(), GUARDS])),
    )


filters = st.builds(
    RecordFilter,
    scopes=st.frozensets(st.sampled_from(["personal", "public"]), max_size=1),
    kinds=st.frozensets(st.sampled_from([Kind.FACT, Kind.GOAL]), max_size=1),
    tags=st.frozensets(st.sampled_from("ab"), max_size=1),
    at_or_before=st.none() | moments,
    include_expired=st.booleans(),
    include_superseded=st.booleans(),
    minimum_importance=st.sampled_from([0.0, 0.5]),
)


@settings(max_examples=80)
@given(st.data(), filters, st.sampled_from(["wolf", "wolves bear", "狼", "", "..."]), st.integers(0, 12))
def test_search_finds_what_a_plain_filter_finds_and_nothing_else(data, wanted, text, limit):
    house = House(SessionDisk(Path("/session")))
    given_records = [data.draw(records(number)) for number in range(data.draw(st.integers(0, 10)))]
    for number, one in enumerate(given_records):
        add(house, one, who=NPC if number % 3 else OTHER)
    if data.draw(st.booleans()):
        find(house, "warm")
    gone = data.draw(st.sets(st.sampled_from(range(10)), max_size=3))
    for number in gone:
        house.store.forget(NPC, [f"m{number}"])
    if len(given_records) > 1 and 1 not in gone:
        house.store.supersede(NPC, "m1", record("successor", "wolf", moment=data.draw(moments)))
    if data.draw(st.booleans()):
        house.store.forget(NPC, ["successor"])
    put_guards(house, NPC)

    analyzer = house.words.analyzer("session")
    asked = {term for word in analyzer.query(text).words for term in word}
    expected = set()
    for who in (NPC, OTHER):
        with house.store.opened(who) as opened:
            for entry in opened.records().entries.values():
                visible = who == NPC or entry.head.audience == GUARDS
                if visible and wanted.passes(entry.head, superseded_since=entry.superseded_since):
                    row = next(house.words.rows(opened, [entry]))
                    if not text or asked & set(row.terms.split(" ")):
                        expected.add((who, entry.head.record_id))

    found = house.recall.run(Query(NPC, [NPC], text, wanted, 100))
    keys = [(hit.stored.owner, hit.stored.entry.head.record_id) for hit in found.hits]
    assert set(keys) == expected
    assert len(keys) == len(expected)
    cut = house.recall.run(Query(NPC, [NPC], text, wanted, limit))
    assert ids(cut) == [key[1] for key in keys][:limit]


@settings(max_examples=150)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.text(st.characters(exclude_categories=["Cs"]))
)
def test_no_text_breaks_a_search_and_a_record_is_found_by_its_own_words(text, query):
    house = House(SessionDisk(Path("/session")))
    add(house, record("m1", text))
    find(house, query)
    words = house.words.analyzer("session").query(text).words
    assert ids(find(house, text)) == (["m1"] if words or not text else [])


def test_a_record_too_long_to_be_kept_in_memory_is_read_again_each_time(house):
    add(house, record("long", "wolf " * 10_000), record("short", "wolf"))
    for _ in range(2):
        found = find(house, "wolf")
        assert {hit.stored.entry.head.record_id: len(hit.stored.record.text) for hit in found.hits} == {
            "long": 50_000,
            "short": 4,
        }
    with house.store.opened(NPC) as owner:
        kept = [house.store.remembered(owner, hit.stored.entry) is not None for hit in found.hits]
    assert sorted(kept) == [False, True]


# what words found while the model was asked


@pytest.mark.parametrize(
    "change",
    [
        lambda house: add(house, record("m2", "a wolf pack"), who=GUARD),
        lambda house: house.store.forget(GUARD, ["m1"]),
        lambda house: house.store.supersede(GUARD, "m1", record("m3", "the wolf is dead")),
        lambda house: add(house, record("m4", "wolf", audience=GUARDS), who=NPC),
        lambda house: put_guards(house, GUARD, recall_weight=0.5),
        lambda house: put_guards(house, GUARD_2),
    ],
    ids=["added", "forgotten", "superseded", "addressed", "weighed", "excluded"],
)
def test_what_words_found_counts_only_where_nothing_of_it_has_changed_since(house, change):
    put_guards(house, GUARD)
    add(house, record("m1", "the wolf"), who=GUARD)
    add(house, record("told", "the wolf", importance=0.9, audience=GUARDS), who=OTHER)
    options = Options(mode=Mode.LEXICAL)
    query = Query(GUARD, [GUARD], "wolf", RecordFilter(at_or_before=NOW), 10, options=options)
    before, earlier = house.recall.run(query), house.recall.by_words(query)
    assert house.recall.run(query, earlier=earlier).hits == before.hits
    change(house)
    assert house.recall.run(query, earlier=earlier).hits == house.recall.run(query).hits


def test_what_words_found_with_meaning_in_view_is_found_anew_where_there_is_none(house):
    add(house, record("m1", "the wolf"), record("m2", "the wolf and the wolf"))
    query = Query(NPC, [NPC], "wolf", RecordFilter(at_or_before=NOW), 10, options=Options(mode=Mode.VECTOR))
    assert house.recall.run(query, earlier=house.recall.by_words(query)).hits == house.recall.run(query).hits


# the order for the game


def reranked_by(house, reranker) -> Recall:
    return Recall(house.store, house.groups, house.saves, house.words, house.views, house.matrices, reranker=reranker)


def test_no_more_hits_are_chosen_one_by_one_than_are_wanted(house):
    add(house, *(record(f"m{n}", "wolf", importance=n / 100) for n in range(40)))
    order = RerankOptions(source_order_weight=0)
    query = Query(NPC, [NPC], "wolf", RecordFilter(), 3, options=Options(mode=Mode.LEXICAL, order=order))
    chosen = []

    def reranker(candidates, options, *, now):
        chosen.append((len(candidates), options.max_greedy_selections))
        return rerank(candidates, options, now=now)

    assert ids(reranked_by(house, reranker).run(query)) == ["m39", "m38", "m37"]
    assert chosen == [(40, 3)]


def test_a_reranker_that_fails_leaves_the_fused_order_and_that_is_told(house):
    add(house, record("m1", "the wolf"), record("m2", "wolf wolf", importance=0.1), record("m3", "the wolf pack"))
    fused = Query(NPC, [NPC], "wolf", RecordFilter(), 10, options=Options(mode=Mode.LEXICAL, order=None))
    asked = replace(fused, options=Options(mode=Mode.LEXICAL))

    def reranker(candidates, options, *, now):
        raise RuntimeError("no order")

    recalled = reranked_by(house, reranker).run(asked)
    assert recalled.degraded == [Degraded.RERANKER_FAILED]
    assert recalled.hits == house.recall.run(fused).hits
    assert [stage.stage for stage in recalled.stages][-1] is Stage.FUSION
