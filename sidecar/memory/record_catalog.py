"""Who owns how many records in a save, and who else may know some of them: the table of contents over all journals.

It is built when a save is first used, from what the derived index remembers, as far as the journals still have the
length that it saw; only the others are read. Nothing here is authoritative.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sidecar.errors import LimitReached, Reason
from sidecar.storage.keys import ActorId


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """What must be known of an owner without reading its journal: the length of the journal in bytes, how many records
    there are, the groups and actors that some of them are addressed to, and how many are archived turns."""

    size: int
    count: int
    targets: frozenset[Hashable] = frozenset()
    archived: int = 0

    @property
    def own(self) -> int:
        """Records that count for the game's limits."""
        return self.count - self.archived


class KnownFacts(Protocol):
    """Where facts are kept from run to run: the derived index."""

    def facts(self, save: str) -> Mapping[str, tuple[ActorId, OwnerFacts]]:
        """By the name of the owner's folder; empty where nothing is known. Never raises."""
        ...


class Catalog:
    """One save's owners. Thread-safe."""

    def __init__(self, *, most: int) -> None:
        #: Owners whose journal could not be read when the save was opened; None where it cannot be told whose it is.
        #: Nobody knows what they hold or for whom, so they are among all owners and may address everybody.
        self.unreadable: set[ActorId | None] = set()
        #: Counts what was noted; it rises after a change can be seen.
        self.changes = 0
        self._most = most
        self._owners: dict[ActorId, OwnerFacts] = {}
        #: Who has a journal and no record: its numbers go on, and it knows what is gone.
        self._emptied: set[ActorId] = set()
        self._addressing: dict[Hashable, set[ActorId]] = {}
        self._reserved = 0
        self._total = 0
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        """Records of the save, archived turns left out."""
        return self._total

    def owners(self) -> list[ActorId]:
        """All owners, in no order."""
        with self._lock:
            return list(self._owners.keys() | self._unread())

    def lacks(self, who: ActorId) -> bool:
        """Whether it is certain that an owner has no journal."""
        return who not in self._owners and who not in self._emptied and not self.unreadable

    def count(self, who: ActorId) -> int:
        """Records of one owner, archived turns with them."""
        facts = self._owners.get(who)
        return facts.count if facts else 0

    def archived(self, who: ActorId) -> int:
        """Archived turns of one owner."""
        facts = self._owners.get(who)
        return facts.archived if facts else 0

    def addressing(self, target: Hashable) -> list[ActorId]:
        """The owners of records that are addressed to a group or an actor."""
        with self._lock:
            return list(self._addressing.get(target, set()) | self._unread())

    def note(self, who: ActorId, facts: OwnerFacts) -> None:
        """An owner stands like this now; with no record it is no owner any more."""
        with self._lock:
            self.unreadable.discard(who)
            self._emptied.discard(who)
            before = self._owners.pop(who, None)
            for target in before.targets - facts.targets if before else ():
                self._addressing[target].discard(who)
            self._total += facts.own - (before.own if before else 0)
            if facts.count:
                self._owners[who] = facts
            elif facts.size:
                self._emptied.add(who)
            for target in facts.targets - (before.targets if before else frozenset()):
                self._addressing.setdefault(target, set()).add(who)
            self.changes += 1

    def reserve(self, count: int) -> None:
        """Keep room for ``count`` more records until :meth:`release`. Raises LimitReached."""
        with self._lock:
            if self._total + self._reserved + count > self._most:
                raise LimitReached(
                    f"the save holds {self._total} records and {count} more do not fit; the limit is {self._most}; "
                    "forget records or set a retention",
                    reason=Reason.TOO_MANY_RECORDS,
                    limit="records.max_records_per_save",
                    value=self._most,
                )
            self._reserved += count

    def release(self, count: int) -> None:
        """Give back the room of :meth:`reserve`: the records were noted, or were not written."""
        with self._lock:
            self._reserved -= count

    def _unread(self) -> set[ActorId]:
        return {who for who in self.unreadable if who is not None}
