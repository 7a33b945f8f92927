"""One daemon owns a data folder: a lock that the system frees when the process dies, however it dies."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from sidecar.storage.file_disk import disk_error

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FolderLock:
    """``<folder>/daemon.lock``. Holds nothing until :meth:`acquire` has said yes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "daemon.lock"
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """True once this process owns the folder, False while another does. Never waits.

        Raises NotReady or LimitReached where the folder cannot be written.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError as error:
            raise disk_error(error, self._path.name) from error
        try:
            _try_lock(descriptor)
            # The owner removes the file when it leaves: a lock on a removed file owns nothing.
            if not self._is_file_of(descriptor):
                raise OSError
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the folder back and leave no file behind, but for another's; no effect when not held."""
        if self._descriptor is None:
            return
        if sys.platform != "win32":
            with suppress(OSError):
                if self._is_file_of(self._descriptor):
                    self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = None
        if sys.platform == "win32":
            # An open file cannot be removed there; if another start already took it, it stays.
            try:
                self._path.unlink(missing_ok=True)
            except OSError:
                return

    def _is_file_of(self, descriptor: int) -> bool:
        """Whether an open file is the one in the folder. Raises OSError where there is none."""
        return os.path.samestat(os.fstat(descriptor), self._path.stat(follow_symlinks=False))
