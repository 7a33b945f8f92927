"""An SQLite file that holds only what can be built again, and may vanish, break or be locked at any time.

Whoever uses it goes on without it: a read that cannot be made answers None, and makes no file. A file that cannot be
understood is thrown away and begun anew; one that is only busy is left alone; one that was made in another way is
emptied of what that concerns.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.storage.file_disk import require_no_link

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
_IN_MEMORY = ":memory:"
_BUSY_SECONDS = 0.2
# Nothing here outlives a power cut better than the journals that it is made from; forgotten text leaves the pages.
_SETTINGS = """
    PRAGMA auto_vacuum = FULL;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = OFF;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
"""
_PASSING = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN")


class DerivedDatabase:
    """One file, or process memory without a ``path``. Thread-safe: one call at a time."""

    def __init__(
        self, path: Path | None, migrations: Sequence[str], version: Callable[[], str], report: Report, *, outdated: str
    ) -> None:
        """``migrations`` are SQL scripts, applied once each in their order. ``version`` names everything that the
        content depends on now: where the file has another one, the script ``outdated`` removes what has to be made
        again."""
        self._path = path
        self._migrations = migrations
        self._version = version
        self._outdated = outdated
        self._made_by = ""
        self._report = report
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._unusable = False

    def run(self, work: Callable[[sqlite3.Connection], T], *, makes: bool = False) -> T | None:
        """The answer of ``work``, which is one transaction; None while the file cannot be used, and where it is not
        there, unless ``work`` makes it."""
        import sqlite3

        with self._lock:
            for _ in range(2):
                try:
                    if not (self._there() or makes):
                        return None
                    with self._open() as database:
                        answer = work(database)
                    self._unusable = False
                    return answer
                except (sqlite3.DatabaseError, OSError, ValueError) as error:
                    if _passing(error):
                        self._tell_unusable()
                        self._close()
                        return None
                    self._tell("index_thrown_away", "could not be read and was thrown away; it is built again")
                    self._delete()
            return None

    def version(self) -> Hashable:
        """Another one after every change of the content, by whomever it was made."""
        return self.run(lambda database: content_version(database, self._path))

    def empty_log(self) -> None:
        """Have what was removed leave the disk now: until then it lies in the log and in the pages behind it."""
        self.run(lambda database: database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())

    def size(self) -> int:
        """Size of the file in bytes."""
        return self._path.stat().st_size if self._path and self._path.exists() else 0

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        with self._lock:
            self._close()

    def delete(self) -> None:
        """Throw the file away."""
        with self._lock:
            self._delete()

    def _there(self) -> bool:
        if self._path is None or os.path.lexists(self._path):
            return True
        self._close()  # deleted under us: what would be written to it now is lost
        return False

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        if self._connection is None:
            if self._path is not None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                require_no_link(self._path)
            self._connection = sqlite3.connect(
                self._path or _IN_MEMORY, timeout=_BUSY_SECONDS, check_same_thread=False, cached_statements=32
            )
            self._prepare(self._connection)
        if self._made_by != self._version():
            self._make_anew(self._connection, self._version())
        return self._connection

    def _prepare(self, database: sqlite3.Connection) -> None:
        database.executescript(_SETTINGS)
        (done,) = database.execute("PRAGMA user_version").fetchone()
        if done > len(self._migrations):
            raise ValueError("written by a newer version")
        for number, migration in enumerate(self._migrations[done:], done + 1):
            database.executescript(f"BEGIN; {migration}; PRAGMA user_version = {number}; COMMIT;")
        database.execute("CREATE TABLE IF NOT EXISTS made_by (version TEXT NOT NULL)")
        made_by = database.execute("SELECT version FROM made_by").fetchone()
        self._made_by = made_by[0] if made_by else ""

    def _make_anew(self, database: sqlite3.Connection, version: str) -> None:
        """Remove what was made in another way, and note how it is made from now on, in one transaction."""
        database.executescript(f"BEGIN; {self._outdated}; DELETE FROM made_by;")
        database.execute("INSERT INTO made_by VALUES (?)", (version,))
        database.commit()
        self._made_by = version

    def _tell_unusable(self) -> None:
        """Once, and not again before it was of use: every search would."""
        if not self._unusable:
            self._tell("index_unusable", "cannot be used for now; answers come from the journals")
        self._unusable = True

    def _tell(self, code: str, what: str) -> None:
        details = {"file": self._path.name if self._path else _IN_MEMORY}
        self._report(Diagnostic(code, f"the derived index of a save {what}", Severity.WARNING, details))

    def _delete(self) -> None:
        self._close()
        for suffix in ("", "-wal", "-shm", "-journal"):
            if self._path is not None:
                with suppress(OSError):
                    self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def content_version(database: sqlite3.Connection, path: Path | None) -> Hashable:
    """Of an open database, what is another one after every write: through this connection, through another one, and
    as far as the file system tells, past SQLite."""
    (elsewhere,) = database.execute("PRAGMA data_version").fetchone()
    files = [_file_state(Path(f"{path}{suffix}")) for suffix in ("", "-wal")] if path else ()
    return database.total_changes, elsewhere, *files


def _file_state(path: Path) -> Hashable:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _passing(error: Exception) -> bool:
    """Whether the moment is at fault (locked, full, read-only) and not the file."""
    return isinstance(error, OSError) or getattr(error, "sqlite_errorname", "").startswith(_PASSING)
