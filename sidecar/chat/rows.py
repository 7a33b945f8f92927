"""The rows of a transcript, and how a journal holds them. A row that is a message of the history has a number.

    {"k":0,"r":"user","c":"Hello","t":1764460800,"o":7,"m":5}          order 7 in the transcript, message 5
    {"k":2,"r":"give","c":"{}","t":1764460801,"o":8,"id":"call_1"}     a tool call; no message
    {"last":[8,5],"answers":[]}                                        the file was written anew, the numbers go on

Empty values stay out. Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple

from sidecar.compaction.messages import ASSISTANT, Message
from sidecar.memory.moments import Moment, moment_of, moment_row
from sidecar.storage.timelines import read_as


class Kind(IntEnum):
    """What a row tells."""

    USER = 0
    ASSISTANT = 1
    TOOL_CALL = 2
    TOOL_RESULT = 3


class Row(NamedTuple):
    """One thing that happened. ``key`` is who spoke, or the tool's name; ``number`` is 0 for what is no message."""

    kind: Kind
    key: str
    content: str
    time: int = 0
    order: int = 0
    number: int = 0
    call_id: str = ""
    input_id: str = ""
    speaker: str = ""
    moment: Moment | None = None
    persisted: bool = True

    @property
    def weight(self) -> int:
        """Roughly the code points that it holds in memory."""
        return 100 + len(self.content)


def message_kind(role: str) -> Kind:
    """The kind of a message of that role."""
    return Kind.ASSISTANT if role.strip().casefold() == ASSISTANT else Kind.USER


def message_of(row: Row) -> Message:
    """The row as compaction sees it."""
    return Message(row.key, row.content, row.number)


_SHORT = {"call_id": "id", "input_id": "in", "speaker": "sp"}


def row_to_json(row: Row) -> dict[str, Any]:
    """The row as a journal holds it."""
    value: dict[str, Any] = {"k": int(row.kind), "r": row.key, "c": row.content, "t": row.time, "o": row.order}
    if row.number:
        value["m"] = row.number
    for name, short in _SHORT.items():
        if getattr(row, name):
            value[short] = getattr(row, name)
    if row.moment:
        value["at"] = moment_row(row.moment)
    return value


def row_from_json(value: Mapping[str, Any]) -> Row:
    """The row of a journal's line. Raises KeyError, TypeError or ValueError for anything else."""
    row = Row(
        _KINDS[value["k"]],
        value["r"],
        value["c"],
        value["t"],
        value["o"],
        value.get("m", 0),
        value.get("id", ""),
        value.get("in", ""),
        value.get("sp", ""),
        _moment(value["at"]) if "at" in value else None,
    )
    for text in (row.key, row.content, row.call_id, row.input_id, row.speaker):
        if type(text) is not str:
            raise TypeError("a text is expected")
    for number in (row.time, row.order, row.number):
        if type(number) is not int or not 0 <= number < _NUMBERS_END:
            raise TypeError("a whole number is expected")
    return row


def retimed(row: Row, timelines: Mapping[str, str]) -> Row:
    """The row as a fork reads it: its moment lies on the timeline that is meant."""
    if not timelines or row.moment is None:
        return row
    return row._replace(moment=replace(row.moment, timeline=read_as(timelines, row.moment.timeline)))


def _moment(value: Any) -> Moment:
    timeline, tick, calendar = value if len(value) == 3 else (*value, "")
    if type(timeline) is not str or type(calendar) is not str or type(tick) is not int:
        raise TypeError("a moment is expected")
    if not -_NUMBERS_END <= tick < _NUMBERS_END:
        raise ValueError("a tick beyond 64 bits")
    return moment_of(value)


_NUMBERS_END = 2**63
_KINDS = {int(kind): kind for kind in Kind}
