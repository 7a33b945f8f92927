"""The derived index of one save: what is known of its owners, and the words of their records.

    owners   folder, address (JSON), size of its journal, number of its last row, records, targets (JSON), how many of
             the records are archived turns
    words    owner, hash of the record's content → length in words, terms joined by spaces, hash of the text to embed
    near     owner, hash of the record's content → id of an earlier record that says nearly the same

An entry is tied to its record by the content's hash alone: where a journal was exchanged, what is left of the same
content is used again and the rest is removed. Nothing here is needed to answer: what the index does not know is read
from the journals. An owner's words lie side by side, so that reading them costs what the owner has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sidecar.storage.derived_database import DerivedDatabase

if TYPE_CHECKING:
    import sqlite3

MIGRATIONS = (
    """
    CREATE TABLE owners (
        owner INTEGER PRIMARY KEY,
        folder TEXT NOT NULL UNIQUE,
        address TEXT NOT NULL,
        size INTEGER NOT NULL,
        last INTEGER NOT NULL,
        records INTEGER NOT NULL,
        targets TEXT NOT NULL
    );
    CREATE TABLE words (
        owner INTEGER NOT NULL,
        hash TEXT NOT NULL,
        length INTEGER NOT NULL,
        terms TEXT NOT NULL,
        text BLOB NOT NULL,
        PRIMARY KEY (owner, hash)
    ) WITHOUT ROWID;
    CREATE INDEX words_by_text ON words (text);
    CREATE TABLE near (
        owner INTEGER NOT NULL,
        hash TEXT NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (owner, hash)
    ) WITHOUT ROWID
    """,
    "ALTER TABLE owners ADD COLUMN archived INTEGER NOT NULL DEFAULT 0",
)
#: Removes the words; their owners count as unfinished until they are written again.
OUTDATED = "DELETE FROM words; UPDATE owners SET size = -1, records = 0"
_OWNERS = "SELECT folder, address, size, last, records, targets, archived FROM owners"
_WHOLE = (
    "(typeof(hash) = 'text' AND typeof(length) = 'integer' AND length >= 0 AND typeof(terms) = 'text' "
    "AND typeof(text) = 'blob' AND length(text) IN (0, 32))"
)
_OWN = "owner = (SELECT owner FROM owners WHERE folder = ?)"


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """What the index knows of an owner as a whole; ``folder`` is its name."""

    folder: str
    address: str
    size: int
    last: int
    records: int
    targets: str
    archived: int


@dataclass(frozen=True, slots=True)
class WordsRow:
    """The words of one record's content. ``text`` is the hash by which its vector is kept, empty where there is nothing
    to embed."""

    hash: str
    length: int
    terms: str
    text: bytes


@dataclass(frozen=True, slots=True)
class OwnerUpdate:
    """How an owner's entries become what ``row`` says."""

    row: OwnerRow
    added: Sequence[WordsRow] = ()
    removed: Sequence[str] = ()


class Index:
    """Reads answer nothing, and writes False, while the file cannot be used."""

    def __init__(self, database: DerivedDatabase) -> None:
        self._database = database

    def owners(self) -> list[OwnerRow]:
        """All owners that are known."""
        return self._database.run(lambda database: [OwnerRow(*row) for row in database.execute(_OWNERS)]) or []

    def owner(self, folder: str) -> OwnerRow | None:
        """One owner."""
        query = f"{_OWNERS} WHERE folder = ?"
        row = self._database.run(lambda database: database.execute(query, (folder,)).fetchone())
        return OwnerRow(*row) if row else None

    def words(self, folder: str) -> dict[str, WordsRow]:
        """The words of all of an owner's records, by content hash."""
        query = f"SELECT hash, length, terms, text FROM words WHERE {_OWN} AND {_WHOLE}"
        found = self._database.run(lambda database: database.execute(query, (folder,)).fetchall())
        return {row[0]: WordsRow(*row) for row in found or ()}

    def hashes(self, folder: str) -> set[str]:
        """The content hashes of an owner's entries, damaged ones left out."""
        query = f"SELECT hash FROM words WHERE {_OWN} AND {_WHOLE}"
        found = self._database.run(lambda database: database.execute(query, (folder,)).fetchall())
        return {row[0] for row in found or ()}

    def texts(self, folder: str | None = None) -> list[tuple[str, bytes]]:
        """The content hash of each record, of one owner or of all, with the hash of its text to embed."""
        query = f"SELECT hash, text FROM words WHERE {_WHOLE}" + (f" AND {_OWN}" if folder else "")
        given = (folder,) if folder else ()
        return self._database.run(lambda database: database.execute(query, given).fetchall()) or []

    def damaged(self, folder: str | None = None) -> dict[str, int]:
        """How many entries of one owner or of all are not what was written, by the owner's folder."""
        only = " AND folder = ?" if folder else ""
        query = f"SELECT folder, count(*) FROM words JOIN owners USING (owner) WHERE NOT {_WHOLE}{only} GROUP BY folder"
        given = (folder,) if folder else ()
        return dict(self._database.run(lambda database: database.execute(query, given).fetchall()) or ())

    def drop_damaged(self, folder: str) -> int:
        """Remove the entries of an owner that are not what was written, to be written again; how many."""
        return self._database.run(lambda database: _drop_damaged(database, folder)) or 0

    def note_near(self, folder: str, near: Mapping[str, str]) -> None:
        """Keep, by content hash, the ids of records that say nearly the same."""
        query = "INSERT OR REPLACE INTO near SELECT owner, ?, ? FROM owners WHERE folder = ?"
        rows = [(content, record_id, folder) for content, record_id in near.items()]
        self._database.run(lambda database: database.executemany(query, rows))

    def near(self, folder: str) -> dict[str, str]:
        """What :meth:`note_near` kept of an owner."""
        query = f"SELECT hash, record FROM near WHERE {_OWN}"
        return dict(self._database.run(lambda database: database.execute(query, (folder,)).fetchall()) or ())

    def uses(self, texts: Sequence[bytes], *, but: str | None = None) -> set[bytes] | None:
        """Which of a few texts any record has, those of the owner ``but`` left out; None where that cannot be told."""
        return self._database.run(lambda database: _uses(database, texts, but=but))

    def surely_uses(self, texts: Sequence[bytes]) -> set[bytes] | None:
        """The same; None also where the words of any owner may be missing here."""
        return self._database.run(lambda database: None if _unfinished(database) else _uses(database, texts))

    def write(self, updates: Iterable[OwnerUpdate]) -> list[bytes] | None:
        """Take in what changed, in one transaction; the texts that were removed, or None where it failed."""
        return self._removing(lambda database: _write(database, updates), makes=True)

    def remove(self, folders: Iterable[str]) -> list[bytes] | None:
        """Forget owners with all their words; as :meth:`write`."""
        return self._removing(lambda database: _remove(database, folders))

    def _removing(
        self, work: Callable[[sqlite3.Connection], list[bytes]], *, makes: bool = False
    ) -> list[bytes] | None:
        removed = self._database.run(work, makes=makes)
        if removed:
            self._database.empty_log()
        return removed

    def distrust(self) -> None:
        """Take what is known of owners for unfinished, so that it is compared with their journals."""
        self._database.run(lambda database: database.execute("UPDATE owners SET size = -1"))

    def version(self) -> Hashable:
        """Another one after every change."""
        return self._database.version()

    def size(self) -> int:
        """Size of the file in bytes."""
        return self._database.size()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def delete(self) -> None:
        """Throw the file away."""
        self._database.delete()


def _uses(database: sqlite3.Connection, texts: Sequence[bytes], *, but: str | None = None) -> set[bytes]:
    query = f"SELECT DISTINCT text FROM words WHERE text IN ({','.join('?' * len(texts))})"
    given: tuple[Any, ...] = tuple(texts)
    if but is not None:
        query, given = f"{query} AND NOT {_OWN}", (*texts, but)
    return {row[0] for row in database.execute(query, given).fetchall()}


def _unfinished(database: sqlite3.Connection) -> bool:
    return bool(database.execute("SELECT count(*) FROM owners WHERE size < 0").fetchone()[0])


def _write(database: sqlite3.Connection, updates: Iterable[OwnerUpdate]) -> list[bytes]:
    gone: list[bytes] = []
    for update in updates:
        row = update.row
        database.execute(
            "INSERT INTO owners (folder, address, size, last, records, targets, archived) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (folder) DO UPDATE SET size = excluded.size, last = excluded.last, "
            "records = excluded.records, targets = excluded.targets, archived = excluded.archived",
            (row.folder, row.address, row.size, row.last, row.records, row.targets, row.archived),
        )
        (owner,) = database.execute("SELECT owner FROM owners WHERE folder = ?", (row.folder,)).fetchone()
        for old in update.removed:
            query = "DELETE FROM words WHERE owner = ? AND hash = ? RETURNING text"
            gone += (text for (text,) in database.execute(query, (owner, old)).fetchall())
            database.execute("DELETE FROM near WHERE owner = ? AND hash = ?", (owner, old))
        database.executemany(
            "INSERT OR REPLACE INTO words VALUES (?, ?, ?, ?, ?)",
            ((owner, words.hash, words.length, words.terms, words.text) for words in update.added),
        )
    return gone


def _drop_damaged(database: sqlite3.Connection, folder: str) -> int:
    dropped = database.execute(f"DELETE FROM words WHERE {_OWN} AND NOT {_WHOLE}", (folder,)).rowcount
    if dropped:
        database.execute("UPDATE owners SET size = -1 WHERE folder = ?", (folder,))
    return dropped


def _remove(database: sqlite3.Connection, folders: Iterable[str]) -> list[bytes]:
    gone: list[bytes] = []
    for folder in folders:
        removed = database.execute(f"DELETE FROM words WHERE {_OWN} RETURNING text", (folder,)).fetchall()
        gone += (text for (text,) in removed)
        database.execute(f"DELETE FROM near WHERE {_OWN}", (folder,))
        database.execute("DELETE FROM owners WHERE folder = ?", (folder,))
    return gone
