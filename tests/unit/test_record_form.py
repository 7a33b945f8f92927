"""Rows of a journal from outside: what we write is taken, and all else refused, by the quick way and the long one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_samples import owner, record

from sidecar.errors import LorekeeperError
from sidecar.memory.moments import UNDATED, Moment
from sidecar.memory.owner_records import OwnerRecords, add_row, forget_row, numbered, share_row_of
from sidecar.memory.record_form import _PLAIN, RecordForm
from sidecar.memory.records import Authority, Kind, Share, ShareKind, content_hash, record_row
from sidecar.storage.json_file import as_written, dump

REFUSED = (LorekeeperError, KeyError, TypeError, ValueError, AttributeError, RecursionError)
TEXTS = st.text(max_size=20)
IDS = st.text(min_size=1, max_size=8)


def row(number=1, **head):
    one = record("m1", "the wolf", **head)
    return {"n": number, **add_row(record_row(one), content_hash(one), 7)}


def taken(*rows):
    form = RecordForm()
    for one in rows:
        form.take(dump(one))
    return form.ids


@given(
    text=TEXTS,
    importance=st.floats(0, 1),
    tags=st.lists(IDS, max_size=3),
    kind=st.sampled_from(Kind),
    authority=st.sampled_from(Authority),
    ordinal=st.none() | st.integers(-(2**31), 2**31 - 1),
    speaker=TEXTS,
    tick=st.integers(-(2**63), 2**63 - 1),
    pinned=st.booleans(),
)
def test_every_row_that_we_write_is_taken(text, **head):
    one = record("m1", text, **{**head, "tags": tuple(head["tags"])})
    assert taken({"n": 1, **add_row(record_row(one), content_hash(one), 7)}) == {"m1"}


def test_a_new_record_is_known_without_being_parsed():
    assert _PLAIN.fullmatch(dump(row(tags=("wolf", "wood"), speaker="mira", importance=0.25)))


def test_archived_turns_are_told_apart_and_may_be_undated():
    turn = record("m1", "hello", kind=Kind.TURN, authority=Authority.ARCHIVE, moment=UNDATED)
    form = RecordForm()
    form.take(dump({"n": 1, **add_row(record_row(turn), content_hash(turn), 7)}))
    assert form.ids == form.archived == {"m1"}
    form.take(dump({"n": 2, **forget_row(["m1"], 8)}))
    assert form.archived == set()


def test_shares_forgetting_and_a_compacted_end_are_taken():
    share = Share(owner("fox"), ShareKind.WITNESS, Moment("world", 1))
    assert taken(row(), {"n": 2, **share_row_of("m1", [share], 8)}) == {"m1"}
    assert taken(row(), {"n": 2, **forget_row(["m1"], 8)}, {"n": 5, "op": "end"}) == set()


def test_marks_of_what_is_gone_stand_first_and_are_texts():
    gone = {"n": 0, "op": "gone", "marks": ["a1"]}
    assert taken(gone, row()) == {"m1"}
    for refused in ([row(), gone], [{**gone, "n": 1}], [{**gone, "marks": [1]}]):
        with pytest.raises(REFUSED):
            taken(*refused)


def test_a_row_of_a_call_with_a_key_is_known_without_being_parsed():
    one = record("m1", "the wolf")
    assert _PLAIN.fullmatch(dump({"n": 1, **add_row(record_row(one), content_hash(one), 7, "a1b2")}))


FIELDS = [
    ({"n": 0}, {}),
    ({"n": True}, {}),
    ({"op": "rename"}, {}),
    ({"n": 2**63}, {}),
    ({"rev": "7"}, {}),
    ({"rev": 2**63}, {}),
    ({"hash": ""}, {}),
    ({"shares": [{"to": ["fox"], "kind": "rumour", "moment": ["world", 1]}]}, {}),
    ({}, {"id": ""}),
    ({}, {"id": 4}),
    ({}, {"scope": ["personal"]}),
    ({}, {"kind": "secret"}),
    ({}, {"moment": ["world"]}),
    ({}, {"moment": ["world", 2**63]}),
    ({}, {"moment": ["", 1]}),
    ({}, {"moment": ["world", 1.5]}),
    ({}, {"importance": 1.5}),
    ({}, {"importance": True}),
    ({}, {"importance": "0.5"}),
    ({}, {"payload": "{broken"}),
    ({}, {"payload": '{"a":1,"a":2}'}),
    ({}, {"payload": '{"a":1e999}'}),
    ({}, {"payload": '{"a":NaN}'}),
    ({}, {"payload": "[" * 200 + "]" * 200}),
    ({}, {"payload": r'{"a":"\ud800"}'}),
    ({}, {"text": 3}),
    ({}, {"tags": [1]}),
    ({}, {"expires": "later"}),
    ({}, {"authority": "king"}),
    ({}, {"metadata": {"a": 1}}),
    ({}, {"audience": [["fox"]]}),
    ({}, {"ordinal": 2**63}),
    ({}, {"pinned": 1}),
]


@pytest.mark.parametrize(("outside", "inside"), FIELDS)
def test_a_field_with_another_type_or_value_is_refused(outside, inside):
    whole = row()
    broken = {**whole, **outside, "record": {**whole["record"], **inside}}
    with pytest.raises(REFUSED):
        taken(broken)


@pytest.mark.parametrize(
    "data",
    [
        dump(row()).replace(b"the wolf", rb"the \ud800 wolf"),
        dump(row()).replace(b"the wolf", b"the \xff wolf"),
        dump(row()).replace(b'"rev":7', b'"rev":7,"rev":8'),
        dump(row()).replace(b'"importance":0.5', b'"importance":NaN'),
        dump(row()).replace(b'"importance":0.5', b'"importance":1e999'),
        dump(row()) + b"x",
        b'{"n":' + b"[" * 100_000,
        b"[]",
    ],
)
def test_bytes_that_we_never_write_are_refused(data):
    with pytest.raises(REFUSED):
        RecordForm().take(data)


def test_an_id_that_is_there_and_a_number_that_does_not_rise_are_refused():
    for further in (row(2), row(1), {"n": 2, **share_row_of("m2", [], 8)}):
        with pytest.raises(REFUSED):
            taken(row(), further)


def test_fields_of_somebody_who_comes_after_us_are_passed_over():
    later = row()
    later["record"]["mood"] = {"new": [1]}
    assert taken(later) == {"m1"}


PLAIN_PARTS = st.sampled_from([*'{}[]",:\\/ 09-.eEabnu', '"n"', '"text":', "\\u0041", "\x00", "é", "\ud800", "true"])


@given(at=st.integers(0, 400), cut=st.integers(0, 4), parts=st.lists(PLAIN_PARTS, max_size=4))
def test_whatever_passes_the_quick_way_passes_the_long_one_and_can_be_opened(at, cut, parts):
    data = dump(row(tags=("a", "b"), speaker="mira", source_input_id="i", ordinal=3))
    changed = data[:at] + "".join(parts).encode("utf-8", "surrogatepass") + data[at + cut :]
    form = RecordForm()
    try:
        form.take(changed)
    except REFUSED:
        return
    parsed = as_written(changed)
    assert parsed == json.loads(changed)
    RecordForm()._take(parsed)
    records = OwnerRecords("slot")
    records.apply(parsed)
    assert set(records.entries) == form.ids


def test_numbers_of_an_imported_journal_go_on():
    rows = numbered([add_row(record_row(record(name)), content_hash(record(name)), 1) for name in ("a", "b")], 4)
    assert taken(*rows) == {"a", "b"}
