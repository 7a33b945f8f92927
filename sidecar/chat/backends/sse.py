"""Server-sent events, by the rules of the HTML standard, from bytes that come in pieces of any size. No I/O.

    data: {"choices":[…]}        one event; a blank line ends it
    data: [DONE]                 what a chat-completions server says last

A byte order mark at the start, comments, and all three line ends are taken as the standard says. An event that no
blank line ends is not an event: :meth:`EventParser.rest` tells it apart from a clean end. Beyond the standard, an
``error:`` line is an event of that name, and a line that is an object is data: so servers tell of a fault in the middle
of a stream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
ERROR = "error"
"""The name of an event that tells of a fault."""


class EventTooLong(Exception):
    """One event is longer than the parser may keep."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``name`` is empty where the server gave none."""

    data: str
    name: str = ""


class EventParser:
    """Feed it bytes as they come; each call returns the events that are complete."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._size = 0
        self._began = False
        self._after_return = False
        self._data: list[str] = []
        self._name = ""

    def feed(self, data: bytes) -> list[Event]:
        """Raises EventTooLong."""
        new = data[1:] if self._after_return and data.startswith(b"\n") else data
        self._after_return = data.endswith(b"\r") or (self._after_return and not data)
        if len(self._held) + len(new) + self._size > self._max_bytes:
            raise EventTooLong
        return [event for line in self._lines(self._past_mark(new)) if (event := self._take(line))]

    def rest(self) -> bytes:
        """What has come of a line that has no end yet."""
        return bytes(self._held)

    def _past_mark(self, new: bytes) -> bytes:
        """What follows a byte order mark; nothing as long as all of it could still come."""
        if self._began:
            return new
        begun = bytes(self._held) + new
        self._began = len(begun) >= len(_BOM) or not _BOM.startswith(begun)
        self._held = bytearray() if self._began else bytearray(begun)
        return begun.removeprefix(_BOM) if self._began else b""

    def _lines(self, new: bytes) -> list[bytes]:
        """The lines that end in ``new``. What has no end yet is not looked through again: it may come in many bits."""
        *lines, rest = _LINE_END.split(new)
        if lines:
            lines[0] = bytes(self._held) + lines[0]
            self._held.clear()
        self._held += rest
        return lines

    def _take(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        self._size += len(line)
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if line.startswith(b"{"):
            self._data.append(line.decode("utf-8", "replace"))
        elif field == "data":
            self._data.append(value)
        elif field == ERROR:
            self._data.append(value)
            self._name = ERROR
        elif field == "event":
            self._name = value
        return None

    def _dispatch(self) -> Event | None:
        event = Event("\n".join(self._data), self._name) if self._data else None
        self._data, self._name, self._size = [], "", 0
        return event
