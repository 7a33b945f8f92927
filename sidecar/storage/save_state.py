"""The revision and the epoch of each save, which every answer carries.

A revision rises with every change of a save and never falls, also across a kill. Writing it with every change would
cost a file each time, so ``save.json`` holds a ceiling that is raised ahead of use: after a kill the revision goes on
from the ceiling, which is higher than any that was ever told.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sidecar.errors import LorekeeperError
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import read_json, stored_number, unreadable, write_json
from sidecar.storage.keys import save_folder

_AHEAD = 1_000
_MAX_MISSING = 1_000
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SaveState:
    """``revision`` counts changes, ``epoch`` counts restores; both 0 for a save that holds nothing."""

    revision: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class SaveAbout:
    """What is known of a save besides: when it was made (Unix seconds), the save it was forked from, the timelines of
    its files that are read as others, and what the call that forked it is known by."""

    created: float = 0.0
    forked_from: str = ""
    timelines: Mapping[str, str] = field(default_factory=dict)
    forked_by: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Open:
    revision: int
    epoch: int
    ceiling: int
    about: SaveAbout


class SaveStates:
    """Thread-safe; reads of a known save never touch the disk, nor do those of one that was found to be missing."""

    def __init__(self, disk: Disk, *, clock: Callable[[], float] = time.time) -> None:
        self._disk = disk
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._missing: set[str] = set()
        self._lock = threading.Lock()

    def state(self, save: str) -> SaveState:
        """The present state. A save that was never written to is at 0, 0."""
        opened = self._known(save)
        return SaveState(opened.revision, opened.epoch) if opened else SaveState()

    def exists(self, save: str) -> bool:
        """Whether anything was ever stored in the save."""
        return self._known(save) is not None

    def about(self, save: str) -> SaveAbout:
        """What is known of the save besides its state."""
        opened = self._known(save)
        return opened.about if opened else SaveAbout()

    def changed(self, save: str) -> SaveState:
        """Count one more change, and tell the new state. Makes ``save.json`` where it is missing."""
        with self._lock:
            opened = self._open.get(save) or self._load(save) or self._create(save)
            if opened.revision >= opened.ceiling:
                self._write(save, opened, opened.revision + _AHEAD)
            opened.revision += 1
            return SaveState(opened.revision, opened.epoch)

    def ensure(self, save: str) -> None:
        """Make the save's folder and ``save.json`` before anything is stored in it."""
        with self._lock:
            if save not in self._open and self._load(save) is None:
                self._create(save)

    def close(self) -> None:
        """Write the exact revisions, so that a clean restart goes on without a gap; where it cannot, there is one."""
        with self._lock, contextlib.suppress(LorekeeperError):
            for save, opened in self._open.items():
                if opened.revision != opened.ceiling:
                    self._write(save, opened, opened.revision)

    def forget(self, save: str) -> None:
        """Read ``save.json`` again at the next call: it was exchanged or erased."""
        with self._lock:
            self._open.pop(save, None)
            self._missing.discard(save)

    def _known(self, save: str) -> _Open | None:
        """The save as it was last seen; its absence is remembered too, as a session may store nothing for hours."""
        opened = self._open.get(save)
        if opened is not None or save in self._missing:
            return opened
        with self._lock:  # nobody makes it between the look and the note
            opened = self._load(save)
            if opened is None:
                if len(self._missing) >= _MAX_MISSING:
                    self._missing.clear()
                self._missing.add(save)
            return opened

    def _load(self, save: str) -> _Open | None:
        stored = read_json(self._disk, self._path(save))
        if stored is None:
            return None
        revision, epoch = (stored_number(self._disk, self._path(save), stored, name) for name in ("revision", "epoch"))
        return self._open.setdefault(
            save, _Open(revision, epoch, revision, stored_about(self._disk, self._path(save), stored))
        )

    def _create(self, save: str) -> _Open:
        self._disk.make_folder(self._path(save).parent)
        opened = _Open(0, 0, 0, SaveAbout(created=self._clock()))
        self._write(save, opened, _AHEAD)
        self._missing.discard(save)
        return self._open.setdefault(save, opened)

    def _write(self, save: str, opened: _Open, ceiling: int) -> None:
        value = save_to_json(save, SaveState(ceiling, opened.epoch), opened.about)
        write_json(self._disk, self._path(save), value)
        opened.ceiling = ceiling

    def _path(self, save: str) -> Path:
        return save_folder(self._disk.root, save) / "save.json"


def save_to_json(save: str, state: SaveState, about: SaveAbout) -> dict[str, Any]:
    """The object that ``save.json`` holds."""
    return {
        "format": _FORMAT,
        "save_id": save,
        "revision": state.revision,
        "epoch": state.epoch,
        "created": about.created,
        "forked_from": about.forked_from,
        "timelines": dict(about.timelines),
        "forked_by": dict(about.forked_by),
    }


def stored_about(disk: Disk, path: Path, stored: Mapping[str, Any]) -> SaveAbout:
    """The same of what was read from ``path``. Raises Corrupt where it cannot be read."""
    try:
        return about_from_json(stored)
    except (AttributeError, TypeError, ValueError) as error:
        raise unreadable(disk, path) from error


def about_from_json(stored: Mapping[str, Any]) -> SaveAbout:
    """What ``save.json`` tells besides the state; an older one tells nothing."""
    return SaveAbout(
        created=float(stored.get("created", 0)),
        forked_from=str(stored.get("forked_from", "")),
        timelines=_texts(stored, "timelines"),
        forked_by=_texts(stored, "forked_by"),
    )


def _texts(stored: Mapping[str, Any], name: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in stored.get(name, {}).items()}
