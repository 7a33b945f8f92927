"""What an actor may recall: its own records, owners that it may search, and what others let it know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from sidecar.errors import Denied, Reason
from sidecar.memory.groups import Group
from sidecar.memory.moments import Moment
from sidecar.memory.owner_records import Entry
from sidecar.memory.records import Share, ShareKind
from sidecar.storage.keys import ActorId


class Access(IntEnum):
    """Why an actor may know a record; the first that holds is told. The numbers are those of the contract."""

    OWN = 1
    SOURCE = 2
    GROUP = 3
    WITNESS = 4
    HEARSAY = 5


@dataclass(frozen=True, slots=True)
class Known:
    """Why an actor may know a record, and how much its importance weighs for this actor."""

    access: Access
    weight: float = 1.0
    group_id: str = ""
    share: Share | None = None


OWN = Known(Access.OWN)
SOURCE = Known(Access.SOURCE)


@dataclass(frozen=True, slots=True)
class Reach:
    """What of one owner a query may look at: all of it for the reason ``known``, or else the records ``ids``."""

    known: Known | None = None
    ids: frozenset[str] = frozenset()

    def reasons(
        self, entries: Mapping[str, Entry], who: ActorId, groups: Sequence[Group], now: Moment | None
    ) -> Known | dict[Entry, Known]:
        """Why ``who`` may know all records, or each of those that it may know at ``now``."""
        if self.known is not None:
            return self.known
        addressed = (entries[record_id] for record_id in self.ids if record_id in entries)
        reasons = ((entry, known_by(entry, who, groups, now)) for entry in addressed)
        return {entry: known for entry, known in reasons if known is not None}


def allowed_owners(who: ActorId, owners: Sequence[ActorId], sources: Iterable[ActorId]) -> list[ActorId]:
    """The owners to search, each once: those that are named, or else the actor. Raises Denied for one that the actor
    may not search."""
    permitted = {who, *sources}
    for number, owner in enumerate(owners):
        if owner not in permitted:
            raise Denied(
                f"owners[{number}] is neither the actor nor one of its sources; add it to sources to allow it",
                reason=Reason.OWNER_NOT_ALLOWED,
                field=f"owners[{number}]",
            )
    return list(dict.fromkeys(owners or [who]))


def known_by(entry: Entry, who: ActorId, groups: Sequence[Group], now: Moment | None) -> Known | None:
    """Why ``who`` may know another one's record at ``now``; None where it may not, or does not yet."""
    for group in groups:
        if group.group_id in entry.head.audience:
            return Known(Access.GROUP, group.recall_weight, group_id=group.group_id)
    for share in entry.shares:
        if share.recipient == who and (now is None or share.moment.not_after(now)):
            access = Access.WITNESS if share.kind is ShareKind.WITNESS else Access.HEARSAY
            return Known(access, share.confidence, share=share)
    return None
