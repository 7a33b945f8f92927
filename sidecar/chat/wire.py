"""Between the contract's chat messages and our rows, prompts and cuts. Only the services use it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sidecar.chat.prompt import Attachment, Declaration, Line, Section
from sidecar.chat.prompts import Prompt, PromptRequest, SectionSize
from sidecar.chat.roles import Role
from sidecar.chat.rows import Kind, Row, message_kind
from sidecar.compaction.wire import budget_to, count_to, cuts_to, window_to
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, memory_pb2
from sidecar.memory.moments import Moment, checked_moment
from sidecar.settings import ChatSettings
from sidecar.storage.keys import checked_id
from sidecar.wire import time_to

_MAX_TOOLS = 128
_MAX_ATTACHMENTS = 32
_MAX_TELEMETRY = 256
_PAGE_BYTES = 3_000_000


def rows_from_messages(messages: Sequence[chat_pb2.NewMessage], limits: ChatSettings, *, persist: bool) -> list[Row]:
    """Drafts of the messages that are not blank. Raises InvalidInput."""
    _require_count(len(messages), "messages", most=min(limits.max_batch, limits.max_messages))
    rows = []
    for index, message in enumerate(messages):
        field = f"messages[{index}]"
        role = checked_id(message.role, f"{field}.role")
        if not role:
            raise InvalidInput(f"{field}.role is required", reason=Reason.FIELD_REQUIRED, field=f"{field}.role")
        _require_length(message.content, f"{field}.content", limits.max_content_chars)
        if message.content.strip():
            rows.append(
                Row(
                    message_kind(role),
                    role,
                    message.content,
                    input_id=checked_id(message.input_id, f"{field}.input_id"),
                    speaker=checked_id(message.speaker, f"{field}.speaker"),
                    moment=moment_from(message, field),
                    persisted=persist,
                )
            )
    return rows


def rows_from_entries(entries: Sequence[chat_pb2.TranscriptEntry], limits: ChatSettings, *, persist: bool) -> list[Row]:
    """Drafts of the transcript rows. Raises InvalidInput."""
    _require_count(len(entries), "entries", most=limits.max_batch)
    rows = []
    for index, entry in enumerate(entries):
        field = f"entries[{index}]"
        if entry.kind not in _KINDS:
            raise InvalidInput(
                f"{field}.kind must say what the row tells", reason=Reason.FIELD_INVALID, field=f"{field}.kind"
            )
        _require_length(entry.content, f"{field}.content", limits.max_content_chars)
        rows.append(
            Row(
                _KINDS[entry.kind],
                checked_id(entry.key, f"{field}.key"),
                entry.content,
                call_id=checked_id(entry.call_id, f"{field}.call_id"),
                moment=moment_from(entry, field),
                persisted=persist,
            )
        )
    return rows


def moment_from(message: Any, field: str) -> Moment | None:
    """The message's moment, checked, where it has one."""
    if not message.HasField("moment"):
        return None
    given = message.moment
    return checked_moment(Moment(given.timeline_id, given.tick, given.calendar_json), f"{field}.moment")


def message_to(row: Row) -> chat_pb2.ChatMessage:
    """A message of the history."""
    return chat_pb2.ChatMessage(
        role=row.key,
        content=row.content,
        time=time_to(row.time),
        order=row.order,
        persisted=row.persisted,
        input_id=row.input_id,
        speaker=row.speaker,
        moment=_moment_to(row.moment),
    )


def entry_to(row: Row) -> chat_pb2.TranscriptEntry:
    """A row of the transcript."""
    return chat_pb2.TranscriptEntry(
        kind=_KIND_NUMBERS[row.kind],
        key=row.key,
        content=row.content,
        call_id=row.call_id,
        time=time_to(row.time),
        order=row.order,
        persisted=row.persisted,
        message=row.number > 0,
        moment=_moment_to(row.moment),
    )


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
    return rows[start:end], _token_of(rows[start].order) if start else ""


def request_from(
    message: chat_pb2.TurnInput,
    tools: Sequence[chat_pb2.GameTool],
    recalled: tuple[str, ...],
    recall_tokens: int,
    limits: ChatSettings,
) -> PromptRequest:
    """A turn, as far as the prompt is concerned. Raises InvalidInput."""
    for field in ("text", "instructions", "world_state", "system_prompt"):
        _require_length(getattr(message, field), f"input.{field}", limits.max_content_chars)
    return PromptRequest(
        line=line_from(message),
        system_prompt=message.system_prompt if message.HasField("system_prompt") else None,
        instructions=message.instructions,
        world_state=message.world_state,
        recalled=recalled,
        recall_tokens=recall_tokens,
        game_tools=_declarations(tools),
        allowed_tools=_allowed(message),
        context_tokens=message.context_tokens if message.HasField("context_tokens") else None,
        max_output_tokens=message.max_output_tokens if message.HasField("max_output_tokens") else None,
    )


def line_from(message: chat_pb2.TurnInput) -> Line:
    """What the player says. Raises InvalidInput."""
    _require_count(len(message.attachments), "input.attachments", least=0, most=_MAX_ATTACHMENTS)
    _require_count(len(message.telemetry), "input.telemetry", least=0, most=_MAX_TELEMETRY)
    return Line(
        message.text,
        tuple(Attachment(each.name, each.media_type, each.bytes) for each in message.attachments),
        dict(message.telemetry),
        message.source_tag,
    )


def prompt_to(prompt: Prompt, *, stable: bool) -> chat_pb2.BuildPromptResponse:
    """The prompt without what belongs to the save, the backend and the search."""
    return chat_pb2.BuildPromptResponse(
        messages=[
            chat_pb2.PromptMessage(
                role=sent.role, content=sent.content, section=_kind(sent.section), tokens=sent.tokens
            )
            for sent in prompt.messages
        ],
        tools=[_tool_to(tool) for tool in prompt.tools],
        sections=[_section_to(size, prompt) for size in prompt.sections],
        budget=budget_to(prompt.budget),
        window=window_to(prompt.snapshot, stored=prompt.stored, counter=prompt.counter),
        cuts=cuts_to(prompt.cuts),
        total=count_to(prompt.tokens, prompt.counter.kind),
        stable_prefix_messages=int(stable),
    )


def wire_body(prompt: Prompt, role: Role, turn: chat_pb2.TurnInput) -> dict[str, Any]:
    """The body of a chat-completions request, as far as no backend has a say in it."""
    body: dict[str, Any] = {"messages": [{"role": sent.role, "content": sent.content} for sent in prompt.messages]}
    if prompt.tools:
        body["tools"] = [tool.function() for tool in prompt.tools]
    temperature = turn.temperature if turn.HasField("temperature") else role.temperature
    longest = turn.max_output_tokens if turn.HasField("max_output_tokens") else role.max_output_tokens
    return (
        body
        | ({"temperature": temperature} if temperature is not None else {})
        | ({"max_tokens": longest} if longest else {})
    )


def _declarations(tools: Iterable[chat_pb2.GameTool]) -> tuple[Declaration, ...]:
    tools = list(tools)
    _require_count(len(tools), "tools", least=0, most=_MAX_TOOLS)
    return tuple(Declaration(tool.name, tool.description, tool.parameters_json or "{}") for tool in tools)


def _allowed(message: chat_pb2.TurnInput) -> tuple[str, ...] | None:
    if message.tool_choice == chat_pb2.TOOL_CHOICE_NONE:
        return ()
    return tuple(message.allowed_tools.names) if message.HasField("allowed_tools") else None


def _tool_to(tool: Declaration) -> memory_pb2.Tool:
    return memory_pb2.Tool(
        name=tool.name,
        description=tool.description,
        parameters_json=tool.parameters,
        function_json=json.dumps(tool.function(), ensure_ascii=False),
    )


def _section_to(size: SectionSize, prompt: Prompt) -> chat_pb2.PromptSection:
    return chat_pb2.PromptSection(
        kind=_kind(size.section),
        count=count_to(size.tokens, prompt.counter.kind),
        code_points=size.code_points,
        messages=size.messages,
    )


def _kind(section: Section) -> chat_pb2.PromptSectionKind.ValueType:
    return chat_pb2.PromptSectionKind.ValueType(section)


def _moment_to(moment: Moment | None) -> common_pb2.Moment | None:
    if moment is None:
        return None
    calendar: Mapping[str, Any] = {"calendar_json": moment.calendar} if moment.calendar else {}
    return common_pb2.Moment(timeline_id=moment.timeline, tick=moment.tick, **calendar)


def _within_bytes(rows: Sequence[Row], start: int, end: int) -> int:
    room = _PAGE_BYTES
    for index in range(end - 1, start - 1, -1):
        room -= 4 * len(rows[index].content) + 100
        if room < 0 and index < end - 1:
            return index + 1
    return start


def _token_of(order: int) -> str:
    return base64.urlsafe_b64encode(b"before:%d" % order).decode("ascii")


def _order_of(token: str) -> int:
    try:
        kind, _, order = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True).partition(b":")
        if kind != b"before":
            raise ValueError(kind)
        return int(order)
    except (UnicodeError, binascii.Error, ValueError) as error:
        raise InvalidInput(
            "page_token is not one that an earlier page gave; begin again without it",
            reason=Reason.PAGE_TOKEN_INVALID,
            field="page_token",
        ) from error


def _require_count(count: int, field: str, *, most: int, least: int = 1) -> None:
    if count < least:
        raise InvalidInput(f"{field} is empty; give at least {least}", reason=Reason.FIELD_REQUIRED, field=field)
    if count > most:
        raise InvalidInput(
            f"{field} has {count} entries; at most {most} are allowed in one call",
            reason=Reason.TOO_MANY_ITEMS,
            field=field,
            limit=field,
            value=most,
        )


def _require_length(text: str, field: str, most: int) -> None:
    if len(text) > most:
        raise InvalidInput(
            f"{field} has {len(text)} code points; at most {most} are allowed",
            reason=Reason.FIELD_TOO_LONG,
            field=field,
            limit="chat.max_content_chars",
            value=most,
        )


_KINDS = {
    chat_pb2.TRANSCRIPT_KIND_USER: Kind.USER,
    chat_pb2.TRANSCRIPT_KIND_ASSISTANT: Kind.ASSISTANT,
    chat_pb2.TRANSCRIPT_KIND_TOOL_CALL: Kind.TOOL_CALL,
    chat_pb2.TRANSCRIPT_KIND_TOOL_RESULT: Kind.TOOL_RESULT,
}
_KIND_NUMBERS = {kind: number for number, kind in _KINDS.items()}
