"""Whether a kept checkpoint is whole. Nothing mends one: a checkpoint with a changed file would be none any more."""

from __future__ import annotations

from pathlib import Path

from sidecar.errors import Corrupt, Reason
from sidecar.saves.checkpoint import Checkpoint, checkpoint_from_json
from sidecar.saves.layout import FILES
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.json_file import read_json


def whole_checkpoint(disk: Disk, path: Path) -> Checkpoint:
    """The checkpoint in ``checkpoint.json``, whose files are those that were kept.

    Raises Corrupt, KeyError, TypeError or ValueError.
    """
    checkpoint = checkpoint_from_json(read_json(disk, path) or {})
    files = path.parent / FILES
    if not checkpoint.holds(disk.measure(files)):
        shown = shown_path(disk, files)
        raise Corrupt(f"files in '{shown}' are missing or changed", reason=Reason.CHECKPOINT_DAMAGED, file=shown)
    return checkpoint
