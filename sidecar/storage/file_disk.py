"""The data folder on a real disk. Bytes are safe after an fsync of the file and, where the system can, of its folder.

Links, pipes and devices below the data folder are refused: a save must never be read from, or written to, a place
outside it, nor wait for one.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sidecar.errors import Corrupt, LimitReached, LorekeeperError, NotReady, Reason, Unavailable
from sidecar.storage.cloning import Measured, TreeWalk
from sidecar.storage.disk import Disk, folder_gone

# Locks for files that are replaced; two that share one wait for each other.
_REPLACING = 64
# Up to so many files and folders are made safe one by one.
_FEW = 32
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_MOUNT_POINT = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


# Device, number, length and last change of a file: another one after whatever is done to it.
_State = tuple[int, int, int, int]


class _Writing:
    """What all disks on one data folder share: whether the system takes writes, the locks by which a file is replaced
    once at a time (``actor.json`` may be written for a document and for records at the same moment), and which files a
    failing disk left with half of an addition at their end."""

    def __init__(self, hear: Callable[[bool], None]) -> None:
        self._hear = hear
        self._works = True
        self._torn: dict[Path, tuple[_State, int]] = {}
        self._replacing = tuple(threading.Lock() for _ in range(_REPLACING))

    def replacing(self, path: Path) -> threading.Lock:
        """The lock of a file that is replaced."""
        return self._replacing[hash(path) % _REPLACING]

    def is_torn(self, path: Path, descriptor: int, whole: int) -> None:
        """An addition to an open file failed and could not be cut off again behind its first ``whole`` bytes."""
        self._torn[path] = _state(os.fstat(descriptor)), whole

    def whole(self, path: Path, status: os.stat_result) -> int:
        """How long a file is without what is torn, where nobody has changed it since."""
        state, whole = self._torn.get(path, (None, 0))
        return whole if state == _state(status) else status.st_size

    def is_whole(self, path: Path) -> None:
        """A file is whole again."""
        self._torn.pop(path, None)

    def tell(self, *, works: bool) -> None:
        """Pass on what has changed."""
        if self._works != works:
            self._works = works
            self._hear(works)


class FileDisk:
    """The data folder. ``durable=False`` leaves out fsync (durability = "relaxed").

    ``writable`` hears False when the system begins to refuse writes, and True at the first that works again.
    ``writing`` is what it shares with another disk on the same folder.
    """

    def __init__(
        self,
        root: Path,
        *,
        durable: bool = True,
        writable: Callable[[bool], None] = lambda _writable: None,
        writing: _Writing | None = None,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self._inside = str(self.root) + os.sep
        self._durable = durable
        self._writing = writing or _Writing(writable)

    def exists(self, path: Path) -> bool:
        return os.path.lexists(path)

    def is_folder(self, path: Path) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        with self._told(path), self._opened(path) as file:
            file.seek(offset)
            return file.read() if length is None else file.read(length)

    def read_parts(self, path: Path, parts: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        try:
            with self._told(path), self._opened(path) as file:
                for offset, length in parts:
                    file.seek(offset)
                    yield file.read(length)
        except FileNotFoundError:
            return

    def _opened(self, path: Path) -> BinaryIO:
        self._refuse_links(path)
        return os.fdopen(os.open(path, os.O_RDONLY | _NO_FOLLOW | _BINARY), "rb")

    def size(self, path: Path) -> int:
        with self._told(path):
            try:
                return path.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                return 0

    def replace(self, path: Path, data: bytes) -> None:
        self._refuse_links(path.parent)
        temporary = path.with_name(path.name + ".tmp")
        with self._writing.replacing(path), self._told(path, writing=True):
            try:
                self._write_new(temporary, data)
                self._put_or_undo(temporary, path)
            except BaseException:
                with suppress(OSError):  # what is left of it is written over, or found by 'doctor'
                    temporary.unlink(missing_ok=True)
                raise
        self._writing.tell(works=True)

    def _put_or_undo(self, temporary: Path, path: Path) -> None:
        """Rename ``temporary``. A folder that cannot be made safe then gets its old file back: who is told of an error
        has changed nothing."""
        old = self._kept_open(path)
        try:
            os.replace(temporary, path)
            try:
                self._sync_folder(path.parent)
            except OSError:
                self._put_back(path, old)
                raise
        finally:
            if old is not None:
                os.close(old)

    def _kept_open(self, path: Path) -> int | None:
        """The file that is about to be replaced, where folders are made safe; None where there is none."""
        if not self._durable or os.name == "nt":
            return None
        try:
            return os.open(path, os.O_RDONLY | _NO_FOLLOW | os.O_NONBLOCK)  # a pipe is waited for by nobody
        except OSError:  # nothing, or a link, which was replaced and is not followed
            return None

    def _put_back(self, path: Path, old: int | None) -> None:
        with suppress(OSError):  # a disk that takes nothing at all keeps what it has
            if old is None:
                path.unlink()
                return
            temporary = path.with_name(path.name + ".tmp")
            with os.fdopen(os.dup(old), "rb") as file:
                self._write_new(temporary, file.read())
            os.replace(temporary, path)

    def _write_new(self, path: Path, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:  # a kill left it behind
            path.unlink()
            descriptor = os.open(path, flags, 0o600)
        try:
            _write_all(descriptor, data)
            self._sync_file(descriptor)
        finally:
            os.close(descriptor)

    def append(self, path: Path, data: bytes, *, sync: bool = True) -> int:
        self._refuse_links(path)
        with self._told(path, writing=True):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_FOLLOW | _BINARY
            descriptor = self._open_apart(path, flags)
            try:
                offset = os.fstat(descriptor).st_size
                with self._undone(path, descriptor, offset):
                    _write_all(descriptor, data)
                    if sync:
                        self._sync_file(descriptor)
                    if sync and offset == 0:
                        self._sync_folder(path.parent)
            finally:
                os.close(descriptor)
        self._writing.tell(works=True)
        return offset

    def _open_apart(self, path: Path, flags: int) -> int:
        """Open a file to change it in place: first taken apart from its other names, which a checkpoint holds, and
        from what is torn, behind which nothing could be read."""
        descriptor = os.open(path, flags, 0o600)
        status = os.fstat(descriptor)
        whole = self._writing.whole(path, status)
        if status.st_nlink <= 1 and whole == status.st_size:
            return descriptor
        os.close(descriptor)
        self.replace(path, self.read(path, 0, whole))
        self._writing.is_whole(path)
        return os.open(path, flags, 0o600)

    @contextmanager
    def _undone(self, path: Path, descriptor: int, length: int) -> Iterator[None]:
        """Cut the file back to ``length`` where adding to it fails, at the latest before the next addition."""
        try:
            yield
        except BaseException:
            try:
                os.ftruncate(descriptor, length)
            except OSError:
                self._writing.is_torn(path, descriptor, length)
            raise

    def sync(self, path: Path) -> None:
        with self._told(path, writing=True):
            descriptor = os.open(path, os.O_RDWR | _NO_FOLLOW | _BINARY)
            try:
                self._sync_file(descriptor)
            finally:
                os.close(descriptor)
            self._sync_folder(path.parent)

    def unsynced(self) -> Disk:
        return FileDisk(self.root, durable=False, writing=self._writing)

    def sync_all(self, paths: Iterable[Path]) -> None:
        files = list(map(str, paths))
        with self._told(self.root, writing=True):
            self._sync_paths([*files, *{str(Path(file).parent) for file in files}])

    def truncate(self, path: Path, length: int) -> None:
        self._refuse_links(path)
        with self._told(path, writing=True):
            descriptor = self._open_apart(path, os.O_RDWR | _NO_FOLLOW | _BINARY)
            try:
                os.ftruncate(descriptor, length)
                self._sync_file(descriptor)
            finally:
                os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        self._refuse_links(old)
        self._refuse_links(new.parent)
        with self._told(new, writing=True):
            os.replace(old, new)
            try:
                for folder in {old.parent, new.parent}:
                    self._sync_folder(folder)
            except OSError:
                with suppress(OSError):
                    os.replace(new, old)
                raise

    def make_folder(self, path: Path) -> None:
        if self.is_folder(path):
            self._refuse_links(path)
            return
        if path != self.root:
            self.make_folder(path.parent)
        with self._told(path, writing=True):
            try:
                path.mkdir(mode=0o700, parents=path == self.root)
            except FileExistsError:
                self._refuse_links(path)
                if not self.is_folder(path):
                    raise
            self._sync_folder(path.parent)

    def names(self, path: Path) -> list[str]:
        self._refuse_links(path)
        with self._told(path):
            try:
                return sorted(os.listdir(path))
            except FileNotFoundError:
                return []

    def remove(self, path: Path) -> None:
        import shutil

        self._refuse_links(path.parent)
        with self._told(path, writing=True):
            try:
                if self.is_folder(path):
                    shutil.rmtree(path)
                else:
                    path.unlink()
            except FileNotFoundError:
                return
            self._sync_folder(path.parent)

    def clone(self, source: Path, target: Path) -> Measured:
        self._refuse_links(source)
        self._refuse_links(target.parent)
        with self._told(target, writing=True):
            walk = TreeWalk(self._refuse_link)
            total = walk.clone(source, target)
            self._sync_paths([*walk.written, str(target.parent)])
            return total

    def measure(self, *folders: Path) -> Measured:
        with self._told(self.root):
            return TreeWalk(self._refuse_link).measure(folders)

    def below(self, folder: Path) -> Disk:
        return FileDisk(folder, durable=self._durable, writing=self._writing)

    def _sync_paths(self, paths: Sequence[str]) -> None:
        """Make many files and folders safe. One by one, a thousand take as long as a thousand writes."""
        if self._durable and sys.platform == "linux" and len(paths) > _FEW:
            os.sync()  # which waits for the disk there, and not everywhere else
            return
        for path in paths if self._durable else ():
            if os.name != "nt" or not Path(path).is_dir():
                descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def _sync_file(self, descriptor: int) -> None:
        if self._durable:
            os.fsync(descriptor)

    def _sync_folder(self, path: Path) -> None:
        if self._durable:
            sync_folder(path)

    def _refuse_links(self, path: Path) -> None:
        """Every part below the data folder must be what it seems. Texts: each write comes through here."""
        whole = str(path)
        end = len(self._inside) if whole.startswith(self._inside) else len(whole)
        while end < len(whole):
            end = whole.find(os.sep, end + 1)
            end = len(whole) if end < 0 else end
            self._refuse_link(whole[:end])

    def _refuse_link(self, path: str | Path) -> None:
        if _leads_elsewhere(path):
            shown = self._shown(Path(path))
            raise Corrupt(
                f"'{shown}' in the data folder is a link or a device; put a real file or folder there",
                reason=Reason.STORAGE_UNSAFE,
                file=shown,
            )

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.name

    @contextmanager
    def _told(self, path: Path, *, writing: bool = False) -> Iterator[None]:
        """Turn the system's refusals into errors that say what to do; a missing file stays FileNotFoundError.

        With ``writing``, notice when the system begins to refuse writes, and tell of a folder that is gone.
        """
        try:
            yield
        except FileNotFoundError as error:
            if writing and not os.path.lexists(path.parent):
                raise folder_gone(self._shown(path)) from error
            raise
        except OSError as error:
            if writing and error.errno in _FULL | _READ_ONLY:
                self._writing.tell(works=False)
            raise disk_error(error, self._shown(path)) from error


def _state(status: os.stat_result) -> _State:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def sync_folder(folder: Path) -> None:
    """Make a folder's names safe; Windows does that by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_error(error: OSError, shown: str) -> LorekeeperError:
    """What a client is told of an operating-system error; ``shown`` is the path below the data folder."""
    if error.errno in _FULL:
        return LimitReached(
            f"the disk is full: '{shown}' was left as it was; make room and try again",
            reason=Reason.STORAGE_FULL,
            file=shown,
        )
    if error.errno in _READ_ONLY:
        return NotReady(
            f"the data folder does not allow writing '{shown}'; make it writable and try again",
            reason=Reason.STORAGE_READ_ONLY,
            file=shown,
        )
    return Unavailable(
        f"the disk failed at '{shown}' ({errno.errorcode.get(error.errno or 0, 'unknown')}); it was left as it was",
        reason=Reason.STORE_FAILED,
        file=shown,
    )


def require_no_link(path: Path) -> None:
    """For files that are not read or written through a :class:`Disk`. Raises OSError where the file, or the folder that
    it lies in, is a link or a device."""
    if _leads_elsewhere(path.parent) or _leads_elsewhere(path):
        raise OSError(f"'{path.name}' or its folder is a link or a device")


def _leads_elsewhere(path: str | Path) -> bool:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return not plain or getattr(status, "st_reparse_tag", 0) == _MOUNT_POINT


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
