"""Where a save's files lie, and where they are prepared.

saves/s-<key>/                            the save
checkpoints/s-<key>/<checkpoint id>/      its checkpoints, ``files/`` is the save's folder as it was
exchange/s-<key>/                         what is about to become the save; see exchange.py
exchange/e-<random>.json                  who is being erased; see erasing.py
exchange/x-<random>/                      what is being made; a start removes what it finds there
exchange/d-<random>/                      what is to be removed, out of everybody's sight
"""

from __future__ import annotations

import secrets
from pathlib import Path

from sidecar.storage.disk import Disk
from sidecar.storage.keys import save_folder

FILES = "files"
CHECKPOINT_FILE = "checkpoint.json"
SAVE_FILE = "save.json"
ANSWERS_FILE = "answers.jsonl"
ERASING = "e-"


def is_erasure(name: str) -> bool:
    """Whether a file in the exchange folder is an erasure that has begun. One that was being written down has not."""
    return name.startswith(ERASING) and name.endswith(".json")


class Layout:
    """The paths of one data folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def live(self, save: str) -> Path:
        return save_folder(self.root, save)

    @property
    def all_checkpoints(self) -> Path:
        return self.root / "checkpoints"

    def checkpoints(self, save: str) -> Path:
        return self.all_checkpoints / self.live(save).name

    def checkpoint(self, save: str, checkpoint_id: str) -> Path:
        return self.checkpoints(save) / checkpoint_id

    @property
    def exchanges(self) -> Path:
        return self.root / "exchange"

    def exchange(self, save: str) -> Path:
        return self.exchanges / self.live(save).name

    def workplace(self) -> Path:
        """The path of a new folder of one's own, which the next start removes where it is left."""
        return self.exchanges / f"x-{secrets.token_hex(8)}"

    def export(self, save: str) -> Path:
        """The same for an export of a save, so that an erasure finds it."""
        return self.exchanges / f"x-{self.live(save).name}-{secrets.token_hex(8)}"

    def exports(self, disk: Disk, save: str) -> list[Path]:
        """What exports of a save that are under way are made from."""
        begins = f"x-{self.live(save).name}-"
        return [self.exchanges / name for name in disk.names(self.exchanges) if name.startswith(begins)]

    def set_aside(self, disk: Disk, path: Path) -> None:
        """Take a folder out of sight at once, for :meth:`sweep`: a kill leaves no half in its place."""
        if disk.exists(path):
            disk.make_folder(self.exchanges)
            disk.rename(path, self.exchanges / f"d-{secrets.token_hex(8)}")

    def sweep(self, disk: Disk) -> None:
        """Remove what was set aside. Takes as long as removing takes; others may work meanwhile."""
        for name in disk.names(self.exchanges):
            if name.startswith("d-"):
                disk.remove(self.exchanges / name)
