"""An append-only file of JSON rows, one line each, readable by eye and by grep.

    {"crc":"8d1f0a3c","row":{"op":"add",…}}
    {"crc":"52b7e114","more":true,"row":{…}}      one append of two rows: all of them count, or none
    {"crc":"f0c3d951","row":{…}}

The checksum (CRC-32, eight hexadecimal digits) covers everything behind it in the line. A last append that did not
reach the disk whole is cut off and told; a bad line anywhere before is Corrupt, for this journal alone, and nothing is
overwritten. Rows are never changed in place: a journal is compacted by writing a new one beside it and renaming.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidecar.errors import Corrupt, Reason
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import dump, unique_names

_HEAD = b'{"crc":"'
_BODY = len(_HEAD) + 8 + len(b'",')
_MORE = b'"more":true,'
_ROW = b'"row":'
_DECODER = json.JSONDecoder(object_pairs_hook=unique_names)
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """A row and where it lies: ``offset`` and ``length`` in bytes, line end included."""

    offset: int
    length: int
    crc: str
    row: dict[str, Any]

    @property
    def end(self) -> int:
        """The offset of the next line."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Torn:
    """What was cut off behind the last whole append: it was never acknowledged."""

    file: str
    offset: int
    dropped_bytes: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rows of a journal, and what had to be cut off to read it (None: nothing)."""

    lines: list[Line]
    torn: Torn | None


class _Batch:
    """One caller's append, waiting for whoever writes next."""

    __slots__ = ("data", "error", "offset", "written")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0
        self.written = False
        self.error: BaseException | None = None


class Journal:
    """One file. Appends from many threads share a write and an fsync; :meth:`load` it once before the first append."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path
        self._turn = threading.Lock()
        self._waiting: deque[_Batch] = deque()

    def load(self, offset: int = 0) -> Loaded:
        """The rows from ``offset`` (a line's beginning), the torn end of the file cut off. No file: no rows.

        Raises Corrupt for a bad line that is not the last.
        """
        with self._turn:
            lines: list[Line] = []
            whole = 0
            tail = b""
            end = offset
            for raw in self._raw_lines(offset):
                line = _parse(raw, end)
                if tail:
                    raise self._corrupt(end - len(tail))
                if line is None:
                    tail = raw
                else:
                    lines.append(line)
                    whole = whole if _has_more(raw) else len(lines)
                end += len(raw)
            good = lines[whole - 1].end if whole else offset
            return Loaded(lines[:whole], self._cut(good, end))

    def append(self, rows: Sequence[Mapping[str, Any]], *, sync: bool = True) -> int:
        """Add ``rows``, all or none; the offset of the first. Returns once they are safe (with ``sync``).

        Appends that wait for the disk at the same time go out together, with one write and one fsync.
        """
        batch = _Batch(encode(rows))
        self._waiting.append(batch)
        with self._turn:
            if not batch.written:
                self._write_waiting(sync=sync)
        if batch.error is not None:
            raise batch.error
        return batch.offset

    def read(self, offset: int, length: int) -> dict[str, Any]:
        """The row of a line that is known to lie there. Raises Corrupt where it does not."""
        try:
            line = _parse(self._disk.read(self._path, offset, length), offset)
        except FileNotFoundError:
            line = None
        if line is None:
            raise self._corrupt(offset)
        return line.row

    def rewrite(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put ``rows`` in the place of all that is there, at once."""
        with self._turn:
            self._disk.replace(self._path, b"".join(_encode_line(row, more=False) for row in rows))

    def size(self) -> int:
        """Length of the file in bytes."""
        return self._disk.size(self._path)

    def _write_waiting(self, *, sync: bool) -> None:
        batches = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            offset = self._disk.append(self._path, b"".join(batch.data for batch in batches), sync=sync)
            for batch in batches:
                batch.offset = offset
                offset += len(batch.data)
        except BaseException as error:
            for batch in batches:
                batch.error = error
        finally:
            for batch in batches:
                batch.written = True

    def _raw_lines(self, offset: int) -> Iterator[bytes]:
        """The lines with their ends; the last one without, where it has none."""
        rest = b""
        while chunk := self._chunk(offset):
            offset += len(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line + b"\n"
        if rest:
            yield rest

    def _chunk(self, offset: int) -> bytes:
        try:
            return self._disk.read(self._path, offset, _READ_BYTES)
        except FileNotFoundError:
            return b""

    def _cut(self, good: int, end: int) -> Torn | None:
        if good == end:
            return None
        self._disk.truncate(self._path, good)
        return Torn(self._shown(), good, end - good)

    def _shown(self) -> str:
        return self._path.relative_to(self._disk.root).as_posix()

    def _corrupt(self, offset: int) -> Corrupt:
        shown = self._shown()
        return Corrupt(
            f"'{shown}' has an unreadable line at byte {offset} and was left as it is; "
            "stop the daemon and run 'lorekeeper repair'",
            reason=Reason.STORAGE_CORRUPT,
            file=shown,
            offset=offset,
        )


def encode(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The lines of one append."""
    last = len(rows) - 1
    return b"".join(_encode_line(row, more=number < last) for number, row in enumerate(rows))


def whole_rows(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The rows of all lines that are whole and as they were written, and how many others there are.

    For mending: it passes bad lines over. An end without a line break is torn, and no line.
    """
    lines = data.split(b"\n")[:-1]
    found = [_parse(line + b"\n", 0) for line in lines]
    rows = [line.row for line in found if line is not None]
    return rows, len(lines) - len(rows)


def _encode_line(row: Mapping[str, Any], *, more: bool) -> bytes:
    body = (_MORE if more else b"") + b'"row":' + dump(row) + b"}"
    return _head(body) + body + b"\n"


def _head(body: bytes) -> bytes:
    return b'%s%08x",' % (_HEAD, zlib.crc32(body))


def _has_more(raw: bytes) -> bool:
    return raw.startswith(_MORE, _BODY)


def _parse(raw: bytes, offset: int) -> Line | None:
    """The line, or None where it is not whole and as it was written."""
    head = _head(raw[_BODY:-1])
    if not raw.startswith(head) or not raw.endswith(b"}\n"):
        return None
    start = _BODY + (len(_MORE) if _has_more(raw) else 0)
    if not raw.startswith(_ROW, start):
        return None
    try:
        row = _DECODER.decode(raw[start + len(_ROW) : -2].decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return Line(offset, len(raw), head[len(_HEAD) :][:8].decode("ascii"), row) if isinstance(row, dict) else None
