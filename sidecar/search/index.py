"""The derived index of one save: what is known of its owners, and the words of their records.

    owners   folder, address (JSON), size of its journal, number of its last row, records, targets (JSON)
    words    owner, hash of the record's content → length in words, terms joined by spaces

An entry is tied to its record by the content's hash alone: where a journal was exchanged, what is left of the same
content is used again and the rest is removed. Nothing here is needed to answer: what the index does not know is read
from the journals. An owner's words lie side by side, so that reading them costs what the owner has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        PRIMARY KEY (owner, hash)
    ) WITHOUT ROWID
    """,
)
_OWNERS = "SELECT folder, address, size, last, records, targets FROM owners"
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


@dataclass(frozen=True, slots=True)
class WordsRow:
    """The words of one record's content."""

    hash: str
    length: int
    terms: str


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
        query = f"SELECT hash, length, terms FROM words WHERE {_OWN}"
        found = self._database.run(lambda database: database.execute(query, (folder,)).fetchall())
        return {row[0]: WordsRow(*row) for row in found or ()}

    def hashes(self, folder: str) -> set[str]:
        """The content hashes of an owner's entries."""
        query = f"SELECT hash FROM words WHERE {_OWN}"
        found = self._database.run(lambda database: database.execute(query, (folder,)).fetchall())
        return {row[0] for row in found or ()}

    def write(self, updates: Iterable[OwnerUpdate]) -> bool:
        """Take in what changed, in one transaction."""
        return self._database.run(lambda database: _write(database, updates)) is not None

    def remove(self, folders: Iterable[str]) -> bool:
        """Forget owners with all their words."""
        return self._database.run(lambda database: _remove(database, folders)) is not None

    def distrust(self) -> None:
        """Take what is known of owners for unfinished, so that it is compared with their journals."""
        self._database.run(lambda database: database.execute("UPDATE owners SET size = -1"))

    def size(self) -> int:
        """Size of the file in bytes."""
        return self._database.size()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def delete(self) -> None:
        """Throw the file away."""
        self._database.delete()


def _write(database: sqlite3.Connection, updates: Iterable[OwnerUpdate]) -> bool:
    for update in updates:
        row = update.row
        database.execute(
            "INSERT INTO owners (folder, address, size, last, records, targets) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (folder) DO UPDATE SET size = excluded.size, last = excluded.last, "
            "records = excluded.records, targets = excluded.targets",
            (row.folder, row.address, row.size, row.last, row.records, row.targets),
        )
        (owner,) = database.execute("SELECT owner FROM owners WHERE folder = ?", (row.folder,)).fetchone()
        database.executemany("DELETE FROM words WHERE owner = ? AND hash = ?", ((owner, old) for old in update.removed))
        database.executemany(
            "INSERT OR REPLACE INTO words VALUES (?, ?, ?, ?)",
            ((owner, words.hash, words.length, words.terms) for words in update.added),
        )
    return True


def _remove(database: sqlite3.Connection, folders: Iterable[str]) -> bool:
    for folder in folders:
        database.execute(f"DELETE FROM words WHERE {_OWN}", (folder,))
        database.execute("DELETE FROM owners WHERE folder = ?", (folder,))
    return True
