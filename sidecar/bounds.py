"""How much a field of a request may hold. Every room refuses what is too much or too long in the same words."""

from __future__ import annotations

from typing import NamedTuple

from sidecar.errors import InvalidInput, Reason


class Bound(NamedTuple):
    """A limit: its name, that of a setting where it is one, and the most that it allows. An error tells both."""

    name: str
    most: int


def require_count(count: int, field: str, bound: Bound) -> None:
    """Raises InvalidInput where ``count`` is more than is allowed."""
    if count > bound.most:
        raise InvalidInput(
            f"{field} has {count} entries; the limit is {bound.most}",
            reason=Reason.TOO_MANY_ITEMS,
            field=field,
            limit=bound.name,
            value=bound.most,
        )


def require_length(text: str, field: str, bound: Bound) -> None:
    """Raises InvalidInput where ``text`` has more code points than are allowed."""
    if len(text) > bound.most:
        raise InvalidInput(
            f"{field} has {len(text)} characters; the limit is {bound.most}",
            reason=Reason.FIELD_TOO_LONG,
            field=field,
            limit=bound.name,
            value=bound.most,
        )


def require_some(count: int, field: str) -> None:
    """Raises InvalidInput where there is nothing."""
    if not count:
        raise InvalidInput(f"{field} is empty; give at least one", reason=Reason.FIELD_REQUIRED, field=field)


def require_not_below_zero(value: int, field: str) -> None:
    """Raises InvalidInput for a number below 0."""
    if value < 0:
        raise InvalidInput(f"{field} is below 0", reason=Reason.FIELD_INVALID, field=field)


def fits_in_head(text: str) -> bool:
    """Whether a text can stand in the head of a request to a server: printable ASCII."""
    return text.isascii() and text.isprintable()
