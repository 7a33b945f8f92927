"""The settings of a save: ``settings.json`` in its folder, replaced as a whole. They follow the save through time.

The room stores them and checks what concerns it; those that take effect elsewhere are read there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sidecar.errors import Corrupt
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import read_json, write_json
from sidecar.storage.keys import save_folder
from sidecar.storage.recent import Recent
from sidecar.storage.save_state import SaveAbout, SaveStates

_FORMAT = 1
_MOST_KNOWN = 1_024
_FILE = "settings.json"


class SaveSettingsStore:
    """``settings`` are the contract's SaveSettings as JSON, with absent fields absent."""

    def __init__(self, disk: Disk, states: SaveStates, changed: Callable[[str], None]) -> None:
        """``changed`` is told of each save whose settings were replaced."""
        self._disk = disk
        self._states = states
        self._changed = changed
        # With what was known of the save then: a save that was exchanged is read anew.
        self._known: Recent[str, tuple[SaveAbout, Mapping[str, Any]]] = Recent(_MOST_KNOWN)
        self._lock = threading.Lock()

    def read(self, save: str) -> Mapping[str, Any]:
        """What was put; empty where nothing was. Raises Corrupt."""
        about, known = self._states.about(save), self._known.get(save)
        if known is None or known[0] is not about:
            with self._lock:
                known = self._known.keep(save, (about, self._read(save_folder(self._disk.root, save))))
        return known[1]

    def name(self, save: str) -> str:
        """The name of the save for people. Raises Corrupt."""
        return str(self.read(save).get("name", ""))

    def put(self, save: str, settings: Mapping[str, Any]) -> None:
        """Replace all settings; the save is made where it does not exist."""
        if settings == self.read(save):
            return
        self._states.ensure(save)
        with self._lock:
            self._write(save_folder(self._disk.root, save), settings)
            self._known.forget(save)
        self._changed(save)
        self._states.changed(save)  # last: what was answered before belongs to the revision before

    def languages(self, folder: str) -> Sequence[str]:
        """The languages that the save in the folder of this name has put; none where they cannot be read."""
        try:
            return list(self._read(self._disk.root / "saves" / folder).get("languages", ()))
        except Corrupt:
            return ()

    def rename(self, folder: Path, name: str) -> None:
        """Give the save whose files are prepared in ``folder`` another name."""
        self._write(folder, self._read(folder) | {"name": name})

    def _read(self, folder: Path) -> dict[str, Any]:
        stored = read_json(self._disk, folder / _FILE)
        return dict(stored["settings"]) if stored else {}

    def _write(self, folder: Path, settings: Mapping[str, Any]) -> None:
        write_json(self._disk, folder / _FILE, {"format": _FORMAT, "settings": dict(settings)})
