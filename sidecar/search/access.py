"""What an actor may recall: its own records, owners that it may search, and what others let it know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from sidecar.errors import Denied, Reason
from sidecar.memory.groups import Group, any_matches
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
    """What of one owner a query may look at: all of it for the reason ``known``, or else what is addressed to some
    ``groups`` and, with ``shared``, to the actor itself."""

    known: Known | None = None
    groups: tuple[Group, ...] = ()
    shared: bool = False


def allowed_owners(who: ActorId, owners: Sequence[ActorId], sources: Sequence[ActorId]) -> list[ActorId]:
    """The owners to search, each once: those that are named, or else the actor. Raises Denied for one that the actor
    may not search: that is neither the actor nor matches one of the patterns ``sources``."""
    for number, owner in enumerate(owners):
        if owner != who and not any_matches(sources, owner):
            raise Denied(
                f"owners[{number}] is neither the actor nor one of its sources; add it to sources to allow it",
                reason=Reason.OWNER_NOT_ALLOWED,
                field=f"owners[{number}]",
            )
    return list(dict.fromkeys(owners or [who]))


def by_group(group: Group) -> Known:
    """Why a member of a group may know what is addressed to it."""
    return Known(Access.GROUP, group.recall_weight, group_id=group.group_id)


def by_share(entry: Entry, who: ActorId, now: Moment | None) -> Known | None:
    """Why ``who`` may know a record that was shared; None where it may not, or does not at ``now``."""
    for share in entry.shares:
        if share.recipient == who and (now is None or share.moment.not_after(now)):
            access = Access.WITNESS if share.kind is ShareKind.WITNESS else Access.HEARSAY
            return Known(access, share.confidence, share=share)
    return None
