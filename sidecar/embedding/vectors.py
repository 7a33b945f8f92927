"""The vector cache of a whole data folder: one vector per (identity, text hash), shared by all saves.

    identities   id, name (the identity's text form), dimensions
    vectors      id, identity, hash (32 bytes), value (float32, little endian)

Derived: may be deleted at any moment, also while it is open; what is gone is embedded again. A damaged or foreign file
is thrown away and that is told, a damaged row is left out. Synchronous and safe from several threads; call it in a
thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sidecar.diagnostics import Diagnostic, Report, Severity
from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.errors import Reason, Unavailable
from sidecar.storage.derived_database import content_version
from sidecar.storage.file_disk import require_no_link

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

BATCH = 500
"""Rows of one transaction: nobody waits long for the lock."""

_PAGE_BYTES = 32_768
"""Rows of 1.5 to 16 KB fill such pages well."""

_VALUE_BYTES = 4
_SLACK = 1.2
_BY_TEXT = "identity IN (SELECT id FROM identities)"
"""What lets the index by identity and hash be used where any identity will do."""

_UNIT_TOLERANCE = 1e-3
_SCHEMA = """
CREATE TABLE IF NOT EXISTS identities (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS vectors (
    id INTEGER PRIMARY KEY, identity INTEGER NOT NULL, hash BLOB NOT NULL, value BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS vectors_by_text ON vectors (identity, hash);
"""
_ALL_COLUMNS = (
    "SELECT i.id, i.name, i.dimensions, v.id, v.identity, v.hash, v.value FROM identities AS i, vectors AS v LIMIT 0"
)


class VectorStore:
    """``path`` is ``index/vectors.sqlite3``; None keeps everything in memory (session mode)."""

    def __init__(self, path: Path | None, report: Report = lambda _diagnostic: None) -> None:
        self._path = path
        self._report = report
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None

    def load(
        self, identity: EmbeddingIdentity, hashes: Sequence[bytes]
    ) -> Iterator[tuple[bytes, NDArray[np.float32] | None]]:
        """The vectors that are there, one by one in no certain order: unit vectors by text hash, None for one that is
        damaged (of a wrong length, not finite, not of length one)."""
        for key, value in self._values(identity, hashes):
            yield key, _unit_vector(value, identity)

    def damaged(self, identity: EmbeddingIdentity, hashes: Sequence[bytes]) -> list[bytes]:
        """The hashes of those that are damaged. Reads them all, a batch at a time."""
        return [key for key, vector in self.load(identity, hashes) if vector is None]

    def elsewhere(self, identity: EmbeddingIdentity, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of ``hashes`` that have a vector of another identity."""
        found: set[bytes] = set()
        for part in _parts(hashes):
            sql = (
                f"SELECT DISTINCT hash FROM vectors WHERE hash IN ({','.join('?' * len(part))}) "
                "AND identity IN (SELECT id FROM identities WHERE name <> ?)"
            )
            given = (*part, str(identity))
            rows = self._with(lambda db, sql=sql, given=given: db.execute(sql, given).fetchall())  # type: ignore[misc]
            found.update(key for (key,) in rows)
        return found

    def remove(self, hashes: Sequence[bytes], *, identity: EmbeddingIdentity | None = None) -> int:
        """Remove the vectors of texts, of one identity or of all; how many there were."""
        only = " AND identity = (SELECT id FROM identities WHERE name = ?)" if identity else ""
        return sum(self._with(lambda db, part=part: _forget(db, part, only, identity)) for part in _parts(hashes))  # type: ignore[misc]

    def known(self, hashes: Sequence[bytes]) -> list[bytes]:
        """Those of ``hashes`` that have a vector of any identity."""
        found: list[bytes] = []
        for part in _parts(hashes):
            sql = f"SELECT DISTINCT hash FROM vectors WHERE {_BY_TEXT} AND hash IN ({','.join('?' * len(part))})"
            rows = self._with(lambda db, sql=sql, part=part: db.execute(sql, part).fetchall())  # type: ignore[misc]
            found += (key for (key,) in rows)
        return found

    def empty_log(self) -> None:
        """Have the log of the file hold nothing of what was removed."""
        self._with(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())

    def missing(self, identity: EmbeddingIdentity, hashes: Sequence[bytes]) -> list[bytes]:
        """Those of ``hashes`` that have no vector, in order and once each."""
        size = identity.dimensions * _VALUE_BYTES
        there: set[bytes] = set()
        for part in _parts(hashes):
            lengths: list[tuple[bytes, int]] = self._rows(identity, part, "length(value)")
            there.update(key for key, length in lengths if length == size)
        return [key for key in dict.fromkeys(hashes) if key not in there]

    def put_many(self, identity: EmbeddingIdentity, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Keep unit vectors by text hash. Raises ValueError for a vector of other dimensions."""
        if any(vector.shape != (identity.dimensions,) for vector in vectors.values()):
            raise ValueError(f"a vector that has not {identity.dimensions} dimensions")
        for part in _parts(vectors.items()):
            rows = [(key, vector.astype("<f4").tobytes()) for key, vector in part]
            self._with(lambda db, rows=rows: _put(db, identity, rows))  # type: ignore[misc]

    def count(self, identity: EmbeddingIdentity | None = None) -> int:
        """How many vectors there are, of one identity or of all."""
        if identity is None:
            return self._with(lambda db: int(db.execute("SELECT count(*) FROM vectors").fetchone()[0]))
        sql = "SELECT count(*) FROM vectors WHERE identity = (SELECT id FROM identities WHERE name = ?)"
        return self._with(lambda db: int(db.execute(sql, (str(identity),)).fetchone()[0]))

    def version(self) -> Hashable:
        """Another one after every change, by whomever it was made."""
        return self._with(lambda db: content_version(db, self._path))

    def bytes_on_disk(self) -> int:
        """Size of the file, 0 in memory or where there is none yet."""
        try:
            return self._path.stat().st_size if self._path else 0
        except OSError:
            return 0

    def collect(self, identity: EmbeddingIdentity, in_use: Callable[[Sequence[bytes]], Iterable[bytes]]) -> int:
        """Remove the vectors whose text nobody has any more; how many.

        ``in_use`` is asked, batch by batch and right before the removal, which hashes are still wanted. The file
        shrinks with what it holds.
        """
        removed = 0
        last = 0
        while batch := self._after(identity, last):
            last = batch[-1][0]
            wanted = set(in_use([key for _, key in batch]))
            unused = [row for row, key in batch if key not in wanted]
            removed += self._with(lambda db, unused=unused: _remove(db, unused))  # type: ignore[misc]
        self._shrink()
        return removed

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _values(self, identity: EmbeddingIdentity, hashes: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """As they lie on disk, so that each page is read once, however many there are: hashes know no neighbours."""
        places: list[int] = []
        for part in _parts(hashes):
            found: list[tuple[bytes, int]] = self._rows(identity, part, "id")
            places += (place for _, place in found)
        places.sort()
        for few in _parts(places):
            sql = f"SELECT hash, value FROM vectors WHERE id IN ({','.join('?' * len(few))})"
            yield from self._with(lambda db, sql=sql, few=few: db.execute(sql, few).fetchall())  # type: ignore[misc]

    def _rows(self, identity: EmbeddingIdentity, hashes: Sequence[bytes], column: str) -> list[tuple[bytes, T]]:
        marks = ",".join("?" * len(hashes))
        sql = (
            f"SELECT hash, {column} FROM vectors WHERE identity = (SELECT id FROM identities WHERE name = ?) "
            f"AND hash IN ({marks})"
        )
        return self._with(lambda db: db.execute(sql, (str(identity), *hashes)).fetchall())

    def _after(self, identity: EmbeddingIdentity, last: int) -> list[tuple[int, bytes]]:
        """The next batch as it lies on disk, so that a removal touches few pages."""
        sql = (
            "SELECT id, hash FROM vectors NOT INDEXED WHERE id > ? "
            "AND identity = (SELECT id FROM identities WHERE name = ?) ORDER BY id LIMIT ?"
        )
        return self._with(lambda db: db.execute(sql, (last, str(identity), BATCH)).fetchall())

    def _shrink(self) -> None:
        """Rewrite the file where it is a fifth larger than its rows: removed rows leave holes."""
        sql = "SELECT coalesce(sum(length(value) + length(hash)), 0) FROM vectors"
        live = self._with(lambda db: int(db.execute(sql).fetchone()[0]))
        if self.bytes_on_disk() > live * _SLACK + 8 * _PAGE_BYTES:
            self._with(lambda db: db.execute("VACUUM"))
            self.empty_log()

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work, a second time where it fails; a file that is damaged is thrown away in between.

        Raises STORE_FAILED where the disk is full or refuses.
        """
        import sqlite3

        with self._lock:
            try:
                return work(self._connection())
            except (sqlite3.Error, OSError, _Foreign) as error:
                code = getattr(error, "sqlite_errorcode", 0)
                damaged = isinstance(error, _Foreign) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            try:
                self._drop()
                if damaged:
                    self._throw_away()
                return work(self._connection())
            except (sqlite3.Error, OSError, _Foreign) as error:
                raise _unavailable() from error

    def _connection(self) -> sqlite3.Connection:
        if self._open is not None and self._is_same_file():
            return self._open
        self._drop()
        self._open = _connect(self._path)
        self._file = self._path.stat() if self._path else None
        return self._open

    def _is_same_file(self) -> bool:
        """Whether the file that is open still has its name: somebody may have deleted it."""
        if self._path is None or self._file is None:
            return True
        try:
            return os.path.samestat(self._path.stat(), self._file)
        except OSError:
            return False

    def _drop(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    def _throw_away(self) -> None:
        if self._path is None:
            return
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        what = "the vector cache could not be read and was thrown away; vectors are made again"
        self._report(Diagnostic("vectors_thrown_away", what, Severity.WARNING, {"file": self._path.name}))


class _Foreign(Exception):
    """The file has tables of these names that are none of ours."""


def _unit_vector(value: Any, identity: EmbeddingIdentity) -> NDArray[np.float32] | None:
    """The vector that a row holds; None where the row is damaged."""
    import numpy as np

    if type(value) is not bytes or len(value) != identity.dimensions * _VALUE_BYTES:
        return None
    vector = np.frombuffer(value, dtype="<f4")
    whole = abs(float(vector @ vector) - 1) <= _UNIT_TOLERANCE
    return vector.astype(np.float32, copy=False) if whole else None


def _connect(path: Path | None) -> sqlite3.Connection:
    import sqlite3

    if path is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_no_link(path)
        if not path.exists():
            Path(f"{path}-wal").unlink(missing_ok=True)
    connection = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")  # what is removed leaves the pages, too
        _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    """Raises _Foreign where there are others already."""
    import sqlite3

    try:
        connection.executescript(_SCHEMA)
        connection.execute(_ALL_COLUMNS)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:  # the statement does not fit, whatever the disk does
            raise _Foreign from error
        raise


def _put(db: sqlite3.Connection, identity: EmbeddingIdentity, rows: Sequence[tuple[bytes, bytes]]) -> None:
    with _transaction(db):
        db.execute(
            "INSERT OR IGNORE INTO identities (name, dimensions) VALUES (?, ?)", (str(identity), identity.dimensions)
        )
        number = db.execute("SELECT id FROM identities WHERE name = ?", (str(identity),)).fetchone()[0]
        db.executemany(
            "INSERT OR REPLACE INTO vectors (identity, hash, value) VALUES (?, ?, ?)",
            [(number, key, value) for key, value in rows],
        )


def _remove(db: sqlite3.Connection, rows: Sequence[int]) -> int:
    with _transaction(db):
        return max(0, db.executemany("DELETE FROM vectors WHERE id = ?", [(row,) for row in rows]).rowcount)


def _forget(db: sqlite3.Connection, hashes: Sequence[bytes], only: str, identity: EmbeddingIdentity | None) -> int:
    given = (*hashes, str(identity)) if identity else tuple(hashes)
    with _transaction(db):
        sql = f"DELETE FROM vectors WHERE {_BY_TEXT} AND hash IN ({','.join('?' * len(hashes))}){only}"
        return max(0, db.execute(sql, given).rowcount)


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _parts(items: Iterable[T]) -> Iterator[list[T]]:
    """The items in batches."""
    rest = iter(items)
    while part := list(islice(rest, BATCH)):
        yield part


def _unavailable() -> Unavailable:
    return Unavailable(
        "the vector cache cannot be used; vectors are made again: look at the disk", reason=Reason.STORE_FAILED
    )
