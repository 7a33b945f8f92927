"""Whether the rows of a journal from outside are those of one owner, field by field.

Opening a journal trusts its types: whoever wrote it was this program. Here nothing is trusted, and nothing is built,
which takes a fraction of the time of opening it. Most rows of an export are new records exactly as we write them: one
regular expression says of their bytes all that parsing would, in a third of its time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from sidecar.memory.canonical_json import parse
from sidecar.memory.moments import UNDATED, moment_row
from sidecar.memory.records import Authority, Kind, ShareKind
from sidecar.storage.json_file import as_written

_TEXTS = json.JSONDecoder()
_WHOLE_END = 2**63
_NUMBERS = (int, float)
_KINDS = {kind.value for kind in Kind}
_PLAIN_KINDS = sorted(_KINDS - {Kind.TURN.value})  # archived turns are counted apart
_AUTHORITIES = {authority.value for authority in Authority}
_SHARE_KINDS = {kind.value for kind in ShareKind}
_ADD = {
    "op": str,
    "rev": int,
    "hash": str,
    "asked": str,
    "record": dict,
    "superseded_by": str,
    "superseded_since": int,
    "shares": list,
}
_RECORD = {
    "id": str,
    "scope": str,
    "kind": str,
    "moment": list,
    "payload": str,
    "text": str,
    "tags": list,
    "expires": list,
    "source": str,
    "conversation": str,
    "ordinal": int,
    "authority": str,
    "audience": list,
    "speaker": str,
    "pinned": bool,
    "supersedes": str,
    "metadata": dict,
    "shares": list,
}


# The grammar of a plain row. Nothing in it can match in two ways: whatever a row holds, it takes time by its length.
_NAME = r'"[^"\\\x00-\x1f]++"'
_TEXT = r'"[^"\\\x00-\x1f]*+(?:\\["\\bfnrt][^"\\\x00-\x1f]*+)*+"'
_NAMES = rf"\[{_NAME}(?:,{_NAME})*+\]"
_WHOLE = "(?:0|[1-9][0-9]{0,17}+)"
_MOMENT = rf"\[{_NAME},-?{_WHOLE}\]"
_PLAIN = re.compile(
    rf'\{{"n":(?P<n>{_WHOLE}),"op":"add","rev":{_WHOLE},"hash":{_NAME}(?:,"asked":{_NAME})?,"record":\{{"id":(?P<id>{_NAME}),'
    rf'"scope":{_NAME},"kind":"(?:{"|".join(_PLAIN_KINDS)})","moment":{_MOMENT},"importance":(?:[01]|0\.[0-9]++|1\.0),'
    rf'"payload":(?P<payload>{_TEXT})(?:,"text":{_TEXT})?(?:,"tags":{_NAMES})?(?:,"expires":{_MOMENT})?'
    rf'(?:,"source":{_NAME})?(?:,"conversation":{_NAME})?(?:,"ordinal":{_WHOLE})?'
    rf'(?:,"authority":"(?:{"|".join(_AUTHORITIES)})")?(?:,"audience":{_NAMES})?(?:,"speaker":{_NAME})?'
    rf'(?:,"pinned":true)?(?:,"supersedes":{_NAME})?\}}\}}'.encode("ascii")
)


class RecordForm:
    """Looks at rows in their order; ``ids`` are those of the records that are there after them, ``archived`` those of
    archived turns among them."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.archived: set[str] = set()
        self._last = 0

    def take(self, data: bytes) -> None:
        """Look at the bytes of a row. Raises KeyError, TypeError, ValueError, RecursionError or InvalidInput for one
        that is not ours."""
        plain = _PLAIN.fullmatch(data)
        if plain is None:
            self._take(as_written(data))
            return
        data.decode("utf-8")
        if plain["payload"] != b'"{}"':
            payload, _ = _TEXTS.raw_decode(plain["payload"].decode("utf-8"))
            parse(payload, "payload")
        self._number(int(plain["n"]))
        self._new(plain["id"][1:-1].decode("utf-8"))

    def _take(self, row: Mapping[str, Any]) -> None:
        operation = row["op"]
        if operation == "gone":
            self._gone(row)
            return
        self._number(row["n"])
        if operation == "add":
            self._add(row)
        elif operation == "share":
            _require(row["id"] in self.ids)
            _check_shares(row["shares"])
        elif operation == "forget":
            _check_texts(row["ids"])
            self.ids.difference_update(row["ids"])
            self.archived.difference_update(row["ids"])
        else:
            _require(operation == "end")

    def _gone(self, row: Mapping[str, Any]) -> None:
        _require(row["n"] == 0 and self._last == 0)
        _check_texts(row["marks"])

    def _add(self, row: Mapping[str, Any]) -> None:
        _check_types(row, _ADD)
        _check_record(row["record"])
        _require(row["hash"] and row["rev"] >= 0)
        if "shares" in row:
            _check_shares(row["shares"])
        self._new(row["record"]["id"])
        if (row["record"]["kind"], row["record"].get("authority")) == (Kind.TURN, Authority.ARCHIVE):
            self.archived.add(row["record"]["id"])

    def _number(self, number: int) -> None:
        _require(type(number) is int and self._last < number < _WHOLE_END)
        self._last = number

    def _new(self, record_id: str) -> None:
        _require(record_id not in self.ids)
        self.ids.add(record_id)


def _check_record(record: Mapping[str, Any]) -> None:
    _check_types(record, _RECORD)
    named = record["id"] and record["scope"] and record["kind"] in _KINDS
    _require(named and type(record["importance"]) in _NUMBERS and 0 <= record["importance"] <= 1)
    _check_moment(record["moment"])
    parse(record["payload"], "payload")
    for name, check in _CHECKS.items():
        if name in record:
            check(record[name])


def _check_types(value: Mapping[str, Any], types: Mapping[str, type]) -> None:
    """Names that are not known are somebody's who comes after us."""
    for name, part in value.items():
        if type(part) is not types.get(name) and name in types:
            raise TypeError("a field has another type")
        _require(type(part) is not int or -_WHOLE_END <= part < _WHOLE_END)


def _check_moment(value: list[Any]) -> None:
    timeline, tick, calendar = value if len(value) == 3 else (*value, "")
    typed = type(timeline) is str and type(tick) is int and type(calendar) is str
    _require(typed and (timeline or value == moment_row(UNDATED)) and -_WHOLE_END <= tick < _WHOLE_END)


def _check_texts(value: list[Any]) -> None:
    _require(all(type(text) is str for text in value))


def _check_metadata(value: Mapping[str, Any]) -> None:
    _require(all(type(text) is str for text in value.values()))


def _check_authority(value: str) -> None:
    _require(value in _AUTHORITIES)


def _check_shares(value: list[Any]) -> None:
    for share in value:
        _check_address(share["to"])
        _require(share["kind"] in _SHARE_KINDS)
        _check_moment(share["moment"])
        _require(0 <= share.get("confidence", 1) <= 1)
        if "told_by" in share:
            _check_address(share["told_by"])


def _check_address(value: list[Any]) -> None:
    _require(type(value) is list and len(value) <= 5)
    _check_texts(value)


def _require(fulfilled: Any) -> None:
    if not fulfilled:
        raise ValueError("a field has a value that is not allowed")


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "tags": _check_texts,
    "audience": _check_texts,
    "expires": _check_moment,
    "authority": _check_authority,
    "metadata": _check_metadata,
    "shares": _check_shares,
}
