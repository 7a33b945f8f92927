"""Putting a prepared folder in the place of a save: all of it or nothing, also after a kill.

    exchange/s-<key>/new/            what the save is to become
    exchange/s-<key>/old/            a checkpoint of what it was, without its files yet
    exchange/s-<key>/intent.json     written last

Until the intent is on the disk nothing has happened, and what lies here is removed by the next start. From then on the
exchange is ended, by this process or by the next start; every step may be done again:

    1. saves/s-<key>         ->  exchange/s-<key>/old/files
    2. exchange/s-<key>/new  ->  saves/s-<key>
    3. exchange/s-<key>/old  ->  checkpoints/s-<key>/<id>, where it is to be kept
    4. exchange/s-<key> is removed

These are renames within one disk: they need no room, and a reader finds one state or the other.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sidecar.errors import LorekeeperError
from sidecar.saves.checkpoint import Checkpoint, checkpoint_to_json
from sidecar.saves.layout import CHECKPOINT_FILE, FILES, Layout, is_erasure
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import read_json, write_json

_FORMAT = 1
_NEW, _OLD, _INTENT = "new", "old", "intent.json"


@dataclass(frozen=True)
class _Places:
    """The folders of one exchange."""

    stage: Path
    live: Path
    checkpoints: Path

    @property
    def new(self) -> Path:
        return self.stage / _NEW

    @property
    def old(self) -> Path:
        return self.stage / _OLD

    @property
    def intent(self) -> Path:
        return self.stage / _INTENT


class Exchanges:
    """At most one exchange of a save at a time, while nobody else uses the save."""

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._unsettled: set[str] = set()
        self._settling = threading.Lock()

    def unsettled(self, save: str) -> bool:
        """Whether the disk failed in the middle of an exchange and when it was to be taken back: until
        :meth:`settle` nobody may use the save."""
        return save in self._unsettled

    def settle(self, save: str) -> None:
        """Take an unsettled exchange back, or end it where the save is exchanged already. Raises what the disk does."""
        with self._settling:
            if save in self._unsettled:
                self._undo(self._places(save))
                self._unsettled.discard(save)

    def begin(self, save: str) -> Path:
        """Where to prepare what the save is to become: a folder that does not exist yet, within one that does."""
        places = self._places(save)
        self._disk.remove(places.stage)
        self._disk.make_folder(places.stage)
        return places.new

    def cancel(self, save: str) -> None:
        """Forget what was prepared; what is unsettled stays, it may hold all that there is of the save."""
        if save not in self._unsettled:
            self._disk.remove(self._places(save).stage)

    def put(self, save: str, *, safety: Checkpoint | None) -> None:
        """Make the save what was prepared. What it was is kept as ``safety``, or gone."""
        places = self._places(save)
        self._disk.make_folder(places.live.parent)
        self._disk.make_folder(places.checkpoints)
        self._disk.make_folder(places.old)
        if safety is not None:
            write_json(self._disk, places.old / CHECKPOINT_FILE, checkpoint_to_json(safety))
        try:
            self._commit(places, keep=safety.checkpoint_id if safety else "")
        except BaseException:
            if self._disk.exists(places.intent):
                self._unsettled.add(save)
                with suppress(LorekeeperError, OSError):
                    self.settle(save)
            raise

    def recover(self) -> list[str]:
        """End what was intended and remove what was not, after a kill; the names of the folders that were ended."""
        ended = []
        for name in self._disk.names(self._layout.exchanges):
            if is_erasure(name):
                continue
            stage = self._layout.exchanges / name
            if self._disk.exists(stage / _INTENT):
                self._finish(_Places(stage, self._layout.root / "saves" / name, self._layout.all_checkpoints / name))
                ended.append(name)
            self._disk.remove(stage)
        return ended

    def _commit(self, places: _Places, *, keep: str) -> None:
        write_json(self._disk, places.intent, {"format": _FORMAT, "keep": keep})
        self._finish(places)

    def _finish(self, places: _Places) -> None:
        disk, intent = self._disk, read_json(self._disk, places.intent) or {}
        if disk.exists(places.new):
            self._remove_made_since(places)
            if disk.exists(places.live):
                disk.rename(places.live, places.old / FILES)
            disk.rename(places.new, places.live)
        if intent["keep"] and disk.exists(places.old / FILES):
            disk.rename(places.old, places.checkpoints / intent["keep"])
        disk.remove(places.stage)

    def _undo(self, places: _Places) -> None:
        """The disk failed between two renames: go back if the save is not exchanged yet, else end it."""
        disk = self._disk
        if disk.exists(places.new):
            self._remove_made_since(places)
            if disk.exists(places.old / FILES):
                disk.rename(places.old / FILES, places.live)
            disk.remove(places.intent)
            disk.remove(places.stage)
        elif disk.exists(places.intent):
            self._finish(places)

    def _remove_made_since(self, places: _Places) -> None:
        """Remove a folder that came about while the save was under way: nobody was let in, so it holds nothing."""
        if self._disk.exists(places.old / FILES):
            self._disk.remove(places.live)

    def _places(self, save: str) -> _Places:
        return _Places(self._layout.exchange(save), self._layout.live(save), self._layout.checkpoints(save))
