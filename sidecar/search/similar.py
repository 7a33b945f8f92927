"""How similar in meaning each visible row is to the query: vectors of one identity, compared one by one, none left out.

The filter comes first, so that whatever passes it is compared and a page is as full as it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sidecar.embedding.identity import EmbeddingIdentity
from sidecar.search.column import joined
from sidecar.search.outcome import Degraded, Stage
from sidecar.search.owner_view import OwnerView
from sidecar.search.stages import Stages
from sidecar.search.vector_rows import VectorRows, VectorState
from sidecar.search.visible import Visible
from sidecar.storage.keys import ActorId

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sidecar.embedding.identity import FloatVectors

    Floats = NDArray[np.float64]
    States = NDArray[np.int8]


class Matrices(Protocol):
    """Where the matrix beside an owner's view comes from."""

    @property
    def most_compared(self) -> int:
        """The most vectors that one query may compare."""
        ...

    def of(self, who: ActorId, view: OwnerView, identity: EmbeddingIdentity) -> tuple[VectorRows, int]:
        """The matrix, up to date, and how many vectors were read for it. Raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Similar:
    """Similarities by row, NaN where there is no vector; ``values`` None where nothing was compared."""

    values: Floats | None = None
    states: States | None = None
    compared: int = 0
    degraded: Sequence[Degraded] = ()

    def state(self, row: int) -> VectorState | None:
        """The state of a row's vector; None where nobody looked."""
        return None if self.states is None else VectorState(int(self.states[row]))


def similar(
    visible: Visible, matrices: Matrices, identity: EmbeddingIdentity, query: FloatVectors, stages: Stages
) -> Similar:
    """Compare every visible row with the query. Raises Unavailable."""
    import numpy as np

    if len(visible) > matrices.most_compared:
        stages.add(Stage.VECTORS_READ, len(visible), 0)
        return Similar(degraded=(Degraded.SCAN_LIMIT,))
    rows, read, damaged = [], 0, 0
    for part in visible.parts:
        matrix, new = matrices.of(part.owner, part.view, identity)
        rows.append((matrix, np.asarray(part.rows, np.int64)))
        read, damaged = read + new, damaged + matrix.damaged
    states = joined([matrix.states[some] for matrix, some in rows], "int8")
    ready = int(np.count_nonzero(states == VectorState.READY))
    stages.add(Stage.VECTORS_READ, len(visible), ready, reused=not read)
    values = joined([matrix.similarities(query, some) for matrix, some in rows], "float64")
    missing = {Degraded.VECTORS_PENDING: VectorState.PENDING, Degraded.VECTORS_STALE: VectorState.STALE}
    degraded = [reason for reason, state in missing.items() if (states == state).any()]
    return Similar(values, states, ready, [*degraded, Degraded.INDEX_DAMAGED] if damaged else degraded)
