"""Files of another system, read from a folder or from a zip file and never written to. Links are not followed, and what
is too much is refused before it is read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from zipfile import ZipFile

from sidecar.errors import InvalidInput, Reason
from sidecar.saves.archive import check_object, invalid, too_large
from sidecar.saves.unpacking import BROKEN, open_zip
from sidecar.settings import SavesSettings
from sidecar.storage.disk import Disk

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class ForeignFiles(Protocol):
    """``names`` are paths with slashes, sorted; what is at them may be read once it is needed. ``links`` are paths of
    what is passed over, because it is a link or a device."""

    names: list[str]
    links: list[str]

    def read(self, name: str) -> bytes:
        """The content of a file. Raises InvalidInput, LimitReached."""
        ...


@contextmanager
def foreign_files(
    disk: Disk, archive: Path | None, folder: Path | None, limits: SavesSettings
) -> Iterator[ForeignFiles]:
    """The files in ``archive``, which lies on ``disk``, or in ``folder``, wherever it is. Raises InvalidInput."""
    if archive is not None:
        with open_zip(disk, archive) as zipped:
            yield _Zipped(zipped, limits)
    elif folder is not None and folder.is_dir():
        yield _InFolder(folder, limits)
    else:
        raise InvalidInput(
            "give a file after the header, or header.source_directory: a folder that is there",
            reason=Reason.FIELD_REQUIRED,
            field="header.source_directory",
        )


class _InFolder:
    def __init__(self, folder: Path, limits: SavesSettings) -> None:
        self._folder = folder
        self._limits = limits
        self._left = limits.max_unpacked_bytes
        self._most = limits.max_unpacked_bytes
        self.links: list[str] = []
        self.names = sorted(self._found(limits.max_archive_files))

    def read(self, name: str) -> bytes:
        path = self._folder / name
        check_object(path.lstat().st_size, self._limits)
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(self._left + 1)
        except OSError as error:
            raise invalid("a file in the folder cannot be read") from error
        self._left -= len(data)
        if self._left < 0:
            raise too_large("bytes", "saves.max_unpacked_bytes", self._most)
        return data

    def _found(self, most: int) -> Iterator[str]:
        count = 0
        for where, folders, names in os.walk(self._folder, onerror=_refuse, followlinks=False):
            for name in (*folders, *names):
                path = Path(where) / name
                mode = path.lstat().st_mode
                count += not stat.S_ISDIR(mode)
                if count > most:
                    raise too_large("files", "saves.max_archive_files", most)
                if stat.S_ISREG(mode):
                    yield path.relative_to(self._folder).as_posix()
                elif not stat.S_ISDIR(mode):
                    self.links.append(path.relative_to(self._folder).as_posix())


class _Zipped:
    def __init__(self, zipped: ZipFile, limits: SavesSettings) -> None:
        entries = [entry for entry in zipped.infolist() if not entry.is_dir()]
        if len(entries) > limits.max_archive_files:
            raise too_large("files", "saves.max_archive_files", limits.max_archive_files)
        if sum(entry.file_size for entry in entries) > limits.max_unpacked_bytes:
            raise too_large("bytes", "saves.max_unpacked_bytes", limits.max_unpacked_bytes)
        self.links: list[str] = []
        self._zipped = zipped
        self._limits = limits
        self._entries: Mapping[str, object] = {entry.filename: entry for entry in entries}
        if len(self._entries) != len(entries):
            raise invalid("a name stands in it twice")
        self.names = sorted(self._entries)

    def read(self, name: str) -> bytes:
        entry = self._zipped.getinfo(name)
        check_object(entry.file_size, self._limits)
        try:
            with self._zipped.open(entry) as packed:
                data = packed.read(entry.file_size + 1)
        except BROKEN as error:
            raise invalid("a file in it is damaged") from error
        if len(data) != entry.file_size:
            raise invalid("a file in it is not as long as it says")
        return data


def _refuse(error: OSError) -> None:
    raise invalid("a folder in it cannot be read") from error


def shown(name: str) -> str:
    """A path as a report may tell it."""
    return _CONTROLS.sub("?", name)[:512]
