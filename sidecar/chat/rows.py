"""The rows of a transcript, and how a journal holds them. A row that is a message of the history has a number.

    {"k":0,"r":"user","c":"Hello","t":1764460800,"o":7,"m":5}          order 7 in the transcript, message 5
    {"k":2,"r":"give","c":"{}","t":1764460801,"o":8,"id":"call_1"}     a tool call; no message
    {"last":[8,5],"answers":[]}                                        the file was written anew, the numbers go on

Empty values stay out. Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from sidecar.compaction.messages import ASSISTANT, Message
from sidecar.memory.moments import Moment, moment_of, moment_row


class Kind(IntEnum):
    """What a row tells."""

    USER = 0
    ASSISTANT = 1
    TOOL_CALL = 2
    TOOL_RESULT = 3


@dataclass(frozen=True, slots=True)
class Row:
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
    content, key = value["c"], value["r"]
    if not isinstance(content, str) or not isinstance(key, str):
        raise TypeError("texts are expected")
    return Row(
        _KINDS[value["k"]],
        key,
        content,
        int(value["t"]),
        int(value["o"]),
        int(value.get("m", 0)),
        value.get("id", ""),
        value.get("in", ""),
        value.get("sp", ""),
        moment_of(value["at"]) if "at" in value else None,
    )


_KINDS = {int(kind): kind for kind in Kind}
