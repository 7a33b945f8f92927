"""The version of what lies in a data folder, and the steps from an older one to the present.

A step is a function that may be run again at any time: after a kill in its middle it is. Before the first step the
authoritative files are copied to ``backups/format-<old>``. ``format.json`` is raised after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sidecar.errors import NotReady, Reason
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import read_json, stored_number, write_json

_FILE = "format.json"
# What is authoritative and so is copied before a migration; everything else can be built again.
_AUTHORITATIVE = ("saves", "checkpoints", "roles.json", "backends.json", "answers.jsonl")


@dataclass(frozen=True)
class Migration:
    """``change`` brings a folder from format ``to - 1`` to ``to``; running it twice does no harm."""

    to: int
    change: Callable[[Disk], None]


MIGRATIONS: tuple[Migration, ...] = ()
FORMAT = 1 + len(MIGRATIONS)


def open_format(disk: Disk, *, current: int = FORMAT, migrations: Sequence[Migration] = MIGRATIONS) -> tuple[int, int]:
    """Bring the folder to format ``current``; the format before and after.

    Raises NotReady (FORMAT_TOO_NEW) for a folder that a newer version wrote, and Corrupt where ``format.json`` does not
    tell the format; nothing is changed then.
    """
    stored = stored_format(disk)
    found = current if stored is None else stored
    if found > current:
        raise NotReady(
            f"the data folder has format {found}, this version knows up to {current}; use a newer Lorekeeper",
            reason=Reason.FORMAT_TOO_NEW,
            found=found,
            known=current,
        )
    if stored is None:
        write_json(disk, disk.root / _FILE, {"format": current})
    for migration in migrations:
        if migration.to > found:
            _back_up(disk, found)
            migration.change(disk)
            write_json(disk, disk.root / _FILE, {"format": migration.to})
    return found, current


def stored_format(disk: Disk) -> int | None:
    """The format that the folder tells; None where it tells none yet. Raises Corrupt where that cannot be read."""
    path = disk.root / _FILE
    stored = read_json(disk, path)
    return None if stored is None else stored_number(disk, path, stored, "format")


def _back_up(disk: Disk, found: int) -> None:
    """Copy what is authoritative, once: a copy that was ended is never written over."""
    done = disk.root / "backups" / f"format-{found}"
    if disk.exists(done):
        return
    partial = done.with_name(done.name + ".partial")
    disk.remove(partial)
    disk.make_folder(partial)
    for name in _AUTHORITATIVE:
        _copy(disk, disk.root / name, partial / name)
    disk.rename(partial, done)


def _copy(disk: Disk, source: Path, target: Path) -> None:
    if not disk.exists(source):
        return
    if not disk.is_folder(source):
        disk.replace(target, disk.read(source))
        return
    disk.make_folder(target)
    for name in disk.names(source):
        _copy(disk, source / name, target / name)
