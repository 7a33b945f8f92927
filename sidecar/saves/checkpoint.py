"""A checkpoint: a save as it was, and what is told of it. No file is touched here.

checkpoints/s-<key>/c-<time>-<random>/checkpoint.json     this
checkpoints/s-<key>/c-<time>-<random>/files/              the save's folder as it was
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sidecar.bounds import Bound, require_count, require_length
from sidecar.errors import InvalidInput, Reason
from sidecar.memory.moments import Moment, checked_moment, moment_of, moment_row
from sidecar.settings import SavesSettings
from sidecar.storage.cloning import Measured
from sidecar.storage.save_state import SaveState

_FORMAT = 1
_ID = re.compile(r"c-[0-9]{20}-[0-9a-f]{8}")


class Kind(StrEnum):
    """Who made a checkpoint."""

    MANUAL = "manual"
    AUTOMATIC = "automatic"
    SAFETY = "safety"


class Method(StrEnum):
    """How files were kept or taken over."""

    LINKED = "linked"
    COPIED = "copied"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a checkpoint is to be called. ``key`` and ``request`` are hashes for a retry, empty without one."""

    name: str = ""
    moment: Moment | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = Kind.MANUAL
    key: str = ""
    request: str = ""


# In place of a count of files: something is being erased from it, or was when the daemon was killed.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """``created`` in Unix seconds; ``bytes`` and ``files`` as they lay in the save's folder."""

    checkpoint_id: str
    save: str
    wish: Wish
    created: float
    state: SaveState
    method: Method
    actors: int
    records: int
    files: int
    bytes: int
    rewritten: bool = False

    def holds(self, measured: Measured) -> bool:
        """Whether these are the files that were kept, as far as that is known."""
        return self.files == UNKNOWN or (measured.files, measured.bytes) == (self.files, self.bytes)

    @property
    def newest_first(self) -> str:
        """Sorts checkpoints of a save from the newest to the oldest."""
        return f"{10**20 - int(self.checkpoint_id.split('-')[1]):020d}"


def new_id(nanoseconds: int, newest: str) -> str:
    """An id that sorts behind ``newest`` (empty: there is none) whatever the clock says."""
    after = int(newest.split("-")[1]) + 1 if newest else 0
    return f"c-{max(nanoseconds, after):020d}-{secrets.token_hex(4)}"


def is_id(text: str) -> bool:
    """Whether a checkpoint may be called so."""
    return _ID.fullmatch(text) is not None


def method_of(measured: Measured) -> Method:
    """How the files of a clone came about; an empty one counts as linked."""
    if not measured.copied:
        return Method.LINKED
    return Method.MIXED if measured.linked else Method.COPIED


def checked_wish(wish: Wish, limits: SavesSettings) -> Wish:
    """The wish with its name trimmed. Raises InvalidInput for what is too long or too much."""
    name = wish.name.strip()
    require_length(name, "name", Bound("saves.max_name_chars", limits.max_name_chars))
    require_count(len(wish.metadata), "metadata", Bound("saves.max_metadata", limits.max_metadata))
    longest_key = Bound("saves.max_metadata_key_chars", limits.max_metadata_key_chars)
    longest_value = Bound("saves.max_metadata_value_chars", limits.max_metadata_value_chars)
    for key, value in wish.metadata.items():
        if not key.strip():
            raise InvalidInput("metadata has a blank key", reason=Reason.FIELD_INVALID, field="metadata")
        require_length(key, "metadata", longest_key)
        require_length(value, "metadata", longest_value)
    moment = checked_moment(wish.moment, "moment") if wish.moment else None
    return Wish(name, moment, dict(wish.metadata), wish.kind, wish.key, wish.request)


def checkpoint_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """The object that ``checkpoint.json`` holds."""
    wish = checkpoint.wish
    return {
        "format": _FORMAT,
        "checkpoint_id": checkpoint.checkpoint_id,
        "save_id": checkpoint.save,
        "name": wish.name,
        "moment": moment_row(wish.moment) if wish.moment else None,
        "metadata": dict(wish.metadata),
        "kind": wish.kind.value,
        "key": wish.key,
        "request": wish.request,
        "created": checkpoint.created,
        "revision": checkpoint.state.revision,
        "epoch": checkpoint.state.epoch,
        "method": checkpoint.method.value,
        "actors": checkpoint.actors,
        "records": checkpoint.records,
        "files": checkpoint.files,
        "bytes": checkpoint.bytes,
        "rewritten": checkpoint.rewritten,
    }


def checkpoint_from_json(stored: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint in such an object. Raises KeyError, TypeError or ValueError for anything else."""
    wish = Wish(
        name=stored["name"],
        moment=moment_of(stored["moment"]) if stored["moment"] else None,
        metadata=dict(stored["metadata"]),
        kind=Kind(stored["kind"]),
        key=stored["key"],
        request=stored["request"],
    )
    return Checkpoint(
        checkpoint_id=stored["checkpoint_id"],
        save=stored["save_id"],
        wish=wish,
        created=float(stored["created"]),
        state=SaveState(int(stored["revision"]), int(stored["epoch"])),
        method=Method(stored["method"]),
        actors=int(stored["actors"]),
        records=int(stored["records"]),
        files=int(stored["files"]),
        bytes=int(stored["bytes"]),
        rewritten=bool(stored["rewritten"]),
    )
