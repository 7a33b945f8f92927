"""JSON texts compared by what they say: strict reading, and the canonical form of RFC 8785.

Two texts that differ only in white space, key order, escapes or the spelling of a number have one canonical form.
Whole numbers that no double can hold keep all their digits (the RFC would round them): different content must never
look equal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from sidecar.errors import InvalidInput, Reason
from sidecar.storage.json_file import unique_names
from sidecar.storage.keys import ordinal

MAX_DEPTH = 128
_quoted = json.JSONEncoder(ensure_ascii=False).encode


def parse(text: str, field: str) -> Any:
    """The value of ``text``. Raises InvalidInput for what is not JSON, a name that stands twice in one object, a
    number that is not finite, a lone surrogate, or more than 128 levels."""
    try:
        value = _DECODER.decode(text)
        if _may_be_odd(text):
            canonical(value).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise _invalid(field) from error
    return value


def _may_be_odd(text: str) -> bool:
    """Whether a text may have too many levels, or a lone surrogate."""
    return not text.isascii() or "\\u" in text or text.count("[") + text.count("{") > MAX_DEPTH


def canonical(value: Any) -> str:
    """The one text of a value; ValueError where it has none (not finite, too deep)."""
    parts: list[str] = []
    _write(value, parts, 0)
    return "".join(parts)


def string_leaves(value: Any) -> Iterator[str]:
    """The strings of a value in the order of the text, decoded; names of objects are not among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from string_leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from string_leaves(item)


def _write(value: Any, parts: list[str], depth: int) -> None:
    if isinstance(value, str):
        parts.append(_quoted(value))
    elif value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, int | float):
        parts.append(_number(value))
    elif depth == MAX_DEPTH:
        raise ValueError("too deep")
    elif isinstance(value, dict):
        _write_object(value, parts, depth + 1)
    else:
        _write_list(value, parts, depth + 1)


def _write_object(value: dict[str, Any], parts: list[str], depth: int) -> None:
    start = "{"
    for name in sorted(value, key=ordinal):
        parts.append(f"{start}{_quoted(name)}:")
        _write(value[name], parts, depth)
        start = ","
    parts.append("{}" if start == "{" else "}")


def _write_list(value: list[Any], parts: list[str], depth: int) -> None:
    start = "["
    for item in value:
        parts.append(start)
        _write(item, parts, depth)
        start = ","
    parts.append("[]" if start == "[" else "]")


def _number(value: float) -> str:
    """As ECMAScript writes a double: the shortest digits that read back the same."""
    if isinstance(value, int) and not _fits_a_double(value):
        return str(value)
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("not a finite number")
    return ("-" if sign and any(digits) else "") + _decimal("".join(map(str, digits)), exponent)


def _decimal(digits: str, exponent: int) -> str:
    point = len(digits) + exponent
    if digits == "0":
        return "0"
    if len(digits) <= point <= 21:
        return digits + "0" * exponent
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


def _fits_a_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=unique_names, parse_constant=_refuse_constant, parse_float=_finite)


def _invalid(field: str) -> InvalidInput:
    return InvalidInput(
        f"{field} is not acceptable JSON: it must be valid, at most {MAX_DEPTH} levels deep, without a name that "
        "stands twice in one object, and with finite numbers only",
        reason=Reason.FIELD_INVALID,
        field=field,
        limit="max_json_depth",
        value=MAX_DEPTH,
    )
