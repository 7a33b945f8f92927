"""A folder twice, at the price of its names: hard links where the disk has them, copies where not.

A linked file is one file under several names, so it must never be changed in place. Documents are replaced by
renaming, which leaves the other names alone; ``FileDisk`` takes a journal apart from its other names before it appends
to it or cuts it.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# Names of what was being written or removed when it was seen: never a part of what is kept.
PASSING = (".tmp", ".partial", ".erased")
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EACCES}


@dataclass(slots=True)
class Measured:
    """Files and their length in bytes; ``newest`` is the last change in Unix seconds, 0 where that is not known.

    ``own_bytes`` are those that have no other name elsewhere: what the disk gets back when all of it is removed.
    ``linked`` and ``copied`` tell how the files of a clone came about.
    """

    files: int = 0
    bytes: int = 0
    own_bytes: int = 0
    newest: float = 0.0
    linked: int = 0
    copied: int = 0
    _names: Counter[int] = field(default_factory=Counter)

    def take(self, size: int, changed: float = 0.0) -> None:
        """Count a file that has no other name."""
        self.files += 1
        self.bytes += size
        self.own_bytes += size
        self.newest = max(self.newest, changed)

    def take_status(self, status: os.stat_result) -> None:
        """Count a file of a real disk."""
        self.take(status.st_size, status.st_mtime)
        if status.st_nlink > 1:
            self._names[status.st_ino] += 1
            if self._names[status.st_ino] != status.st_nlink:
                self.own_bytes -= status.st_size


class TreeWalk:
    """Clones or measures a folder. ``refuse`` is called with a link that lies in it, and raises."""

    def __init__(self, refuse: Callable[[str], None]) -> None:
        self._refuse = refuse
        self._links = True
        self.written: list[str] = []
        """Folders and files that the clone made anew, for whoever makes them safe on the disk."""

    def measure(self, sources: Iterable[Path]) -> Measured:
        """Count what lies below ``sources``; one that does not exist holds nothing."""
        total = Measured()
        for source in sources:
            with suppress(FileNotFoundError):
                self._walk(str(source), None, total)
        return total

    def clone(self, source: Path, target: Path) -> Measured:
        """Make ``target``, which must not exist, hold what lies below ``source``."""
        total = Measured()
        self._walk(str(source), str(target), total)
        return total

    def _walk(self, source: str, target: str | None, total: Measured) -> None:
        if target is not None:
            Path(target).mkdir(mode=0o700)
            self.written.append(target)
        with os.scandir(source) as entries:
            for entry in entries:
                if entry.name.endswith(PASSING):
                    continue
                beside = None if target is None else f"{target}{os.sep}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    self._refuse(entry.path)
                    self._walk(entry.path, beside, total)
                    continue
                self._take(entry, beside, total)

    def _take(self, entry: os.DirEntry[str], beside: str | None, total: Measured) -> None:
        if entry.is_symlink():
            self._refuse(entry.path)
        total.take_status(entry.stat(follow_symlinks=False))
        if beside is not None:
            linked = self._linked(entry.path, beside)
            total.linked += linked
            total.copied += not linked

    def _linked(self, source: str, target: str) -> bool:
        """Link the file, or copy it where that cannot be; whether it was linked."""
        if self._links:
            try:
                os.link(source, target)
            except OSError as error:
                if error.errno not in _NO_LINKS | {errno.EMLINK}:
                    raise
                # Too many names of one file concern that file alone.
                self._links = error.errno == errno.EMLINK
            else:
                return True
        import shutil

        shutil.copy2(source, target, follow_symlinks=False)
        self.written.append(target)
        return False
