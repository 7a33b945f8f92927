"""Rows of a journal as a fork reads them: its moments of an old timeline are moments of the one that it goes on on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sidecar.memory.records import Record, content_hash, record_of, record_row
from sidecar.storage.timelines import read_as

Row = Mapping[str, Any]


def as_read(row: Row, timelines: Mapping[str, str], save: str) -> Row:
    """``row`` with every moment on the timeline that is meant, and a record's hash made anew."""
    if not timelines:
        return row
    changed = dict(row)
    if "shares" in row:
        changed["shares"] = [_retimed(share, timelines) for share in row["shares"]]
    if row["op"] == "add":
        changed["record"] = _retimed(row["record"], timelines)
        if "shares" in row["record"]:
            changed["record"]["shares"] = [_retimed(share, timelines) for share in row["record"]["shares"]]
        changed["hash"] = content_hash(record_of(changed["record"], save))
    return changed


def as_meant(record: Record, timelines: Mapping[str, str], save: str) -> Record:
    """A record that is added to a fork: its moments of an old timeline are moments of the one that it goes on on."""
    if not timelines:
        return record
    return record_of(as_read({"op": "add", "record": record_row(record)}, timelines, save)["record"], save)


def _retimed(value: Row, timelines: Mapping[str, str]) -> dict[str, Any]:
    moments = {name: value[name] for name in ("moment", "expires") if value.get(name, [""])[0]}
    return {**value, **{name: [read_as(timelines, moment[0]), *moment[1:]] for name, moment in moments.items()}}
