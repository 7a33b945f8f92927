"""Between the contract's turns and prompts and our own. Only the services use it."""

from __future__ import annotations

from sidecar.bounds import Bound, require_count, require_length, require_not_below_zero
from sidecar.chat.prompt import Attachment, Declaration, Line, Section
from sidecar.chat.prompt_request import PromptRequest
from sidecar.chat.prompts import Prompt, SectionSize
from sidecar.chat.wire import content_bound
from sidecar.compaction.wire import budget_to, count_to, window_to
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import chat_pb2, memory_pb2
from sidecar.settings import ChatSettings
from sidecar.storage.keys import checked_id

_ATTACHMENTS = Bound("input.attachments", 32)
_TELEMETRY = Bound("input.telemetry", 256)
_ALLOWED = Bound("input.allowed_tools", 256)


def request_from(message: chat_pb2.TurnInput, limits: ChatSettings) -> PromptRequest:
    """A turn, as far as the prompt is concerned. Raises InvalidInput."""
    for field in ("text", "instructions", "world_state", "system_prompt"):
        require_length(getattr(message, field), f"input.{field}", content_bound(limits))
    for field in ("context_tokens", "max_output_tokens"):
        require_not_below_zero(getattr(message, field), f"input.{field}")
    return PromptRequest(
        line=line_from(message),
        system_prompt=message.system_prompt if message.HasField("system_prompt") else None,
        instructions=message.instructions,
        world_state=message.world_state,
        allowed_tools=_allowed(message),
        must_call=_must_call(message),
        knows_moment=message.HasField("moment"),
        context_tokens=message.context_tokens if message.HasField("context_tokens") else None,
        max_output_tokens=message.max_output_tokens if message.HasField("max_output_tokens") else None,
    )


def line_from(message: chat_pb2.TurnInput) -> Line:
    """What the player says. Raises InvalidInput."""
    require_count(len(message.attachments), _ATTACHMENTS.name, _ATTACHMENTS)
    attachments = tuple(_attachment(each, f"input.attachments[{n}]") for n, each in enumerate(message.attachments))
    require_count(len(message.telemetry), _TELEMETRY.name, _TELEMETRY)
    return Line(
        message.text,
        attachments,
        dict(message.telemetry),
        message.source_tag,
    )


def prompt_to(prompt: Prompt, *, stable: bool) -> chat_pb2.BuildPromptResponse:
    """The prompt without its cuts and what belongs to the save, the backend and the search."""
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
        total=count_to(prompt.tokens, prompt.counter.kind),
        stable_prefix_messages=int(stable),
    )


def _allowed(message: chat_pb2.TurnInput) -> tuple[str, ...] | None:
    if message.tool_choice == chat_pb2.TOOL_CHOICE_NONE:
        return ()
    names = message.allowed_tools.names
    require_count(len(names), _ALLOWED.name, _ALLOWED)
    return tuple(names) if message.HasField("allowed_tools") else None


def _attachment(message: chat_pb2.Attachment, path: str) -> Attachment:
    require_not_below_zero(message.bytes, f"{path}.bytes")
    name, media_type = (checked_id(getattr(message, part), f"{path}.{part}") for part in ("name", "media_type"))
    return Attachment(name, media_type, message.bytes)


def _must_call(message: chat_pb2.TurnInput) -> str | None:
    if message.tool_choice not in chat_pb2.ToolChoice.values():
        raise InvalidInput(
            "input.tool_choice is not one of the contract's values",
            reason=Reason.FIELD_INVALID,
            field="input.tool_choice",
        )
    if message.tool_choice == chat_pb2.TOOL_CHOICE_ANY:
        return ""
    if message.tool_choice != chat_pb2.TOOL_CHOICE_NAMED:
        return None
    if not message.tool_name:
        raise InvalidInput(
            "input.tool_name is empty; name the tool that must be called",
            reason=Reason.FIELD_REQUIRED,
            field="input.tool_name",
        )
    return message.tool_name


def _tool_to(tool: Declaration) -> memory_pb2.Tool:
    return memory_pb2.Tool(
        name=tool.name,
        description=tool.description,
        parameters_json=tool.parameters,
        function_json=tool.function_json(),
        mutating=tool.mutating,
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
