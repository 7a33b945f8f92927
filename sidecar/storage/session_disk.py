"""Process memory in the shape of a disk, for a session that must leave no trace."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sidecar.storage.cloning import PASSING, Measured
from sidecar.storage.disk import Disk, folder_gone, shown_path


class SessionDisk:
    """Process memory in the shape of a disk: nothing of it outlives the daemon."""

    def __init__(self, root: Path, within: SessionDisk | None = None) -> None:
        self.root = root
        self._files: dict[Path, bytearray] = within._files if within else {}
        self._folders: set[Path] = within._folders if within else set()
        self._folders.add(root)

    def exists(self, path: Path) -> bool:
        return path in self._files or path in self._folders

    def is_folder(self, path: Path) -> bool:
        return path in self._folders

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        data = self._file(path)
        return bytes(data[offset:] if length is None else data[offset : offset + length])

    def read_parts(self, path: Path, parts: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        data = self._files.get(path, b"")
        return (bytes(data[offset : offset + length]) for offset, length in parts)

    def size(self, path: Path) -> int:
        return len(self._files.get(path, b""))

    def replace(self, path: Path, data: bytes) -> None:
        self._require_folder(path)
        self._files[path] = bytearray(data)

    def append(self, path: Path, data: bytes, *, sync: bool = True) -> int:
        self._require_folder(path)
        file = self._files.setdefault(path, bytearray())
        offset = len(file)
        file += data
        return offset

    def sync(self, path: Path) -> None:
        """There is no disk; only a file that is missing is told."""
        self._file(path)

    def unsynced(self) -> Disk:
        return self

    def sync_all(self, paths: Iterable[Path]) -> None:
        """Nothing to do: there is no disk."""

    def truncate(self, path: Path, length: int) -> None:
        data = self._file(path)
        self._files[path] = data[:length].ljust(length, b"\0")

    def rename(self, old: Path, new: Path) -> None:
        if not self.exists(old):
            raise _missing(old)
        for path in self._below(old, self._files):
            self._files[new / path.relative_to(old)] = self._files.pop(path)
        for path in self._below(old, self._folders):
            self._folders.remove(path)
            self._folders.add(new / path.relative_to(old))

    def clone(self, source: Path, target: Path) -> Measured:
        if not self.exists(source):
            raise _missing(source)
        total = Measured()
        for path in self._below(source, self._folders):
            self._folders.add(target / path.relative_to(source))
        for path in self._below(source, self._files):
            if not path.name.endswith(PASSING):
                self._files[target / path.relative_to(source)] = bytearray(self._files[path])
                total.take(len(self._files[path]))
                total.copied += 1
        return total

    def measure(self, *folders: Path) -> Measured:
        total = Measured()
        for path, data in list(self._files.items()):
            if any(folder in path.parents for folder in folders):
                total.take(len(data))
        return total

    def below(self, folder: Path) -> Disk:
        return SessionDisk(folder, self)

    def make_folder(self, path: Path) -> None:
        self._folders.update({path, *path.parents})

    def names(self, path: Path) -> list[str]:
        entries = [*self._files, *self._folders]
        return sorted({entry.name for entry in entries if entry.parent == path and entry != path})

    def remove(self, path: Path) -> None:
        for file in self._below(path, self._files):
            del self._files[file]
        self._folders.difference_update(self._below(path, self._folders))

    def _below(self, path: Path, entries: Iterable[Path]) -> list[Path]:
        """``path`` and all that is in it. A list of its own: other threads go on with other files meanwhile."""
        return [entry for entry in list(entries) if entry == path or path in entry.parents]

    def _file(self, path: Path) -> bytearray:
        if path not in self._files:
            raise _missing(path)
        return self._files[path]

    def _require_folder(self, path: Path) -> None:
        if path.parent not in self._folders:
            raise folder_gone(shown_path(self, path))


def _missing(path: Path) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "not there in this session", path.name)
