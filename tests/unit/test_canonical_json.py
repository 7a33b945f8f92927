"""JSON texts are compared by what they say, as RFC 8785 has it."""

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.errors import InvalidInput
from sidecar.memory.canonical_json import canonical, parse, string_leaves


def test_the_example_of_the_rfc_has_its_canonical_form():
    text = r"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical(parse(text, "payload")) == expected


def test_names_are_sorted_by_utf16_code_units():
    value = dict.fromkeys(["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"], 0)
    assert list(json.loads(canonical(value))) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (0x0000000000000000, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7FEFFFFFFFFFFFFF, "1.7976931348623157e+308"),
        (0x4340000000000000, "9007199254740992"),
        (0x4430000000000000, "295147905179352830000"),
        (0x44B52D02C7E14AF5, "9.999999999999997e+22"),
        (0x44B52D02C7E14AF6, "1e+23"),
        (0x444B1AE4D6E2EF4E, "999999999999999700000"),
        (0x444B1AE4D6E2EF50, "1e+21"),
        (0x3EB0C6F7A0B5ED8C, "9.999999999999997e-7"),
        (0x3EB0C6F7A0B5ED8D, "0.000001"),
        (0x41B3DE4355555553, "333333333.3333332"),
        (0xBECBF647612F3696, "-0.0000033333333333333333"),
        (0x43143FF3C1CB0959, "1424953923781206.2"),
    ],
)
def test_the_numbers_of_the_rfc_are_written_as_it_says(bits, expected):
    assert canonical(struct.unpack(">d", bits.to_bytes(8, "big"))[0]) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[2]}', ' { "b" : [ 2.0 ], "a" : 1e0 } '),
        ('"\\u732b"', '"猫"'),
        ("100000000000000000000", "1e20"),
        ("-0", "0"),
    ],
)
def test_texts_that_say_the_same_are_equal(one, other):
    assert canonical(parse(one, "payload")) == canonical(parse(other, "payload"))


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", '"1"'), ("[1,2]", "[2,1]"), ("9007199254740992", "9007199254740993"), ('"é"', '"e\u0301"'), ("0", "false")],
)
def test_texts_that_say_something_else_are_not_equal(one, other):
    assert canonical(parse(one, "payload")) != canonical(parse(other, "payload"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nope",
        "[1,]",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        '{"a":1,"a":1}',
        '[{"b":{"a":1,"a":2}}]',
        "[" * 129 + "]" * 129,
        "[" * 200_000,
        '"\\ud800"',
        "1" * 5_000,
    ],
)
def test_what_is_not_acceptable_json_is_refused_with_the_name_of_the_field(text):
    with pytest.raises(InvalidInput) as caught:
        parse(text, "records[3].payload_json")
    assert caught.value.field == "records[3].payload_json"


def test_128_levels_are_allowed():
    text = '{"a":' * 128 + "1" + "}" * 128
    assert canonical(parse(text, "payload")) == text


def test_the_string_leaves_are_decoded_and_names_are_not_among_them():
    value = parse('{"name":"\\u732b","deep":[{"x":"wolf"},1,true,null,"den"]}', "payload")
    assert list(string_leaves(value)) == ["猫", "wolf", "den"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_reads_back_the_same(number):
    assert float(canonical(number)) == number


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(json_values)
def test_the_canonical_form_does_not_change_when_it_is_made_again(value):
    text = canonical(value)
    assert canonical(parse(text, "payload")) == text


def test_a_number_that_is_not_finite_has_no_canonical_form():
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="finite"):
            canonical(value)
