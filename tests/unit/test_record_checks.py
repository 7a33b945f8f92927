"""Every limit of a new record is checked, and the error names the field."""

import math
from dataclasses import replace

import pytest
from record_samples import owner, record

from sidecar.errors import InvalidInput, Reason
from sidecar.memory.moments import Moment
from sidecar.memory.record_checks import checked_record
from sidecar.memory.records import Kind, Record, Share, ShareKind, content_hash, searched_text
from sidecar.settings import RecordSettings

LIMITS = RecordSettings()
GOOD = record("m1", "the wolf", tick=5)


def checked(given: Record) -> Record:
    return checked_record(given, "records[0]", LIMITS)


def with_head(**head) -> Record:
    return replace(GOOD, head=replace(GOOD.head, **head))


def test_tags_are_sorted_and_counted_once():
    assert checked(with_head(tags=("wolf", "den", " wolf "))).head.tags == ("den", "wolf")
    assert len(checked(with_head(tags=tuple(f"t{n % 256}" for n in range(512)))).head.tags) == 256


def test_ids_are_trimmed_and_may_hold_any_other_text():
    assert checked(with_head(record_id=" ../🐺:con ", scope=" x ")).head.record_id == "../🐺:con"


def test_512_code_points_fit_an_id():
    assert checked(with_head(record_id="🐺" * 512))


def test_an_expiry_at_the_moment_itself_is_allowed():
    assert checked(with_head(expires=Moment("world", 5))).head.expires == Moment("world", 5)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (with_head(record_id="x" * 513), "record_id"),
        (with_head(record_id="a\x00b"), "record_id"),
        (with_head(record_id="a\nb"), "record_id"),
        (with_head(record_id="\ud800"), "record_id"),
        (with_head(scope=""), "scope"),
        (with_head(scope=" \t"), "scope"),
        (with_head(kind=Kind.TURN), "kind"),
        (with_head(importance=math.nan), "importance"),
        (with_head(importance=math.inf), "importance"),
        (with_head(importance=-math.inf), "importance"),
        (with_head(importance=1.0000001), "importance"),
        (with_head(importance=-0.1), "importance"),
        (with_head(moment=Moment("", 1)), "moment.timeline_id"),
        (with_head(moment=Moment("world", 2**63)), "moment.tick"),
        (with_head(moment=Moment("world", 1, "{")), "moment.calendar_json"),
        (with_head(expires=Moment("dream", 9)), "expires_at"),
        (with_head(expires=Moment("world", 4)), "expires_at"),
        (with_head(tags=("",)), "tags[0]"),
        (with_head(tags=tuple(map(str, range(257)))), "tags"),
        (with_head(audience=("a\x1fb",)), "audience[0]"),
        (with_head(source_input_id="x" * 513), "source_input_id"),
        (replace(GOOD, payload="{"), "payload_json"),
        (replace(GOOD, payload='{"a":1,"a":2}'), "payload_json"),
        (replace(GOOD, payload="[" * 129 + "]" * 129), "payload_json"),
        (replace(GOOD, payload='"' + "x" * 10_000_000 + '"'), "payload_json"),
        (replace(GOOD, text="x" * 1_000_001), "searchable_text"),
        (replace(GOOD, text="\udfff"), "searchable_text"),
        (replace(GOOD, metadata={str(n): "" for n in range(257)}), "metadata"),
        (replace(GOOD, metadata={" ": ""}), "metadata"),
        (replace(GOOD, metadata={"x" * 257: ""}), "metadata"),
        (replace(GOOD, metadata={"x": "y" * 65_537}), "metadata"),
        (replace(GOOD, shares=(Share(owner("a"), ShareKind.WITNESS, Moment("world", 4)),)), "shares[0].moment"),
        (
            replace(GOOD, shares=(Share(owner("a"), ShareKind.HEARSAY, Moment("world", 9), confidence=math.nan),)),
            "shares[0].confidence",
        ),
    ],
)
def test_what_breaks_a_limit_is_refused(given, field):
    with pytest.raises(InvalidInput) as caught:
        checked(given)
    assert caught.value.field == f"records[0].{field}"


@pytest.mark.parametrize("payload", ["1", "null", '"wolf"', "[]", '{"a":[{"b":null}]}'])
def test_a_payload_is_any_json_value_and_kept_as_it_was_written(payload):
    assert checked(replace(GOOD, payload=f" {payload}\n")).payload == f" {payload}\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [('{"a":1,"b":2.50}', '{ "b": 2.5, "a": 1.0 }'), ('"\\u732b"', '"猫"')],
)
def test_payloads_that_say_the_same_are_the_same_content(one, other):
    assert content_hash(replace(GOOD, payload=one)) == content_hash(replace(GOOD, payload=other))


@pytest.mark.parametrize(
    "other",
    [
        with_head(scope="public"),
        with_head(kind=Kind.EVENT),
        with_head(importance=0.6),
        with_head(moment=Moment("world", 6)),
        with_head(moment=Moment("world", 5, '{"day":1}')),
        with_head(tags=("a",)),
        with_head(expires=Moment("world", 9)),
        with_head(source_input_id="i"),
        with_head(ordinal=0),
        with_head(pinned=True),
        with_head(audience=("*",)),
        replace(GOOD, payload='{"text":"the wolves"}'),
        replace(GOOD, text="the Wolf"),
        replace(GOOD, metadata={"a": "b"}),
    ],
)
def test_any_other_field_makes_other_content(other):
    assert content_hash(other) != content_hash(GOOD)


def test_what_is_searched_are_texts_decoded_and_tags_never_names():
    given = replace(with_head(tags=("tag",)), payload='{"name":"\\u732b","list":["den",1,{"key":"moss"}]}', text="wolf")
    assert searched_text(given) == "wolf\n猫\nden\nmoss\ntag"


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (replace(GOOD, payload='"' + "x" * 10_000_000 + '"'), ("records.max_payload_chars", "10000000")),
        (replace(GOOD, text="x" * 1_000_001), ("records.max_text_chars", "1000000")),
        (with_head(tags=tuple(f"t{n}" for n in range(257))), ("records.max_tags", "256")),
        (with_head(audience=tuple(f"g{n}" for n in range(257))), ("records.max_audience", "256")),
        (replace(GOOD, metadata={str(n): "" for n in range(257)}), ("records.max_metadata", "256")),
        (replace(GOOD, metadata={"x" * 257: ""}), ("records.max_metadata_key_chars", "256")),
        (replace(GOOD, metadata={"x": "y" * 65_537}), ("records.max_metadata_value_chars", "65536")),
    ],
)
def test_a_limit_that_is_hit_is_told_by_name_and_value(given, limit):
    with pytest.raises(InvalidInput) as caught:
        checked(given)
    assert (caught.value.metadata["limit"], caught.value.metadata["value"]) == limit
    assert caught.value.reason in {Reason.FIELD_TOO_LONG, Reason.TOO_MANY_ITEMS}


def test_tags_are_sorted_by_their_utf_16():
    assert checked(with_head(tags=("\uff5e", "\U0001f43a", "b", "a"))).head.tags == ("a", "b", "\U0001f43a", "\uff5e")
