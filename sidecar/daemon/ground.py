"""What all rooms stand on, built once and handed to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.diagnostics import Report
    from sidecar.settings import Config
    from sidecar.storage.actors import Actors
    from sidecar.storage.disk import Disk
    from sidecar.storage.save_state import SaveStates
    from sidecar.storage.workers import Workers
    from sidecar.wire import Paging


@dataclass(frozen=True)
class Ground:
    """The data folder and the settings, who is in it, who works on it, and who hears what happens."""

    disk: Disk
    config: Config
    report: Report
    actors: Actors
    saves: SaveStates
    workers: Workers
    paging: Paging
