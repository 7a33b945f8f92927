"""Between the contract's messages and turns. Only the services use it."""

from __future__ import annotations

from typing import Any

from sidecar.bounds import Bound, require_length
from sidecar.chat.prompt_wire import prompt_to, request_from
from sidecar.chat.role_messages import recall_of
from sidecar.chat.roles import Role
from sidecar.chat.turns.arguments import InvalidSchema, Schema, read_schema
from sidecar.chat.turns.events import (
    Answered,
    Called,
    Completed,
    Event,
    Failed,
    Said,
    Spent,
    Started,
    TakenBack,
    Timings,
    Warned,
    WasCut,
)
from sidecar.chat.turns.input import AnswerForm, TurnInput
from sidecar.chat.turns.showing import Shown
from sidecar.chat.wire import moment_in
from sidecar.compaction.wire import count_to, cuts_to, window_to
from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2
from sidecar.settings import ChatSettings, TurnSettings
from sidecar.storage.keys import checked_id
from sidecar.wire import api_key_from

_HIGHEST_TEMPERATURE = 2.0


def turn_from(message: chat_pb2.TurnInput, role: Role, chat: ChatSettings, limits: TurnSettings) -> TurnInput:
    """The line and how its turn is to go, checked. Raises InvalidInput."""
    if not message.text.strip() and not message.attachments:
        raise _wrong("input.text", "is empty; say something", Reason.FIELD_REQUIRED)
    return wordless_turn_from(message, role, chat, limits)


def wordless_turn_from(message: chat_pb2.TurnInput, role: Role, chat: ChatSettings, limits: TurnSettings) -> TurnInput:
    """The same for a turn that is only to be shown: it need not say anything."""
    return TurnInput(
        asked=request_from(message, chat),
        input_id=checked_id(message.input_id, "input.input_id"),
        moment=moment_in(message, "input"),
        speaker=checked_id(message.speaker, "input.speaker"),
        recall=recall_of(message, role.recall),
        max_roundtrips=_number(message, "max_roundtrips", low=0),
        form=_form(message.response_schema_json, limits),
        backend_id=checked_id(message.backend_id, "input.backend_id"),
        model=checked_id(message.model, "input.model"),
        api_key=api_key_from(message.api_key, "input.api_key"),
        temperature=_temperature(message),
        timeout_ms=_number(message, "timeout_ms", low=1),
        persist=message.persist if message.HasField("persist") else None,
    )


def shown_to(shown: Shown, *, stable: bool) -> chat_pb2.BuildPromptResponse:
    """A prompt that is only shown; ``stable``: whether it begins as every turn of its role does."""
    response = prompt_to(shown.prompt, stable=stable)
    response.cuts.extend(cuts_to(shown.cuts))
    recalled = shown.opening.recalled
    response.recalled.extend(hit.message for hit in recalled.hits[: shown.prompt.recalled])
    response.degraded_reason = common_pb2.DegradedReason.ValueType(recalled.degraded)
    response.backend_id, response.model = shown.chosen.backend.backend_id, shown.chosen.model
    return response


def event_to(event: Event, *, sequence: int, turn_id: str, input_id: str) -> chat_pb2.TurnEvent:
    """One event as the contract tells it."""
    told: dict[str, Any] = {_FIELDS[type(event)]: _TO[type(event)](event)}
    return chat_pb2.TurnEvent(sequence=sequence, turn_id=turn_id, input_id=input_id, **told)


def failure_to(failed: Failed) -> chat_pb2.TurnFailure:
    """Why a turn failed."""
    failure = failed.failure
    message = chat_pb2.TurnFailure(
        code=chat_pb2.TurnFailureCode.Value(f"TURN_FAILURE_CODE_{failure.kind}"),
        message=failure.message,
        http_status=failure.http_status,
        executed_tools=failed.executed_tools,
        raw_text=failed.raw_text,
        schema_errors=failed.schema_errors,
        usage=_usage_to(failed.spent),
        backend_id=failed.backend_id,
        reason=failed.reason,
    )
    if failure.retry_after_ms is not None:
        message.retry_after_ms = failure.retry_after_ms
    return message


def _form(text: str, limits: TurnSettings) -> AnswerForm | None:
    if not text.strip():
        return None
    require_length(text, "input.response_schema_json", Bound("turns.max_schema_chars", limits.max_schema_chars))
    try:
        schema = read_schema(text)
        return AnswerForm(schema, Schema(schema))
    except InvalidSchema as error:
        raise _wrong("input.response_schema_json", f"is no JSON schema: {error}", Reason.SCHEMA_INVALID) from error


def _temperature(message: chat_pb2.TurnInput) -> float | None:
    if not message.HasField("temperature"):
        return None
    if not 0 <= message.temperature <= _HIGHEST_TEMPERATURE:
        raise _wrong("input.temperature", "must be from 0 to 2", Reason.FIELD_INVALID)
    return message.temperature


def _number(message: Any, name: str, *, low: int) -> int | None:
    if not message.HasField(name):
        return None
    value: int = getattr(message, name)
    if value < low:
        raise _wrong(f"input.{name}", f"is {value}; it must be at least {low}", Reason.FIELD_INVALID)
    return value


def _wrong(field: str, why: str, reason: Reason) -> InvalidInput:
    return InvalidInput(f"{field} {why}", reason=reason, field=field)


def _started_to(event: Started) -> chat_pb2.TurnStarted:
    prompt = event.prompt
    return chat_pb2.TurnStarted(
        backend_id=event.backend_id,
        model=event.model,
        window=window_to(prompt.snapshot, stored=prompt.stored, counter=prompt.counter),
        prompt=count_to(prompt.tokens, prompt.counter.kind),
        resend=prompt.resend,
        recalled_record_ids=[hit.message.record.record_id for hit in event.recalled],
    )


def _called_to(event: Called) -> chat_pb2.ToolCallEvent:
    return chat_pb2.ToolCallEvent(
        call_id=event.call.call_id,
        name=event.call.name,
        arguments_json=event.call.arguments_json,
        origin=chat_pb2.ToolOrigin.Value(f"TOOL_ORIGIN_{event.origin}"),
        roundtrip=event.roundtrip,
        timeout_ms=event.timeout_ms,
        mutating=event.call.mutating,
    )


def _answered_to(event: Answered) -> chat_pb2.ToolResultEvent:
    outcome = event.outcome
    return chat_pb2.ToolResultEvent(
        call_id=outcome.call_id,
        name=outcome.name,
        succeeded=outcome.succeeded,
        result=event.shown,
        duration_ms=outcome.duration_ms,
        duplicate=outcome.duplicate,
        reason=outcome.reason,
        origin=chat_pb2.ToolOrigin.Value(f"TOOL_ORIGIN_{event.origin}"),
    )


def _warned_to(event: Warned) -> chat_pb2.TurnWarning:
    return chat_pb2.TurnWarning(
        code=chat_pb2.TurnWarningCode.Value(f"TURN_WARNING_CODE_{event.code}"),
        message=event.message,
        details=event.details,
        wait_ms=event.wait_ms,
    )


def _completed_to(event: Completed) -> chat_pb2.TurnCompleted:
    return chat_pb2.TurnCompleted(
        text=event.text,
        response_json=event.response_json,
        finish_reason=chat_pb2.FinishReason.Value(f"FINISH_REASON_{event.finish}"),
        usage=_usage_to(event.spent),
        timings=_timings_to(event.timings),
        document_version=event.document_version,
        roundtrips=event.roundtrips,
        tool_calls=event.tool_calls,
        cuts=cuts_to(event.cuts),
        backend_id=event.backend_id,
        model=event.model,
        compaction_pending=event.compaction_pending,
        message_order=event.message_order,
    )


def _usage_to(spent: Spent) -> chat_pb2.Usage:
    return chat_pb2.Usage(
        prompt_tokens=spent.prompt,
        completion_tokens=spent.completion,
        cached_prompt_tokens=spent.cached,
        reported=spent.reported,
        estimated_prompt=count_to(spent.estimated, spent.counter),
        last_prompt_tokens=spent.last_prompt,
    )


def _timings_to(timings: Timings) -> chat_pb2.TurnTimings:
    return chat_pb2.TurnTimings(
        prompt_ms=timings.prompt,
        first_text_ms=timings.first_text,
        model_ms=timings.model,
        tools_ms=timings.tools,
        compaction_ms=timings.compaction,
        total_ms=timings.total,
    )


_FIELDS = {
    Started: "started",
    Said: "text",
    TakenBack: "text_reset",
    Called: "tool_call",
    Answered: "tool_result",
    WasCut: "cut",
    Warned: "warning",
    Completed: "completed",
    Failed: "turn_failed",
}
_TO: dict[type[Any], Any] = {
    Started: _started_to,
    Said: lambda event: chat_pb2.TextDelta(text=event.text, starts_message=event.starts_message),
    TakenBack: lambda event: chat_pb2.TextReset(reason=event.reason),
    Called: _called_to,
    Answered: _answered_to,
    WasCut: lambda event: cuts_to([event.cut])[0],
    Warned: _warned_to,
    Completed: _completed_to,
    Failed: failure_to,
}
