"""The whole search, from journals to hits in order, equals a brute-force reference of the documented formulas."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from record_samples import House, owner, record
from search_reference import Row, reference_order

from sidecar.embedding.identity import EmbeddingIdentity, text_hash
from sidecar.memory.moments import Moment
from sidecar.memory.record_filter import RecordFilter
from sidecar.memory.records import Kind, searched_text
from sidecar.search.meaning import Meaning
from sidecar.search.options import Fusion, GivenWeights, Mode, Options
from sidecar.search.recall import Query, Recall
from sidecar.search.rerank import RerankOptions
from sidecar.search.ways import MOST_PLAIN, ways_for
from sidecar.search.words import embedded_text
from sidecar.storage.session_disk import SessionDisk

NPC, OTHER = owner("npc"), owner("other")
IDENTITY = EmbeddingIdentity("test", "fake", "1", 2)
QUERY_VECTOR = np.array([1.0, 0.0], np.float32)
TEXTS = ["wolf", "wolf at the gate", "gate gate", "the bread", "häuser am tor", "狼の森", "wolves"]
QUERIES = ["wolf", "wolves at the gate", "bread wolf", "狼", "hauser", "nothing of it"]
WEIGHT = st.none() | st.sampled_from([0.0, 0.3, 1.0, 4.0])


@dataclass(frozen=True)
class Given:
    """A record, whose it is, and the direction of its vector in hundredths of a turn (None: it has none)."""

    who: object
    record: object
    turn: int | None


@st.composite
def given_records(draw):
    count = draw(st.integers(0, 12))
    found = []
    for number in range(count):
        talk = draw(st.sampled_from(["", "", "first", "second"]))
        found.append(
            Given(
                draw(st.sampled_from([NPC, NPC, OTHER])),
                record(
                    f"m{number}",
                    f"{draw(st.sampled_from(TEXTS))} {number}",
                    kind=draw(st.sampled_from([Kind.FACT, Kind.GOAL])),
                    moment=Moment("world", draw(st.integers(0, 4))),
                    importance=draw(st.sampled_from([0.0, 0.5, 0.51, 1.0])),
                    tags=tuple(sorted(draw(st.sets(st.sampled_from("ab"))))),
                    conversation_id=talk,
                    ordinal=draw(st.integers(0, 8)) if talk else None,
                    speaker=draw(st.sampled_from(["", "Ada"])),
                ),
                draw(st.none() | st.integers(0, 99)),
            )
        )
    return found


options = st.builds(
    Options,
    mode=st.sampled_from(list(Mode)),
    fusion=st.sampled_from(list(Fusion)),
    rrf_k=st.sampled_from([1.0, 60.0]),
    given=st.builds(GivenWeights, WEIGHT, WEIGHT, WEIGHT, WEIGHT),
    floor=st.none() | st.sampled_from([-0.5, 0.0, 0.7]),
    order=st.none()
    | st.builds(
        RerankOptions,
        source_order_weight=st.sampled_from([0, 1_000_000]),
        importance_weight=st.sampled_from([0, 100_000, 5_000_000]),
        recency_weight=st.sampled_from([0, 500_000]),
        diversity_penalty=st.sampled_from([0, 10_000, 900_000]),
        half_life_ticks=st.none() | st.sampled_from([1, 3]),
        max_greedy_selections=st.sampled_from([1, 3, 512]),
    ),
)
filters = st.builds(
    RecordFilter,
    kinds=st.frozensets(st.sampled_from([Kind.FACT, Kind.GOAL]), max_size=1),
    tags=st.frozensets(st.sampled_from("ab"), max_size=1),
    at_or_before=st.none() | st.builds(Moment, st.just("world"), st.integers(0, 5)),
    minimum_importance=st.sampled_from([0.0, 0.5]),
)


@settings(max_examples=300)
@given(given_records(), filters, options, st.sampled_from(QUERIES), st.integers(0, 14), st.none() | st.integers(0, 5))
def test_hits_and_their_order_equal_the_reference(all_given, wanted, options, text, limit, replaced_at):
    house = House(SessionDisk(Path("/session")))
    for one in all_given:
        house.store.add("session", [(one.who, one.record)])
    if all_given and replaced_at is not None:
        first = all_given[0]
        house.store.supersede(first.who, "m0", record("successor", "wolf", moment=Moment("world", replaced_at)))
        stored = house.store.get(first.who, "successor").record
        all_given = [*all_given, Given(first.who, stored, None)]
    vectors = {text_hash(embedded_text(one.record)): direction(one.turn) for one in all_given if one.turn is not None}
    house.feed.put(IDENTITY, vectors)

    query = Query(NPC, [NPC, OTHER], text, wanted, limit, options=options)
    meaning = Meaning(identity=IDENTITY, vector=QUERY_VECTOR)
    found, in_columns = house.recall.run(query, meaning), recall_in_columns(house).run(query, meaning)

    analyzer = house.words.analyzer("session")
    since = {"m0": replaced_at}
    visible = [
        one
        for one in all_given
        if wanted.passes(one.record.head, superseded_since=since.get(one.record.head.record_id))
    ]
    rows = [reference_row(one, analyzer) for one in visible]
    expected = reference_order(analyzer.query(text).words, rows, options, now=wanted.at_or_before)[:limit]
    assert [(hit.stored.owner, hit.stored.record.head.record_id) for hit in found.hits] == [
        (visible[index].who, visible[index].record.head.record_id) for index in expected
    ]
    assert [told(hit) for hit in in_columns.hits] == [told(hit) for hit in found.hits]
    assert steps(in_columns) == steps(found)
    beside = house.recall.run(query, meaning, house.recall.by_words(query))
    assert (beside.hits, steps(beside)) == (found.hits, steps(found))
    house.close()


def recall_in_columns(house) -> Recall:
    """As many rows are ranked."""
    parts = (house.store, house.groups, house.saves, house.words, house.views, house.matrices)
    return Recall(*parts, ways=lambda _rows: ways_for(MOST_PLAIN + 1))


def told(hit):
    """All that is told of a hit, numbers as exactly as they are compared."""
    channels = [(said.name, said.rank, round(said.score, 8), round(said.normalised, 8)) for said in hit.channels]
    return hit._replace(score=round(hit.score, 8), fused_score=round(hit.fused_score, 8), channels=channels)


def steps(recalled):
    return [(step.stage, step.scanned, step.candidates) for step in recalled.stages], recalled.weights


def direction(turn: int) -> np.ndarray:
    angle = 2 * np.pi * turn / 100
    return np.array([np.cos(angle), np.sin(angle)], np.float32)


def reference_row(one: Given, analyzer) -> Row:
    head = one.record.head
    talk = (one.who.actor, head.conversation_id) if head.conversation_id else None
    return Row(
        words=analyzer.analyse(searched_text(one.record)).words,
        similarity=None if one.turn is None else float(np.float32(direction(one.turn) @ QUERY_VECTOR)),
        conversation=talk,
        ordinal=head.ordinal or 0,
        owner=one.who.actor,
        head=head,
    )


def test_the_reference_itself_tells_orders_apart():
    """A reference that calls every order right would prove nothing."""
    head = record("a").head
    rows = [
        Row(words=[("wolf",)], owner="npc", head=head),
        Row(words=[("wolf",), ("wolf",)], owner="npc", head=replace(head, record_id="b")),
        Row(words=[("bread",)], owner="npc", head=replace(head, record_id="c")),
    ]
    assert reference_order([("wolf",)], rows, Options(mode=Mode.LEXICAL), now=None) == [1, 0]
