"""Packing a save into one zip file, piece by piece: it is never whole in memory nor on the disk."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from sidecar.errors import Corrupt, LorekeeperError, Reason, Stale
from sidecar.saves.archive import MANIFEST, Manifest, Packed, is_file, manifest_to_json
from sidecar.saves.contents import UNREADABLE, counts_of
from sidecar.storage.disk import Disk
from sidecar.storage.format import FORMAT
from sidecar.storage.journal import Journal
from sidecar.storage.json_file import dump, read_json, unreadable
from sidecar.storage.keys import save_folder

PIECE_BYTES = 1_048_576
# Text packs to a sixth at once; the higher levels take many times as long for a few percent.
_LEVEL = 1
_EARLIEST = (1980, 1, 1, 0, 0, 0)


class _Pipe:
    """Where the zip file is written to, and read from as it grows."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes) -> int:
        self._data += data
        return len(data)

    def flush(self) -> None:
        """Nothing waits anywhere else."""

    def pieces(self, *, all_of_it: bool = False) -> Iterator[bytes]:
        while len(self._data) >= PIECE_BYTES or (all_of_it and self._data):
            yield bytes(self._data[:PIECE_BYTES])
            del self._data[:PIECE_BYTES]


class Export:
    """The pieces of the file for the save that lies in ``folder``, which nobody changes meanwhile. Where it goes,
    because somebody in it is erased, they end with Stale.

    ``bytes`` and ``sha256`` are those of the whole file once all pieces were taken.
    """

    def __init__(self, disk: Disk, folder: Path, *, save: str, name: str) -> None:
        self._disk = disk
        self._folder = folder
        self._save = save
        self._name = name
        self._digest = hashlib.sha256()
        self.bytes = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def pieces(self) -> Iterator[bytes]:
        """At most 1,048,576 bytes each."""
        for piece in self._packed():
            self._digest.update(piece)
            self.bytes += len(piece)
            yield piece

    def _packed(self) -> Iterator[bytes]:
        pipe = _Pipe()
        files: dict[str, Packed] = {}
        with ZipFile(cast("IO[bytes]", pipe), "w", ZIP_DEFLATED, compresslevel=_LEVEL) as zipped:
            for path, name in list(self._files()):
                digest, size = hashlib.sha256(), 0
                with zipped.open(_entry(name), "w", force_zip64=True) as packed:
                    for part in self._parts(path):
                        packed.write(part)
                        digest.update(part)
                        size += len(part)
                        yield from pipe.pieces()
                files[name] = Packed(size, digest.hexdigest())
            zipped.writestr(_entry(MANIFEST), self._manifest(files))
        yield from pipe.pieces(all_of_it=True)

    def _files(self) -> Iterator[tuple[Path, str]]:
        for name in self._disk.names(self._folder):
            path = self._folder / name
            inside = [path / inner for inner in self._disk.names(path)] if self._disk.is_folder(path) else [path]
            for file in inside:
                packed = "save/" + file.relative_to(self._folder).as_posix()
                if is_file(packed):
                    yield file, packed

    def _parts(self, path: Path) -> Iterator[bytes]:
        """The bytes of a file as an import takes them. Raises Corrupt where it would not."""
        try:
            yield from Journal(self._disk, path).whole_appends() if path.suffix == ".jsonl" else self._object(path)
        except Corrupt as error:
            shown = (save_folder(Path(), self._save) / path.relative_to(self._folder)).as_posix()
            raise Corrupt(
                f"'{shown}' cannot be read, so that nothing could import the file; stop the daemon and run "
                "'lorekeeper repair', or export an earlier checkpoint",
                reason=error.reason,
                file=shown,
            ) from error
        except FileNotFoundError as error:
            raise _gone() from error
        if not self._disk.exists(path):
            raise _gone()

    def _object(self, path: Path) -> Iterator[bytes]:
        try:
            counts_of(self._disk, path)
        except UNREADABLE as error:
            if not self._disk.exists(path):
                raise _gone() from error
            raise unreadable(self._disk, path) from error
        yield self._disk.read(path)

    def _manifest(self, files: dict[str, Packed]) -> bytes:
        actors = [self._actor(name) for name in files if name.endswith("/actor.json")]
        return dump(manifest_to_json(Manifest(self._save, self._name, time.time(), FORMAT, files), actors))

    def _actor(self, name: str) -> dict[str, Any]:
        folder = name.split("/")[1]
        try:
            stored = read_json(self._disk, self._folder / folder / "actor.json")
        except LorekeeperError:
            return {"folder": folder}
        if stored is None:
            raise _gone()
        return {"folder": folder, **stored}


def _gone() -> Stale:
    return Stale(
        "the save, or somebody in it, was erased during the export: throw away what came of it, then repeat",
        reason=Reason.SAVE_RESTORED,
    )


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(name, _EARLIEST)
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry
