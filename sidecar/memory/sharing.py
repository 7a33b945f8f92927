"""How others come to know a record: who was there, who was told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sidecar.memory.records import Share, ShareKind
from sidecar.storage.keys import ActorId


def merged_shares(known: Sequence[Share], added: Iterable[Share]) -> tuple[tuple[Share, ...], int]:
    """Everyone who knows the record then, and how many are new or know it better."""
    shares: dict[ActorId, Share] = {share.recipient: share for share in known}
    changed = 0
    for share in added:
        before = shares.get(share.recipient)
        after = share if before is None else _merged(before, share)
        shares[share.recipient] = after
        changed += after != before
    return tuple(shares.values()), changed


def _merged(before: Share, share: Share) -> Share:
    """The better kind (a witness stays one; of one kind, the earlier) since the earlier moment: nobody unlearns what
    was known before."""
    earlier = share.moment.tick < before.moment.tick
    better = earlier if share.kind is before.kind else share.kind is ShareKind.WITNESS
    return replace(share if better else before, moment=share.moment if earlier else before.moment)
