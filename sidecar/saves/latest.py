"""The latest moments that a save knows, one for each of its timelines: moments of two timelines have no order.

They are read from the journals, which name every moment, and nowhere kept beside them: whatever exchanges, forks or
imports a save need not care. Of a journal that only grew, no more is read than was added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sidecar.memory.moments import Moment
from sidecar.storage.disk import Disk
from sidecar.storage.keys import is_actor_folder
from sidecar.storage.recent import Recent
from sidecar.storage.timelines import read_as

MAX_TIMELINES = 64
_MAX_SAVES = 16
_MARK_BYTES = 64
# As rows of records, shares and conversations name their moment. Within a text a quote is escaped: it is none of these.
_UNDATED = b'""'
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MOMENT = re.compile(rb'"(?:moment|at)":\[(%b),(-?[0-9]++)(?:,(%b))?\]' % (_TEXT, _TEXT))


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was found in the first ``size`` bytes of a journal, which end with ``mark``."""

    size: int = 0
    mark: bytes = b""
    latest: Mapping[bytes, tuple[int, bytes]] = field(default_factory=dict)


class LatestMoments:
    """Thread-safe. ``timelines`` tells which timelines of a save's files are read as others."""

    def __init__(self, disk: Disk, timelines: Callable[[str], Mapping[str, str]]) -> None:
        self._disk = disk
        self._timelines = timelines
        self._looked: Recent[str, dict[Path, _Looked]] = Recent(_MAX_SAVES)

    def of(self, save: str, folder: Path) -> list[Moment]:
        """The latest moment of each timeline, ordered by timeline, at most 64. ``folder`` is that of the save."""
        before = self._looked.get(save) or {}
        looked = {path: self._look(path, before.get(path, _Looked())) for path in self._journals(folder)}
        self._looked.keep(save, looked)
        latest: dict[str, Moment] = {}
        for one in looked.values():
            for moment in _moments(one, self._timelines(save)):
                known = latest.get(moment.timeline)
                if known is None or known.tick < moment.tick:
                    latest[moment.timeline] = moment
        return [latest[timeline] for timeline in sorted(latest)[:MAX_TIMELINES]]

    def forget(self, save: str) -> None:
        """Read everything again: the files of a save were exchanged."""
        self._looked.forget(save)

    def _journals(self, folder: Path) -> Iterator[Path]:
        for name in self._disk.names(folder):
            if is_actor_folder(name):
                inside = self._disk.names(folder / name)
                yield from (folder / name / inner for inner in inside if inner.endswith(".jsonl"))
            elif name.endswith(".jsonl"):
                yield folder / name

    def _look(self, path: Path, before: _Looked) -> _Looked:
        size = self._disk.size(path)
        if size == before.size:
            return before
        if not self._grew(path, size, before):
            before = _Looked()
        data = self._read(path, before.size)
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            return before
        latest = dict(before.latest)
        for timeline, tick, calendar in _MOMENT.findall(data):
            if timeline == _UNDATED:
                continue
            if timeline not in latest or latest[timeline][0] < int(tick):
                latest[timeline] = int(tick), calendar
        return _Looked(before.size + len(data), data[-_MARK_BYTES:], latest)

    def _grew(self, path: Path, size: int, before: _Looked) -> bool:
        """Whether what was looked at still stands at the beginning: a journal that was compacted does not."""
        length = len(before.mark)
        return size > before.size and self._read(path, before.size - length, length) == before.mark

    def _read(self, path: Path, offset: int, length: int | None = None) -> bytes:
        try:
            return self._disk.read(path, offset, length)
        except FileNotFoundError:
            return b""


def _moments(looked: _Looked, timelines: Mapping[str, str]) -> Iterator[Moment]:
    for timeline, (tick, calendar) in looked.latest.items():
        name = read_as(timelines, json.loads(timeline))
        yield Moment(name, tick, json.loads(calendar) if calendar else "")
