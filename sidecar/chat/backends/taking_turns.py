"""Messages for models whose chat template takes the roles in turns only. No I/O.

    system, user, user, assistant, user, user   ──>   system, user, assistant, user

Nothing is left out: neighbours of one role become one message, in their order. Most templates take any order, so it is
done only for a model whose server has refused one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import IntEnum

from sidecar.chat.backends.wire import ASSISTANT, SYSTEM, TOOL, USER, WireMessage

BEGINNING = "(The conversation begins.)"
"""What stands for the user's turn before an answer that nobody asked for, such as a greeting."""


class RoleOrder(IntEnum):
    """What a chat template takes, each stricter than the one before."""

    ANY = 0
    IN_TURNS = 1
    """A system message first, if any, then user and assistant in turns."""
    NO_SYSTEM = 2
    """In turns, and no system message at all."""


def in_order(messages: Sequence[WireMessage], order: RoleOrder) -> list[WireMessage]:
    """The messages as the template takes them."""
    if order is RoleOrder.ANY or not messages:
        return list(messages)
    first, rest = messages[0], messages[1:]
    head = [first] if first.role == SYSTEM else []
    said = _joined(_as_user(message) for message in (rest if head else messages))
    if said and said[0].role == ASSISTANT:
        said.insert(0, WireMessage(USER, BEGINNING))
    if head and order is RoleOrder.NO_SYSTEM:
        return _joined([_as_user(first), *said])
    return [*head, *said]


def _as_user(message: WireMessage) -> WireMessage:
    return replace(message, role=USER) if message.role == SYSTEM else message


def _joined(messages: Iterable[WireMessage]) -> list[WireMessage]:
    """What is added behind results of tools goes with the last one: the next turn is the assistant's."""
    joined: list[WireMessage] = []
    for message in messages:
        if joined and _is_one_turn(joined[-1], message):
            joined[-1] = replace(joined[-1], content=f"{joined[-1].content}\n\n{message.content}", calls=message.calls)
        else:
            joined.append(message)
    return joined


def _is_one_turn(last: WireMessage, message: WireMessage) -> bool:
    if last.role == TOOL:
        return message.role == USER
    return last.role == message.role and not last.calls
