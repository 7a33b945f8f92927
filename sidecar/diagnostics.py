"""What the daemon tells of itself while it runs: a coded event, without content.

Rooms are handed a ``Report`` and call it; who listens is none of their business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class Severity(IntEnum):
    """The numbers are those of the contract."""

    INFORMATION = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True)
class Diagnostic:
    """``code`` is from the list in ``docs/diagnostics.md``; ``details`` hold counts, names of files and limits.

    What is ``routine`` is told to who watches, is not logged, and takes no other's place.
    """

    code: str
    message: str
    severity: Severity = Severity.INFORMATION
    details: Mapping[str, str] = field(default_factory=dict)
    routine: bool = False


Report = Callable[[Diagnostic], None]
