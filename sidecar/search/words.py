"""Where a view gets its words from: the index where it knows them, else the records themselves."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_store import RecordStore, Stored
from sidecar.memory.records import searched_text
from sidecar.search.index import Index, WordsRow
from sidecar.search.owner_view import Words

if TYPE_CHECKING:
    from sidecar.search.terms import Analyzer

# Below this many records it is quicker to cut their words again than to ask the index.
_WORTH_ASKING = 32
_KEPT = 4_096
_KEPT_CHARS = 8_192


class WordSource:
    """Thread-safe. Words of records that were just added are kept for the index, which comes behind."""

    def __init__(self, store: RecordStore, index_of: Callable[[str], Index], language: str) -> None:
        self._store = store
        self._index_of = index_of
        self._language = language
        self._recent: OrderedDict[str, WordsRow] = OrderedDict()
        self._lock = Lock()

    @cached_property
    def analyzer(self) -> Analyzer:
        """Cuts texts into words; loaded at the first need."""
        from sidecar.search.terms import Analyzer

        return Analyzer(self._language)

    def words_of(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[Words]:
        """The words of entries of a locked owner. Raises Corrupt."""
        known = self._known(owner, entries)
        missing = self.rows(owner, [entry for entry in entries if entry.content_hash not in known])
        for entry in entries:
            row = known.get(entry.content_hash) or next(missing)
            yield Words(row.length, Counter(row.terms.split(" ") if row.terms else ()))

    def rows(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[WordsRow]:
        """The words of entries of a locked owner, cut from their records. Raises Corrupt."""
        with self._lock:
            known = [self._recent.get(entry.content_hash) for entry in entries]
        missing = [entry for entry, row in zip(entries, known, strict=True) if row is None]
        whole = self._store.stored_many(owner, missing)
        for entry, row in zip(entries, known, strict=True):
            yield row or self._cut(entry, next(whole))

    def _cut(self, entry: Entry, stored: Stored) -> WordsRow:
        analysis = self.analyzer.analyse(searched_text(stored.record))
        row = WordsRow(entry.content_hash, analysis.length, " ".join(analysis.terms))
        self._keep(row)
        return row

    def _keep(self, row: WordsRow) -> None:
        if len(row.terms) > _KEPT_CHARS:
            return
        with self._lock:
            self._recent[row.hash] = row
            if len(self._recent) > _KEPT:
                self._recent.popitem(last=False)

    def _known(self, owner: OpenOwner, entries: Sequence[Entry]) -> dict[str, WordsRow]:
        return self._index_of(owner.who.save).words(owner.folder_name) if len(entries) >= _WORTH_ASKING else {}
