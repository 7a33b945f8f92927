"""Groups of a save and the retention of its records: ``groups.json`` in the save's folder, replaced as a whole.

Who is a member is decided when it is asked, never when a record is written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sidecar.errors import Corrupt, LimitReached, Reason
from sidecar.memory.records import EVERYONE, actor_of, actor_row
from sidecar.memory.retention import RetentionPolicy
from sidecar.settings import RecordSettings
from sidecar.storage.disk import Disk
from sidecar.storage.json_file import read_json, unreadable, write_json
from sidecar.storage.keys import ActorId, ordinal, save_folder
from sidecar.storage.recent import Recent
from sidecar.storage.save_state import SaveStates

_FORMAT = 1
_MOST_SAVES = 1_000
_MOST_ACTORS = 10_000


@dataclass(frozen=True, slots=True)
class Group:
    """Actors who recall what is addressed to them together. Empty parts of a member's address match any value."""

    group_id: str
    name: str = ""
    members: tuple[ActorId, ...] = ()
    recall_weight: float = 1.0
    retention: RetentionPolicy | None = None

    def has(self, who: ActorId) -> bool:
        """Whether an actor is a member."""
        return any_matches(self.members, who)


@dataclass(frozen=True, slots=True)
class SaveGroups:
    """All groups of a save by their ids, the retention of the save, and that of single owners."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    retention: RetentionPolicy | None = None
    owners: Mapping[ActorId, RetentionPolicy] = field(default_factory=dict)

    def of(self, who: ActorId) -> list[Group]:
        """The groups of an actor, by id."""
        return [group for group in self.groups.values() if group.has(who)]

    def retention_of(self, who: ActorId, groups: Iterable[Group]) -> RetentionPolicy | None:
        """The policy of an owner of some ``groups``: its own, else that of its first group that has one, else the
        save's."""
        of_groups = (group.retention for group in groups if group.retention)
        return self.owners.get(who) or next(of_groups, self.retention)

    def with_retention(self, owner: ActorId | None, policy: RetentionPolicy | None) -> SaveGroups:
        """The same with another policy of an owner, or of the save; None removes it."""
        if owner is None:
            return replace(self, retention=policy)
        owners = {who: kept for who, kept in self.owners.items() if who != owner}
        return replace(self, owners=owners | ({owner: policy} if policy else {}))


class GroupStore:
    """Thread-safe; reads of a known save never touch the disk."""

    def __init__(self, disk: Disk, saves: SaveStates, limits: RecordSettings) -> None:
        self._disk = disk
        self._saves = saves
        self._limits = limits
        self._known: Recent[str, SaveGroups] = Recent(_MOST_SAVES)
        # With the groups that they were made from: after a change they are made anew.
        self._memberships: Recent[ActorId, tuple[SaveGroups, tuple[Group, ...]]] = Recent(_MOST_ACTORS)
        self._lock = threading.RLock()

    def read(self, save: str) -> SaveGroups:
        """The groups of a save. Raises Corrupt."""
        known = self._known.get(save)
        if known is None:
            with self._lock:
                known = self._known.keep(save, read_groups(self._disk, self._path(save), save))
        return known

    def knows(self, save: str) -> bool:
        """Whether reading the groups of a save costs no disk access."""
        return self._known.get(save) is not None

    def of(self, who: ActorId) -> tuple[Group, ...]:
        """The groups of an actor as of now, and the one of everybody. Raises Corrupt."""
        known = self.read(who.save)
        cached = self._memberships.get(who)
        if cached is None or cached[0] is not known:
            cached = self._memberships.keep(who, (known, (*known.of(who), Group(EVERYONE))))
        return cached[1]

    def applied_retention(self, who: ActorId) -> RetentionPolicy | None:
        """The policy in force; none while it cannot be read, so that nothing is dropped by mistake."""
        try:
            return self.retention(who)
        except Corrupt:
            return None

    def retention(self, who: ActorId) -> RetentionPolicy | None:
        """The policy in force for an owner. Raises Corrupt."""
        known = self.read(who.save)
        return known.retention_of(who, self.of(who)) if known.owners or known.groups else known.retention

    def put(self, save: str, groups: Iterable[Group], remove: Iterable[str]) -> int:
        """Set groups and remove others; how many there are then. Raises LimitReached, Corrupt."""
        with self._lock:
            known = self.read(save)
            after = {**known.groups, **{group.group_id: group for group in groups}}
            for group_id in remove:
                after.pop(group_id, None)
            if len(after) > self._limits.max_groups:
                raise LimitReached(
                    f"the save would have {len(after)} groups; the limit is {self._limits.max_groups}",
                    reason=Reason.TOO_MANY_ITEMS,
                    field="groups",
                    limit="records.max_groups",
                    value=self._limits.max_groups,
                )
            self._store(save, replace(known, groups={name: after[name] for name in sorted(after, key=ordinal)}))
            return len(after)

    def put_retention(self, save: str, owner: ActorId | None, policy: RetentionPolicy | None) -> None:
        """Set the retention of an owner, or of the save; None removes it. Raises Corrupt."""
        with self._lock:
            self._store(save, self.read(save).with_retention(owner, policy))

    def forget_cached(self, save: str) -> None:
        """Read the file again at the next call: it was erased or exchanged."""
        with self._lock:
            self._known.forget(save)

    def _store(self, save: str, groups: SaveGroups) -> None:
        if groups == self.read(save):
            return
        self._saves.ensure(save)
        self._saves.changed(save)
        write_json(self._disk, self._path(save), _to_json(groups))
        self._known.keep(save, groups)

    def _path(self, save: str) -> Path:
        return save_folder(self._disk.root, save) / "groups.json"


def read_groups(disk: Disk, path: Path, save: str) -> SaveGroups:
    """The groups in a file; none where it does not exist. Raises Corrupt."""
    stored = read_json(disk, path)
    try:
        return SaveGroups() if stored is None else _from_json(stored, save)
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(disk, path) from error


def any_matches(patterns: Iterable[ActorId], who: ActorId) -> bool:
    """Whether an address fits one of some patterns."""
    return any(matches(pattern, who) for pattern in patterns)


def matches(pattern: ActorId, who: ActorId) -> bool:
    """Whether an address of the same save fits a pattern, whose empty parts match any value."""
    return all(
        part in ("", own)
        for part, own in zip(
            (pattern.actor, pattern.role, pattern.player, pattern.topic, pattern.tenant),
            (who.actor, who.role, who.player, who.topic, who.tenant),
            strict=True,
        )
    )


def _to_json(groups: SaveGroups) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "groups": [
            {
                "id": group.group_id,
                "name": group.name,
                "members": [actor_row(member) for member in group.members],
                "recall_weight": group.recall_weight,
                "retention": _policy_to_json(group.retention),
            }
            for group in groups.groups.values()
        ],
        "retention": _policy_to_json(groups.retention),
        "owners": [[actor_row(who), _policy_to_json(policy)] for who, policy in groups.owners.items()],
    }


def _from_json(stored: dict[str, Any], save: str) -> SaveGroups:
    groups = [
        Group(
            group_id=group["id"],
            name=group["name"],
            members=tuple(actor_of(member, save) for member in group["members"]),
            recall_weight=float(group["recall_weight"]),
            retention=_policy_from_json(group["retention"]),
        )
        for group in stored["groups"]
    ]
    owners = {actor_of(who, save): _policy_from_json(policy) for who, policy in stored["owners"]}
    return SaveGroups(
        groups={group.group_id: group for group in groups},
        retention=_policy_from_json(stored["retention"]),
        owners={who: policy for who, policy in owners.items() if policy},
    )


def _policy_to_json(policy: RetentionPolicy | None) -> dict[str, Any] | None:
    return asdict(policy) if policy else None


def _policy_from_json(stored: dict[str, Any] | None) -> RetentionPolicy | None:
    return RetentionPolicy(**stored) if stored else None
