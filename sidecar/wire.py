"""Between the contract's common messages and our own types: for every ``service.py`` and what translates for one."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from sidecar.bounds import Bound, fits_in_head, require_length
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import common_pb2
from sidecar.memory.moments import Moment
from sidecar.storage.keys import MAX_ID_CHARS, ActorId, actor_id, ordinal
from sidecar.storage.save_state import SaveState

T = TypeVar("T")
# A client's default limit for an answer is 4 MiB; a page stays well under it.
PAGE_BYTES = 3_000_000
_LONGEST_KEY = Bound("max_key_chars", MAX_ID_CHARS)


def actor_from(message: common_pb2.Actor, *, save: str = "", field: str = "actor") -> ActorId:
    """A checked address; blank parts take their defaults, a blank save is ``save``. Raises InvalidInput that names
    ``field``."""
    return actor_id(
        save=message.save_id or save,
        actor=message.actor_id,
        role=message.role_id,
        player=message.player_id,
        topic=message.topic_id,
        tenant=message.tenant_id,
        field=field,
    )


def actor_to(who: ActorId) -> common_pb2.Actor:
    """The address with its defaults filled in."""
    return common_pb2.Actor(
        save_id=who.save,
        actor_id=who.actor,
        role_id=who.role,
        player_id=who.player,
        topic_id=who.topic,
        tenant_id=who.tenant,
    )


def key_from(idempotency_key: str) -> str:
    """The key as it is. Raises InvalidInput for one that is too long."""
    require_length(idempotency_key, "idempotency_key", _LONGEST_KEY)
    return idempotency_key


def api_key_from(api_key: str, field: str) -> str:
    """The key for a backend as it is. Raises InvalidInput for one that cannot stand in a request's head."""
    if not fits_in_head(api_key):
        raise InvalidInput(f"{field} must be printable ASCII", reason=Reason.FIELD_INVALID, field=field)
    return api_key


def require_known(enum: Any, value: int, field: str) -> None:
    """Raises InvalidInput for a value that ``enum``, a type of the contract, does not have."""
    if value not in enum.values():
        raise InvalidInput(
            f"{field} is {value}; it must be one of {', '.join(enum.keys())}", reason=Reason.FIELD_INVALID, field=field
        )


def moment_from(message: common_pb2.Moment) -> Moment:
    """A moment, not checked yet."""
    return Moment(message.timeline_id, message.tick, message.calendar_json)


def moment_to(moment: Moment) -> common_pb2.Moment:
    """A moment; the calendar only where there is one."""
    message = common_pb2.Moment(timeline_id=moment.timeline, tick=moment.tick)
    if moment.calendar:
        message.calendar_json = moment.calendar
    return message


def enum_to(value: int) -> Any:
    """One of our enums, whose numbers are those of the contract."""
    return int(value)


def state_to(state: SaveState) -> common_pb2.SaveState:
    return common_pb2.SaveState(revision=state.revision, epoch=state.epoch)


def time_to(seconds: float) -> Timestamp:
    """Unix seconds as a wall-clock time."""
    whole = int(seconds // 1)
    return Timestamp(seconds=whole, nanos=int((seconds - whole) * 1_000_000_000))


@dataclass(frozen=True)
class Paging:
    """How long a page is when the request does not say, and how long it may be."""

    default: int
    most: int


@dataclass(frozen=True)
class Page(Generic[T]):
    """Items in order; ``next_token`` is empty on the last page."""

    items: list[T]
    next_token: str


def page(
    items: Iterable[T], *, key: Callable[[T], str], size: int, token: str, paging: Paging, weight: Callable[[T], int]
) -> Page[T]:
    """The page after ``token`` of ``items``, which are sorted by ``key`` as ids are; short of ``size`` where it grows
    too heavy.

    Raises InvalidInput for a size below 0 or above the limit, and for a token that no page gave.
    """
    if not 0 <= size <= paging.most:
        raise InvalidInput(
            f"page_size is {size}; it must be from 0 (the default of {paging.default}) to {paging.most}",
            reason=Reason.FIELD_INVALID,
            field="page_size",
            limit="daemon.max_page_size",
            value=paging.most,
        )
    after = ordinal(token_key(token))
    taken: list[T] = []
    room = PAGE_BYTES
    for item in items:
        if after and ordinal(key(item)) <= after:
            continue
        room -= weight(item)
        if taken and (len(taken) == (size or paging.default) or room < 0):
            return Page(taken, token_of(key(taken[-1])))
        taken.append(item)
    return Page(taken, "")


def token_of(key: str) -> str:
    """The token of the page after the item with this key."""
    return base64.urlsafe_b64encode(key.encode("utf-8")).decode("ascii")


def token_key(token: str) -> str:
    """The key of the last item before the page that ``token`` asks for, empty for the first. Raises InvalidInput."""
    try:
        return base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True).decode("utf-8")
    except (UnicodeError, binascii.Error) as error:
        raise token_invalid() from error


def token_invalid() -> InvalidInput:
    """What to raise for a token that no page gave."""
    return InvalidInput(
        "page_token is not one that an earlier page gave; begin again without it",
        reason=Reason.PAGE_TOKEN_INVALID,
        field="page_token",
    )
