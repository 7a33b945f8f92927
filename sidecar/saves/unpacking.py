"""Taking in a file from outside, and unpacking it where it can do no harm.

Everything is written below a folder of its own, under names that were checked; sizes and hashes are compared with what
the file says of itself while it is read, so that a bomb is noticed when it goes off and not after.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from sidecar.errors import LimitReached, Reason
from sidecar.saves.archive import MANIFEST, Manifest, Packed, check_object, checked_entries, invalid, manifest_from_json
from sidecar.settings import SavesSettings
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import unique_names

_PIECE_BYTES = 1_048_576
# What a zip file raises that is damaged.
BROKEN = (BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)


class Upload:
    """A file that arrives piece by piece."""

    def __init__(self, disk: Disk, path: Path, limits: SavesSettings) -> None:
        self._disk = disk.unsynced()
        self._path = path
        self._most = limits.max_archive_bytes
        self._digest = hashlib.sha256()
        self.bytes = 0

    def take(self, piece: bytes) -> None:
        """The next bytes. Raises LimitReached."""
        self.bytes += len(piece)
        if self.bytes > self._most:
            raise LimitReached(
                f"the file has more than {self._most} bytes; raise saves.max_archive_bytes if it is meant",
                reason=Reason.ARCHIVE_TOO_LARGE,
                limit="saves.max_archive_bytes",
                value=self._most,
            )
        self._digest.update(piece)
        self._disk.append(self._path, piece)

    def require(self, sha256: str) -> None:
        """Raise InvalidInput unless the whole file has this hash; an empty one means any."""
        if sha256 and sha256.lower() != self._digest.hexdigest():
            raise invalid("it is not the file that was announced: its SHA-256 is another")


class _DiskFile(io.RawIOBase):
    """A file of the data folder as something that a zip reader can seek in."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path
        self._size = disk.size(path)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._disk.read(self._path, self._at, len(buffer)) if self._at < self._size else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_zip(disk: Disk, path: Path) -> ZipFile:
    """The zip file at ``path``. Raises InvalidInput where it is none."""
    try:
        return ZipFile(io.BufferedReader(cast("io.RawIOBase", _DiskFile(disk, path)), _PIECE_BYTES))
    except BROKEN as error:
        raise invalid("it is no zip file, or a damaged one") from error


def unpack_save(disk: Disk, archive: Path, folder: Path, limits: SavesSettings) -> Manifest:
    """Unpack an exported save to ``folder``. Raises InvalidInput, LimitReached, NotReady; what was unpacked then is
    worthless."""
    with open_zip(disk, archive) as zipped:
        entries = {entry.filename: entry for entry in checked_entries(zipped.infolist(), limits)}
        manifest = manifest_from_json(_manifest(zipped, entries.pop(MANIFEST)))
        if entries.keys() != manifest.files.keys():
            raise invalid("it does not hold exactly what its manifest lists")
        folders = {folder / Path(name.removeprefix("save/")).parent for name in entries}
        for inner in sorted(folders):
            disk.make_folder(inner)
        for name, entry in entries.items():
            _unpack(zipped, entry, manifest.files[name], disk, folder / name.removeprefix("save/"), limits)
    return manifest


def _manifest(zipped: ZipFile, entry: ZipInfo) -> dict[str, object]:
    try:
        value = json.loads(zipped.read(entry), object_pairs_hook=unique_names)
    except (*BROKEN, RecursionError) as error:
        raise invalid("its manifest cannot be read") from error
    if not isinstance(value, dict):
        raise invalid("its manifest cannot be read")
    return value


def _unpack(zipped: ZipFile, entry: ZipInfo, expected: Packed, disk: Disk, path: Path, limits: SavesSettings) -> None:
    digest, size, line = hashlib.sha256(), 0, 0
    try:
        with zipped.open(entry) as packed:
            while piece := packed.read(_PIECE_BYTES):
                size += len(piece)
                if size > expected.bytes:
                    break
                check_object(line + len(piece.partition(b"\n")[0]), limits)
                line = len(piece.rpartition(b"\n")[2]) + (0 if b"\n" in piece else line)
                digest.update(piece)
                disk.append(path, piece)
    except BROKEN as error:
        raise invalid("a file in it is damaged") from error
    if (size, digest.hexdigest()) != (expected.bytes, expected.sha256):
        raise invalid("a file in it is not what the manifest says")
    if not size:
        disk.replace(path, b"")
