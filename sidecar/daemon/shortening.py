"""Messages of the contract whose texts are too long for where they travel, made shorter. Never in silence: a text that
was cut ends with "…", a list with an entry of it alone."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)

_SIGN = "…"
_MOST_ENTRIES = 16


def shortened(message: M, most: int) -> M:
    """A copy in which no text takes more than ``most`` bytes and no list has more than 16 entries beside the sign."""
    copy = type(message)()
    copy.CopyFrom(message)
    _shorten(copy, most)
    return copy


def shortened_text(text: str, most: int) -> str:
    """The beginning of the text that takes at most ``most`` bytes with its sign; all of it where that does."""
    data = text.encode()
    if len(data) <= most:
        return text
    return data[: most - len(_SIGN.encode())].decode(errors="ignore") + _SIGN


def _shorten(message: Message, most: int) -> None:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            _shorten_texts(message, field, value, most)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            for name in value:
                value[name] = shortened_text(value[name], most)
        elif field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                _shorten(inner, most)


def _shorten_texts(message: Message, field: FieldDescriptor, value: Any, most: int) -> None:
    if not field.is_repeated:
        setattr(message, field.name, shortened_text(value, most))
        return
    more = [_SIGN] if len(value) > _MOST_ENTRIES else []
    value[:] = [*(shortened_text(text, most) for text in value[:_MOST_ENTRIES]), *more]
