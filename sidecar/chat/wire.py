"""Between the contract's messages and transcript rows and our own. Only the services use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sidecar.bounds import Bound, require_count, require_length, require_some
from sidecar.chat.rows import Kind, Row, message_kind
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import chat_pb2
from sidecar.memory.moments import Moment, checked_moment
from sidecar.settings import ChatSettings
from sidecar.storage.keys import checked_id
from sidecar.wire import PAGE_BYTES, moment_from, moment_to, token_invalid, token_key, token_of


def rows_from_messages(messages: Sequence[chat_pb2.NewMessage], limits: ChatSettings, *, persist: bool) -> list[Row]:
    """Drafts of the messages that are not blank. Raises InvalidInput."""
    _require_batch(len(messages), "messages", limits)
    rows = []
    for index, message in enumerate(messages):
        field = f"messages[{index}]"
        role = checked_id(message.role, f"{field}.role")
        if not role:
            raise InvalidInput(f"{field}.role is required", reason=Reason.FIELD_REQUIRED, field=f"{field}.role")
        require_length(message.content, f"{field}.content", content_bound(limits))
        if message.content.strip():
            rows.append(
                Row(
                    message_kind(role),
                    role,
                    message.content,
                    input_id=checked_id(message.input_id, f"{field}.input_id"),
                    speaker=checked_id(message.speaker, f"{field}.speaker"),
                    moment=moment_in(message, field),
                    persisted=persist,
                )
            )
    return rows


def rows_from_entries(entries: Sequence[chat_pb2.TranscriptEntry], limits: ChatSettings, *, persist: bool) -> list[Row]:
    """Drafts of the transcript rows. Raises InvalidInput."""
    _require_batch(len(entries), "entries", limits)
    rows = []
    for index, entry in enumerate(entries):
        field = f"entries[{index}]"
        if entry.kind not in _KINDS:
            raise InvalidInput(
                f"{field}.kind must say what the row tells", reason=Reason.FIELD_INVALID, field=f"{field}.kind"
            )
        require_length(entry.content, f"{field}.content", content_bound(limits))
        rows.append(
            Row(
                _KINDS[entry.kind],
                checked_id(entry.key, f"{field}.key"),
                entry.content,
                call_id=checked_id(entry.call_id, f"{field}.call_id"),
                moment=moment_in(entry, field),
                persisted=persist,
            )
        )
    return rows


def content_bound(limits: ChatSettings) -> Bound:
    """How long a message may be, or what is said in a turn."""
    return Bound("chat.max_content_chars", limits.max_content_chars)


def _require_batch(count: int, field: str, limits: ChatSettings) -> None:
    require_some(count, field)
    require_count(count, field, Bound("chat.max_batch", limits.max_batch))


def moment_in(message: Any, field: str) -> Moment | None:
    """The message's moment, checked, where it has one."""
    if not message.HasField("moment"):
        return None
    return checked_moment(moment_from(message.moment), f"{field}.moment")


def add_messages(target: Any, rows: Iterable[Row]) -> None:
    """Puts messages of the history into a repeated ``ChatMessage``; in place, since pages are read often."""
    for row in rows:
        message = target.add(role=row.key, content=row.content, order=row.order, persisted=row.persisted)
        message.time.seconds = row.time
        if row.input_id or row.speaker:
            message.input_id, message.speaker = row.input_id, row.speaker
        if row.moment:
            message.moment.CopyFrom(moment_to(row.moment))


def add_entries(target: Any, rows: Iterable[Row]) -> None:
    """Puts rows of the transcript into a repeated ``TranscriptEntry``."""
    for row in rows:
        entry = target.add(
            kind=_KIND_NUMBERS[row.kind],
            key=row.key,
            content=row.content,
            call_id=row.call_id,
            order=row.order,
            persisted=row.persisted,
            message=row.number > 0,
        )
        entry.time.seconds = row.time
        if row.moment:
            entry.moment.CopyFrom(moment_to(row.moment))


def newest_page(rows: Sequence[Row], *, size: int, token: str, most: int) -> tuple[Sequence[Row], str]:
    """The newest rows before ``token``, oldest first, and the token of the page before them.

    Raises InvalidInput for a size that is not allowed and a token that no page gave.
    """
    if not 0 <= size <= most:
        raise InvalidInput(
            f"page_size is {size}; it must be from 0 (all that are kept) to {most}",
            reason=Reason.FIELD_INVALID,
            field="page_size",
            limit="page_size",
            value=most,
        )
    end = len(rows)
    if token:
        before = _order_of(token)
        end = next((index for index, row in enumerate(rows) if row.order >= before), end)
    start = max(0, end - (size or most))
    start = _within_bytes(rows, start, end)
    return rows[start:end], token_of(f"before:{rows[start].order}") if start else ""


def _within_bytes(rows: Sequence[Row], start: int, end: int) -> int:
    room = PAGE_BYTES
    for index in range(end - 1, start - 1, -1):
        room -= 4 * len(rows[index].content) + 100
        if room < 0 and index < end - 1:
            return index + 1
    return start


def _order_of(token: str) -> int:
    kind, _, order = token_key(token).partition(":")
    if kind != "before" or not order.isdecimal():
        raise token_invalid()
    return int(order)


_KINDS = {
    chat_pb2.TRANSCRIPT_KIND_USER: Kind.USER,
    chat_pb2.TRANSCRIPT_KIND_ASSISTANT: Kind.ASSISTANT,
    chat_pb2.TRANSCRIPT_KIND_TOOL_CALL: Kind.TOOL_CALL,
    chat_pb2.TRANSCRIPT_KIND_TOOL_RESULT: Kind.TOOL_RESULT,
}
_KIND_NUMBERS = {kind: number for number, kind in _KINDS.items()}
