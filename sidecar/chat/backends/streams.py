"""What the bytes of an answer say: pieces of text and the end, from a stream of events or one whole object. No I/O."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from sidecar.chat.backends.failures import BackendFailed, Failure, FailureKind, failure_of, told_failure
from sidecar.chat.backends.sse import Event, EventParser, EventTooLong
from sidecar.chat.backends.wire import Answer, AnswerParts

_DONE = "[DONE]"


class AnswerStream:
    """The events of one answer."""

    def __init__(self, max_event_bytes: int) -> None:
        self._parser = EventParser(max_bytes=max_event_bytes)
        self._events = 0
        self.parts = AnswerParts()
        self.done = False

    def feed(self, chunk: bytes) -> list[str]:
        """The pieces of text in these bytes. Raises BackendFailed."""
        try:
            events = self._parser.feed(chunk)
        except EventTooLong as error:
            raise BackendFailed(too_long()) from error
        texts = [self._take(event) for event in events if not self.done]
        return [text for text in texts if text]

    def end(self, *, delimited: bool) -> list[str | Answer]:
        """The last part. A stream that broke off is a failure, as half an answer must not pass for a whole one."""
        rest = self._parser.rest().strip()
        if not self._events and rest:
            return whole_answer(rest)
        if not self.done and not self.parts.ended and (rest or not delimited or not self._events):
            raise BackendFailed(failure_of(FailureKind.BACKEND_UNAVAILABLE))
        return [replace(self.parts.answer(), streamed=True)]

    def _take(self, event: Event) -> str:
        self._events += 1
        if event.data.strip() == _DONE:
            self.done = True
            return ""
        return self.parts.take(_object(event.data))


def whole_answer(body: bytes) -> list[str | Answer]:
    """An answer that was not streamed."""
    parts = AnswerParts()
    text = parts.take(_object(body))
    return [text, parts.answer()] if text else [parts.answer()]


def _object(data: bytes | str) -> dict[str, Any]:
    """The object in an event or a body. Raises BackendFailed where it tells an error or is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BackendFailed(failure_of(FailureKind.PROVIDER_ERROR)) from error
    if not isinstance(value, dict):
        raise BackendFailed(failure_of(FailureKind.PROVIDER_ERROR))
    told = told_failure(value)
    if told:
        raise BackendFailed(told)
    return value


def too_long() -> Failure:
    """The answer passes the bound of its size."""
    return Failure(FailureKind.PROVIDER_ERROR, "the backend's answer is longer than backends.max_answer_bytes allows")
