"""The roles of a game: built in, from the file that ships with the game, and put by calls, the last one winning.

``roles.json`` in the data folder holds what calls have put, in the form of ``chat/role_changes.py``:

    {"format": 1, "roles": [{"role_id": "Merchant", "persist_history": true}]}

The game's own file has the same form; it is only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from sidecar.chat.role_changes import Changes, changed_role
from sidecar.chat.roles import BUILT_IN_ROLES, Role, normal_role_id, role_policy
from sidecar.errors import InvalidInput, Reason
from sidecar.memory.canonical_json import parse
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import objects_in
from sidecar.storage.keys import ordinal
from sidecar.storage.put_file import PutFile


class RoleSource(IntEnum):
    """Where a role comes from; the numbers are those of the contract."""

    DEFAULT = 1
    BUILT_IN = 2
    FILE = 3
    CALL = 4


@dataclass(frozen=True)
class KnownRole:
    """A role with what was written of it, and where."""

    role: Role
    changes: Changes
    source: RoleSource


class RoleStore:
    """Finds roles at any time; puts and deletes are safe on the disk when they return. Thread-safe.

    Every call raises Corrupt where ``roles.json`` cannot be read: an actor must not behave by other rules in silence.
    """

    def __init__(self, disk: Disk, *, max_roles: int, from_file: Mapping[str, KnownRole] | None = None) -> None:
        self._base = {role_id: KnownRole(role, {}, RoleSource.BUILT_IN) for role_id, role in BUILT_IN_ROLES.items()}
        self._base |= from_file or {}
        self._put = PutFile(
            disk,
            "roles",
            most=max_roles,
            limit="chat.max_roles",
            read=lambda roles: _known(roles, RoleSource.CALL),
            write=lambda known: known.changes,
        )

    def get(self, role_id: str) -> Role:
        """The role in force."""
        return self.find(role_id).role

    def find(self, role_id: str) -> KnownRole:
        """The role in force and where it comes from."""
        wanted = normal_role_id(role_id)
        known = self._put.known.get(wanted) or self._base.get(wanted)
        return known or KnownRole(role_policy(wanted), {}, RoleSource.DEFAULT)

    def all(self) -> list[KnownRole]:
        """Every role that is put, in the file or built in, ordered by id."""
        known = {**self._base, **self._put.known}
        return [known[role_id] for role_id in sorted(known, key=ordinal)]

    def put(self, changes: Changes) -> KnownRole:
        """Sets a role in the place of the one with its id. Raises InvalidInput, LimitReached."""
        role = changed_role(changes)
        known = KnownRole(role, {**changes, "role_id": role.role_id}, RoleSource.CALL)
        self._put.put(role.role_id, known)
        return known

    def delete(self, role_id: str) -> bool:
        """Removes what was put, so that the file's or the built-in role holds again. False where nothing was."""
        return self._put.delete(normal_role_id(role_id))


def read_roles_file(file: Path) -> dict[str, KnownRole]:
    """The roles of the game's own file. Raises InvalidInput, which names the field at fault."""
    try:
        data = file.read_bytes()
        value = parse(data.decode(json.detect_encoding(data)), "roles")
    except (OSError, UnicodeError) as error:
        raise _bad_file(file, "it cannot be read as text") from error
    try:
        roles = objects_in(value if isinstance(value, dict) else {}, "roles")
    except ValueError as error:
        raise _bad_file(file, 'it must be an object with a list of objects, {"roles": [{"role_id": …}]}') from error
    return _known(roles, RoleSource.FILE)


def _known(roles: Iterable[dict[str, Any]], source: RoleSource) -> dict[str, KnownRole]:
    known: dict[str, KnownRole] = {}
    for place, changes in enumerate(roles):
        role = changed_role(changes, f"roles[{place}]")
        if role.role_id in known:
            field = f"roles[{place}].role_id"
            raise InvalidInput(f"{field} stands twice; write each role once", reason=Reason.FIELD_INVALID, field=field)
        known[role.role_id] = KnownRole(role, changes, source)
    return known


def _bad_file(file: Path, why: str) -> InvalidInput:
    return InvalidInput(f"the roles file {file.name} is of no use: {why}", reason=Reason.FIELD_INVALID, field="roles")
