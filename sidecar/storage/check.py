"""What is wrong with a data folder, and how it can be mended. Looking changes nothing.

A damaged authoritative file is never written over: mending moves it to ``repaired/`` first and puts what could be
read in its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sidecar.errors import LorekeeperError
from sidecar.storage.cloning import PASSING
from sidecar.storage.disk import Disk, shown_path
from sidecar.storage.format import stored_format
from sidecar.storage.journal import encode, whole_rows
from sidecar.storage.json_file import read_json

_FILES = (".json", ".jsonl")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. ``mend`` puts it right and is None where only a person can."""

    file: str
    problem: str
    remedy: str
    mend: Callable[[], None] | None = None


Check = Callable[[Disk, Path], Iterator[Finding]]


def findings(disk: Disk, checks: Mapping[str, Check]) -> Iterator[Finding]:
    """Everything that is wrong below the folder. ``checks`` has, for a file's name, what looks into such a file; of all
    other journals only the lines are looked at."""
    yield from _open_to_others(disk)
    for path in _files(disk, disk.root):
        if path.is_symlink():
            yield _odd(disk, path, "is a link, which is never followed")
        elif path.name.endswith(PASSING):
            yield _left_over(disk, path)
        elif disk.exists(path) and not path.is_file():
            yield _odd(disk, path, "is no file")
        elif path.relative_to(disk.root).parts[0] == "checkpoints":
            yield from map(_kept_as_it_is, _damage(disk, path, checks))
        else:
            yield from _damage(disk, path, checks)


def _damage(disk: Disk, path: Path, checks: Mapping[str, Check]) -> Iterator[Finding]:
    if path.name in checks:
        yield from checks[path.name](disk, path)
    elif path.suffix == ".json":
        yield from check_object(read_json)(disk, path)
    elif path.suffix == ".jsonl":
        yield from check_lines(disk, path, lambda rows: rows)


def _kept_as_it_is(finding: Finding) -> Finding:
    """A checkpoint with a changed file would be none any more; what is whole in it can still be restored."""
    return replace(finding, remedy="restore another checkpoint, or restore this one and mend the save then", mend=None)


def check_object(read: Callable[[Disk, Path], object]) -> Check:
    """A check of a file that nothing but ``read`` understands: a finding where it raises, which a person must mend."""

    def check(disk: Disk, path: Path) -> Iterator[Finding]:
        try:
            read(disk, path)
        except Exception as error:
            known = isinstance(error, LorekeeperError)
            problem = str(error) if known else f"it does not say what it should ({type(error).__name__})"
            yield Finding(shown_path(disk, path), problem, "restore it from a checkpoint or a backup")

    return check


def check_format(disk: Disk, path: Path) -> Iterator[Finding]:
    """A finding where ``format.json`` does not tell the format; the next start writes it anew."""
    try:
        stored_format(disk)
    except LorekeeperError as error:
        yield Finding(
            file=shown_path(disk, path),
            problem=error.message,
            remedy="begin without it: there has been one format only; keep the damaged file",
            mend=lambda: set_aside(disk, path),
        )


def check_lines(
    disk: Disk, path: Path, readable: Callable[[Sequence[dict[str, Any]]], Iterable[dict[str, Any]]]
) -> Iterator[Finding]:
    """A finding where a line of a journal is not whole, or its row not ``readable``; mending keeps the others.

    A torn end is none: the daemon cuts it off by itself.
    """
    rows, bad = whole_rows(disk.read(path))
    taken = list(readable(rows))
    bad += len(rows) - len(taken)
    if bad:
        yield Finding(
            file=shown_path(disk, path),
            problem=f"{bad} of its lines cannot be read",
            remedy=f"go on with the {len(taken)} lines that can; keep the damaged file",
            mend=lambda: _keep_lines(disk, path, taken),
        )


def keep_and_replace(disk: Disk, path: Path, data: bytes | None) -> Path:
    """Move a damaged file to ``repaired/``, put ``data`` in its place, and say where the old one is."""
    kept = disk.root / "repaired" / path.relative_to(disk.root)
    disk.make_folder(kept.parent)
    free = next(name for n in range(10_000) if not disk.exists(name := kept.with_name(f"{kept.name}.{n}")))
    disk.rename(path, free)
    if data is not None:
        disk.replace(path, data)
    return free


def set_aside(disk: Disk, path: Path) -> None:
    """Move a damaged file to ``repaired/`` and leave nothing in its place."""
    keep_and_replace(disk, path, None)


def _keep_lines(disk: Disk, path: Path, rows: Sequence[dict[str, Any]]) -> None:
    keep_and_replace(disk, path, b"".join(encode([row]) for row in rows))


def _files(disk: Disk, folder: Path) -> Iterator[Path]:
    for name in disk.names(folder):
        path = folder / name
        if name in ("repaired", "backups", "logs") and folder == disk.root:
            continue
        if disk.is_folder(path) and not name.endswith((*PASSING, *_FILES)):
            yield from _files(disk, path)
        else:
            yield path


def _open_to_others(disk: Disk) -> Iterator[Finding]:
    mode = disk.root.stat().st_mode
    if os.name == "posix" and mode & 0o077:
        yield Finding(
            ".", "other users may look into the data folder", "make it private", lambda: disk.root.chmod(0o700)
        )


def _odd(disk: Disk, path: Path, problem: str) -> Finding:
    shown = shown_path(disk, path)
    return Finding(shown, problem, "put the real file or folder in its place")


def _left_over(disk: Disk, path: Path) -> Finding:
    shown = shown_path(disk, path)
    return Finding(shown, "was left by a write that did not end", "remove it", lambda: disk.remove(path))
