"""Numbers that grow at the end and can be looked at all at once, with NumPy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any


class Column:
    """``data`` is what is there now."""

    def __init__(self, kind: str) -> None:
        import numpy as np

        self._room = np.empty(8, dtype=kind)
        self._size = 0

    @property
    def data(self) -> Any:
        return self._room[: self._size]

    def extend(self, values: Collection[float]) -> None:
        """Add values at the end."""
        import numpy as np

        end = self._size + len(values)
        if end > len(self._room):
            self._room = np.concatenate([self.data, np.empty(end, self._room.dtype)])
        self._room[self._size : end] = np.fromiter(values, self._room.dtype, len(values))
        self._size = end

    def put(self, row: int, value: float) -> None:
        """Change one of them."""
        self._room[row] = value


def joined(arrays: Sequence[Any], kind: str) -> Any:
    """Arrays one after the other, of NumPy's type ``kind`` where there are none. One alone is given as it is: nobody
    may write into it."""
    import numpy as np

    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=kind)
