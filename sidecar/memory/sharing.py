"""How others come to know a record: who was there, who was told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sidecar.memory.records import Share, ShareKind
from sidecar.storage.keys import ActorId


def merged_shares(known: Sequence[Share], added: Iterable[Share]) -> tuple[tuple[Share, ...], int]:
    """Everyone who knows the record then, and how many are new or know it better.

    Who knows it already keeps the better kind (a witness stays one) and, of one kind, the earlier moment.
    """
    shares: dict[ActorId, Share] = {share.recipient: share for share in known}
    changed = 0
    for share in added:
        before = shares.get(share.recipient)
        if before is None or _better(share, before):
            shares[share.recipient] = share
            changed += 1
    return tuple(shares.values()), changed


def _better(one: Share, other: Share) -> bool:
    if one.kind is not other.kind:
        return one.kind is ShareKind.WITNESS
    return one.moment.tick < other.moment.tick
