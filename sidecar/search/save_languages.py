"""The analyzer of each save: the languages that its settings name, or else the daemon's.

Thread-safe. Equal languages share an analyzer, since each remembers many words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sidecar.search.languages import is_known
from sidecar.storage.keys import save_folder
from sidecar.storage.recent import Recent

if TYPE_CHECKING:
    from sidecar.search.terms import Analyzer

_MOST_SAVES = 1_000
_MOST_ANALYZERS = 16
Languages = tuple[str, ...]


def nothing_put(folder: str) -> Sequence[str]:
    """Where saves have no settings of their own."""
    return ()


class SaveLanguages:
    """Saves are known by the names of their folders, as their indexes are."""

    def __init__(self, root: Path, usual: str, put: Callable[[str], Sequence[str]] = nothing_put) -> None:
        """``put`` tells the languages that the settings name, of the save whose folder is called so."""
        self._root = root
        self._usual = usual
        self._put = put
        self._saves: dict[str, Languages] = {}
        self._analyzers: Recent[Languages, Analyzer] = Recent(_MOST_ANALYZERS)
        self._lock = Lock()

    def analyzer(self, save: str) -> Analyzer:
        """What cuts the texts and queries of a save into words."""
        return self.analyzer_of_folder(save_folder(self._root, save).name)

    def analyzer_of_folder(self, folder: str) -> Analyzer:
        """The same by the name of the save's folder."""
        # Settings are read with the lock held, so that what was read before a change is never kept after it.
        with self._lock:
            languages = self._saves.get(folder) or self._learnt(folder)
            analyzer = self._analyzers.get(languages)
            return analyzer or self._made(languages)

    def forget(self, save: str) -> None:
        """The settings of a save were changed, or exchanged with its files."""
        with self._lock:
            self._saves.pop(save_folder(self._root, save).name, None)

    def _learnt(self, folder: str) -> Languages:
        if len(self._saves) >= _MOST_SAVES:
            self._saves.clear()
        known = tuple(language for language in self._put(folder) if is_known(language))
        self._saves[folder] = known or (self._usual,)
        return self._saves[folder]

    def _made(self, languages: Languages) -> Analyzer:
        from sidecar.search.terms import Analyzer

        return self._analyzers.keep(languages, Analyzer(*languages))
