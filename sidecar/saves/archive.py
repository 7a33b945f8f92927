"""The form of an exported save, and what is refused of it. No file is touched here.

    save/save.json                              the save's own file
    save/a-<32 digits>/document.json, …         one folder an actor, as in the data folder
    manifest.json                               last: whose save it is, and the size and SHA-256 of every file

A zip file from elsewhere may hold anything: names that climb out, links, twice the same name, promises of terabytes.
Only names of the form above are taken, at most as many and as much as the limits allow, and nothing that the manifest
does not know.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipInfo

from sidecar.errors import InvalidInput, LimitReached, NotReady, Reason
from sidecar.settings import SavesSettings
from sidecar.storage.format import FORMAT

ARCHIVE_FORMAT = 1
MANIFEST = "manifest.json"
_FILE = re.compile(r"save/(a-[0-9a-f]{32}/)?[a-z][a-z0-9_]{0,31}(\.[a-z0-9_]{1,31}){0,2}\.jsonl?")
# Names that mean devices on Windows, whatever follows the dot.
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")
_ENCRYPTED = 1
_SMALL = 1_048_576


@dataclass(frozen=True, slots=True)
class Packed:
    """A file of the archive: its length in bytes and its SHA-256."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive says of itself."""

    save: str
    name: str
    created: float
    store_format: int
    files: Mapping[str, Packed]


def is_file(name: str) -> bool:
    """Whether a file of a save may be called so in an archive."""
    return _FILE.fullmatch(name) is not None and not _DEVICES.match(name.rsplit("/", 1)[-1])


def manifest_to_json(manifest: Manifest, actors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """``actors`` are for people who look into the file."""
    return {
        "lorekeeper_export": ARCHIVE_FORMAT,
        "store_format": manifest.store_format,
        "save_id": manifest.save,
        "name": manifest.name,
        "created": manifest.created,
        "actors": list(actors),
        "files": {name: {"bytes": file.bytes, "sha256": file.sha256} for name, file in manifest.files.items()},
    }


def manifest_from_json(stored: Mapping[str, Any]) -> Manifest:
    """The manifest in such an object. Raises InvalidInput for anything else, NotReady for one of a newer version."""
    try:
        newer = stored["lorekeeper_export"] > ARCHIVE_FORMAT or stored["store_format"] > FORMAT
        if newer:
            raise NotReady(
                "the archive was written by a newer Lorekeeper; use that one to import it",
                reason=Reason.ARCHIVE_TOO_NEW,
                known=ARCHIVE_FORMAT,
            )
        return Manifest(
            save=str(stored["save_id"]),
            name=str(stored["name"]),
            created=float(stored["created"]),
            store_format=int(stored["store_format"]),
            files={name: Packed(int(file["bytes"]), str(file["sha256"])) for name, file in stored["files"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise invalid("its manifest is not one of ours") from error


def checked_entries(entries: Iterable[ZipInfo], limits: SavesSettings) -> list[ZipInfo]:
    """The entries of an archive, where all of them may be unpacked. Raises InvalidInput, LimitReached."""
    checked: list[ZipInfo] = []
    names: set[str] = set()
    total = 0
    for entry in entries:
        _check_entry(entry, limits)
        total += entry.file_size
        names.add(entry.filename)
        checked.append(entry)
        if len(names) != len(checked):
            raise invalid("a name stands in it twice")
        if len(checked) > limits.max_archive_files:
            raise too_large("files", "saves.max_archive_files", limits.max_archive_files)
        if total > limits.max_unpacked_bytes:
            raise too_large("bytes", "saves.max_unpacked_bytes", limits.max_unpacked_bytes)
    if MANIFEST not in names:
        raise invalid("it has no manifest")
    return checked


def _check_entry(entry: ZipInfo, limits: SavesSettings) -> None:
    if entry.filename != MANIFEST and not is_file(entry.filename):
        raise invalid("it holds a name that no save has")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise invalid("it holds a link or something else that is no file")
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise invalid("it is packed in a way that no export uses")
    if entry.filename.endswith(".json"):
        check_object(entry.file_size, limits)
    if entry.file_size > max(_SMALL, limits.max_pack_ratio * entry.compress_size):
        raise too_large("times the packed size", "saves.max_pack_ratio", limits.max_pack_ratio)


def check_object(size: int, limits: SavesSettings) -> None:
    """Raise LimitReached for so many bytes of JSON that are read as one."""
    if size > limits.max_archive_object_bytes:
        raise too_large("bytes of one object", "saves.max_archive_object_bytes", limits.max_archive_object_bytes)


def invalid(what: str) -> InvalidInput:
    """What was to be imported is not what it should be."""
    return InvalidInput(f"the archive cannot be imported: {what}; nothing was written", reason=Reason.ARCHIVE_INVALID)


def too_large(unit: str, limit: str, value: int) -> LimitReached:
    """What was to be imported is more than a limit allows."""
    return LimitReached(
        f"the archive would unpack to more than {value} {unit}; raise {limit} if it is meant; nothing was written",
        reason=Reason.ARCHIVE_TOO_LARGE,
        limit=limit,
        value=value,
    )
