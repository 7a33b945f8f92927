"""Where bytes go, as the stores see it: the data folder (``file_disk.py``) or process memory (``session_disk.py``).

Both answer the same few calls, so that stores are written once. A call returns after the bytes are safe or raises; a
failed ``replace``, ``append`` or ``rename`` leaves the file as it was. Writing into a folder that is not there raises
NotReady.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from sidecar.errors import NotReady, Reason
from sidecar.storage.cloning import Measured


class Disk(Protocol):
    """The calls that stores make. Paths lie below the data folder; bytes are never interpreted."""

    root: Path

    def exists(self, path: Path) -> bool: ...

    def is_folder(self, path: Path) -> bool: ...

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes of a file, or a part of it. Raises FileNotFoundError."""
        ...

    def read_parts(self, path: Path, parts: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """Several parts of a file, each an offset and a length; nothing where there is no file, which is opened once
        and may not be replaced before the last part is taken."""
        ...

    def size(self, path: Path) -> int:
        """Length in bytes, 0 where there is no file."""
        ...

    def replace(self, path: Path, data: bytes) -> None:
        """Put ``data`` in the file's place at once: a reader sees the old bytes or the new ones."""
        ...

    def append(self, path: Path, data: bytes, *, sync: bool = True) -> int:
        """Add ``data`` at the end in one write; the offset at which it begins.

        ``sync=False`` leaves it to a later :meth:`sync`: only for what another safe file can bring back.
        """
        ...

    def sync(self, path: Path) -> None:
        """Make earlier unsynced appends of this file safe."""
        ...

    def unsynced(self) -> Disk:
        """The same files, written without waiting for the disk: only for what another safe file can bring back, until
        :meth:`sync_all`."""
        ...

    def sync_all(self, paths: Iterable[Path]) -> None:
        """Make safe what was written to ``paths`` (and their folders) through :meth:`unsynced`, all at once."""
        ...

    def truncate(self, path: Path, length: int) -> None: ...

    def rename(self, old: Path, new: Path) -> None:
        """Move a file or a folder within one folder or between two, at once."""
        ...

    def make_folder(self, path: Path) -> None:
        """Make the folder, and those above it, private to the user; no effect where it exists."""
        ...

    def names(self, path: Path) -> list[str]:
        """Sorted names in a folder; empty where there is none."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file or a whole folder; no effect where there is none."""
        ...

    def clone(self, source: Path, target: Path) -> Measured:
        """Make the folder ``target``, which must not exist, hold what ``source`` holds now, and keep it whatever is
        written to ``source`` afterwards. What is being written or removed is left out."""
        ...

    def measure(self, *folders: Path) -> Measured:
        """How much lies in folders; nothing where there is none."""
        ...

    def below(self, folder: Path) -> Disk:
        """The same disk with ``folder`` as its root: a data folder within the data folder, for what is prepared."""
        ...


def shown_path(disk: Disk, path: Path) -> str:
    """How a file or folder is named to people: by where it lies in the data folder."""
    return path.relative_to(disk.root).as_posix()


def folder_gone(shown: str) -> NotReady:
    """What is told where a file is to be written, ``shown`` below the data folder, and its folder is missing."""
    return NotReady(
        f"'{shown}' cannot be written: its folder was removed under the running daemon; put the folder back, or "
        "restart the daemon to go on without it",
        reason=Reason.STORAGE_GONE,
        file=shown,
    )
