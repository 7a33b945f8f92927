"""An append-only file of JSON rows, one line each, readable by eye and by grep.

    {"crc":"8d1f0a3c","row":{"op":"add",…}}
    {"crc":"52b7e114","more":true,"row":{…}}      one append of two rows: all of them count, or none
    {"crc":"f0c3d951","row":{…}}

The checksum (CRC-32, eight hexadecimal digits) covers everything behind it in the line. A last append that did not
reach the disk whole is cut off and told; a bad line anywhere before is Corrupt, for this journal alone, and nothing is
overwritten. Rows are never changed in place: a journal is compacted by writing a new one beside it and renaming.
"""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from sidecar.errors import Corrupt, Reason
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.json_file import as_written, dump

_HEAD = b'{"crc":"'
_BODY = len(_HEAD) + 8 + len(b'",')
_MORE = b'"more":true,'
_ROW = b'"row":'
_READ_BYTES = 1 << 20


class Line(NamedTuple):
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


class Span(NamedTuple):
    """Where a row lies, in bytes, line end included."""

    offset: int
    length: int


class _Batch:
    """One caller's append, waiting for whoever writes next."""

    __slots__ = ("error", "lines", "offset", "written")

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
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
        lines: list[Line] = []
        return Loaded(lines, self.scan(lines.append, offset))

    def scan(self, take: Callable[[Line], None], offset: int = 0) -> Torn | None:
        """Like :meth:`load`, with one row at a time given to ``take``, for journals that are large."""
        if self._disk.size(self._path) <= offset:
            return None
        with self._turn:
            batch: list[Line] = []
            bad: int | None = None
            good = end = offset
            for raw in self._raw_lines(offset):
                if bad is not None:
                    raise self._corrupt(bad)
                line = _parse(raw, end)
                end += len(raw)
                if line is None:
                    bad = end - len(raw)
                    continue
                batch.append(line)
                if not _has_more(raw):
                    for whole in batch:
                        take(whole)
                    batch.clear()
                    good = end
            return self._cut(good, end)

    def raw_rows(self) -> Iterator[bytes]:
        """The bytes of every row, whose checksums are right; what they say is not looked at. Nothing is cut off.

        Raises Corrupt for any bad line, and for a last append that is not whole.
        """
        offset, raw = 0, b""
        for raw in self._raw_lines(0):
            row = _row_in(raw)
            if row is None:
                raise self._corrupt(offset)
            yield row
            offset += len(raw)
        if _has_more(raw):
            raise self._corrupt(offset)

    def whole_appends(self) -> Iterator[bytes]:
        """The bytes of the file a piece at a time, without a torn end. Nothing is cut off, nor is it looked at what
        the rows say.

        Raises Corrupt for a bad line that is not the last.
        """
        piece, append, bad = bytearray(), bytearray(), None
        offset = 0
        for raw in self._raw_lines(0):
            if bad is not None:
                raise self._corrupt(bad)
            bad = None if _row_in(raw) is not None else offset
            offset += len(raw)
            append += raw
            if bad is None and not _has_more(raw):
                piece += append
                append.clear()
            if len(piece) >= _READ_BYTES:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)

    def append(self, rows: Sequence[Mapping[str, Any]], *, sync: bool = True) -> list[Span]:
        """Add ``rows``, all or none, and tell where each lies. Returns once they are safe (with ``sync``).

        Appends that wait for the disk at the same time go out together, with one write and one fsync.
        """
        batch = _Batch(_encoded(rows))
        self._waiting.append(batch)
        with self._turn:
            if not batch.written:
                self._write_waiting(sync=sync)
        if batch.error is not None:
            raise batch.error
        return _spans(batch.lines, batch.offset)

    def read(self, offset: int, length: int) -> dict[str, Any]:
        """The row of a line that is known to lie there. Raises Corrupt where it does not."""
        return next(self.read_many([Span(offset, length)]))

    def read_many(self, spans: Sequence[Span]) -> Iterator[dict[str, Any]]:
        """The rows that are known to lie at ``spans``. Raises Corrupt."""
        raw = self._disk.read_parts(self._path, spans)
        for span in spans:
            line = _parse(next(raw, b""), span.offset)
            if line is None:
                raise self._corrupt(span.offset)
            yield line.row

    def rewrite(self, rows: Iterable[Mapping[str, Any]]) -> list[Span]:
        """Put ``rows`` in the place of all that is there, at once, and tell where each lies."""
        lines = [_encode_line(row, more=False) for row in rows]
        with self._turn:
            self._disk.replace(self._path, b"".join(lines))
        return _spans(lines, 0)

    def size(self) -> int:
        """Length of the file in bytes."""
        return self._disk.size(self._path)

    def _write_waiting(self, *, sync: bool) -> None:
        batches = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            data = b"".join(line for batch in batches for line in batch.lines)
            offset = self._disk.append(self._path, data, sync=sync)
            for batch in batches:
                batch.offset = offset
                offset += sum(map(len, batch.lines))
        except BaseException as error:
            for batch in batches:
                batch.error = error
        finally:
            for batch in batches:
                batch.written = True

    def _raw_lines(self, offset: int) -> Iterator[bytes]:
        """The lines with their ends; the last one without, where it has none."""
        rest = b""
        while chunk := self._bytes(offset, _READ_BYTES):
            offset += len(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line + b"\n"
        if rest:
            yield rest

    def _bytes(self, offset: int, length: int) -> bytes:
        try:
            return self._disk.read(self._path, offset, length)
        except FileNotFoundError:
            return b""

    def _cut(self, good: int, end: int) -> Torn | None:
        if good == end:
            return None
        self._disk.truncate(self._path, good)
        return Torn(self._shown(), good, end - good)

    def _shown(self) -> str:
        return shown_path(self._disk, self._path)

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
    """The bytes of one append."""
    return b"".join(_encoded(rows))


def _encoded(rows: Sequence[Mapping[str, Any]]) -> list[bytes]:
    last = len(rows) - 1
    return [_encode_line(row, more=number < last) for number, row in enumerate(rows)]


def _spans(lines: list[bytes], offset: int) -> list[Span]:
    lengths = [len(line) for line in lines]
    return [Span(start, length) for start, length in zip(accumulate(lengths, initial=offset), lengths, strict=False)]


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
    data = _row_in(raw)
    if data is None:
        return None
    try:
        row = as_written(data)
    except (ValueError, RecursionError):
        return None
    return Line(offset, len(raw), raw[len(_HEAD) : _BODY - 2].decode("ascii"), row) if isinstance(row, dict) else None


def _row_in(raw: bytes) -> bytes | None:
    """The bytes of the row in a line, or None where the line is not whole, or its checksum is another."""
    body = raw[_BODY:-1]
    if not raw.startswith(_head(body)) or not raw.endswith(b"}\n"):
        return None
    start = len(_MORE) if body.startswith(_MORE) else 0
    return body[start + len(_ROW) : -1] if body.startswith(_ROW, start) else None
