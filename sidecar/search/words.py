"""Where a view gets its words from: the index where it knows them, else the records themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from sidecar.embedding.identity import text_hash
from sidecar.memory.open_owner import OpenOwner
from sidecar.memory.owner_records import Entry
from sidecar.memory.record_store import RecordStore, Stored
from sidecar.memory.records import Record, searched_text
from sidecar.search.index import Index, WordsRow
from sidecar.search.owner_view import Words
from sidecar.search.save_languages import SaveLanguages
from sidecar.storage.keys import ActorId
from sidecar.storage.recent import Recent

if TYPE_CHECKING:
    from sidecar.search.terms import Analyzer

# Below this many records it is quicker to cut their words again than to ask the index.
_WORTH_ASKING = 32
_KEPT = 4_096
_KEPT_CHARS = 8_192
# Rises when the text that is searched or embedded is put together in another way.
_TEXT_VERSION = "text2"


def embedded_text(record: Record) -> str:
    """What is embedded of a record: what is searched of it, as far as a model can read it; empty for nothing."""
    return searched_text(record).replace("\0", " ").strip()


def words_version(analyzer: Analyzer) -> str:
    """Names everything that the words and hashes of a text depend on."""
    return f"{analyzer.version}+{_TEXT_VERSION}"


class WordSource:
    """Thread-safe. Words of records that were just added are kept for the index, which comes behind."""

    def __init__(self, store: RecordStore, index_of: Callable[[str], Index], languages: SaveLanguages) -> None:
        self._store = store
        self._index_of = index_of
        self._languages = languages
        self._recent: Recent[tuple[str, str], WordsRow] = Recent(_KEPT)
        #: Called with an owner of whom the index knows less than there is: some of it may be damaged.
        self.lacking: Callable[[ActorId], None] = lambda _who: None

    def version(self, save: str) -> str:
        """Names everything that the words and hashes of a save's texts depend on."""
        return words_version(self.analyzer(save))

    def analyzer(self, save: str) -> Analyzer:
        """Cuts the texts of a save into words; loaded at the first need."""
        return self._languages.analyzer(save)

    def cut_text(self, save: str, record: Record) -> str:
        """What is searched of a record that has more words than are searched; empty for all others."""
        from sidecar.search.terms import surely_whole

        given = (record.payload, record.text, record.head.speaker, *record.head.tags)
        if surely_whole(sum(map(len, given)), plain=all(map(str.isascii, given)) and "\\u" not in record.payload):
            return ""
        text = searched_text(record)
        return text if self.analyzer(save).analyse(text).cut else ""

    def words_of(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[Words]:
        """The words of entries of a locked owner. Raises Corrupt."""
        known = self._known(owner, entries)
        missing = self.rows(owner, [entry for entry in entries if entry.content_hash not in known])
        for entry in entries:
            row = known.get(entry.content_hash) or next(missing)
            yield Words(row.length, Counter(row.terms.split(" ") if row.terms else ()), row.text)

    def rows(self, owner: OpenOwner, entries: Sequence[Entry]) -> Iterator[WordsRow]:
        """The words of entries of a locked owner, cut from their records. Raises Corrupt."""
        analyzer = self.analyzer(owner.who.save)
        known = [self._recent.get((analyzer.version, entry.content_hash)) for entry in entries]
        missing = [entry for entry, row in zip(entries, known, strict=True) if row is None]
        whole = self._store.stored_many(owner, missing)
        for entry, row in zip(entries, known, strict=True):
            yield row or self._cut(analyzer, entry, next(whole))

    def _cut(self, analyzer: Analyzer, entry: Entry, stored: Stored) -> WordsRow:
        analysis, text = analyzer.analyse(searched_text(stored.record)), embedded_text(stored.record)
        hashed = text_hash(text) if text else b""
        row = WordsRow(entry.content_hash, analysis.length, " ".join(analysis.terms), hashed)
        return row if len(row.terms) > _KEPT_CHARS else self._recent.keep((analyzer.version, row.hash), row)

    def _known(self, owner: OpenOwner, entries: Sequence[Entry]) -> dict[str, WordsRow]:
        if len(entries) < _WORTH_ASKING:
            return {}
        known = self._index_of(owner.who.save).words(owner.folder_name)
        if len(known) < len(entries):
            self.lacking(owner.who)
        return known
