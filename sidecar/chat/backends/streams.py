"""What the bytes of an answer say: pieces of text and the end, from a stream of events or one whole object. No I/O."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from sidecar.chat.backends.failures import BackendFailed, Failure, FailureKind, failure_of, told_failure
from sidecar.chat.backends.sse import ERROR, Event, EventParser, EventTooLong
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
        if not self._events and rest and not rest.startswith(b"data"):
            return whole_answer(rest)
        last = [] if self._ended else self._last_event()
        if not self._ended and not (delimited and self._events):
            raise BackendFailed(failure_of(FailureKind.BACKEND_UNAVAILABLE))
        return [*last, replace(self.parts.answer(), streamed=True)]

    @property
    def _ended(self) -> bool:
        return self.done or self.parts.ended

    def _last_event(self) -> list[str]:
        """The event that the end of the body ends in place of a blank line."""
        try:
            return self.feed(b"\n\n")
        except BackendFailed as error:
            if error.failure.kind is FailureKind.PROVIDER_ERROR:
                raise BackendFailed(failure_of(FailureKind.BACKEND_UNAVAILABLE)) from error
            raise

    def _take(self, event: Event) -> str:
        data = event.data.strip()
        if not data:
            return ""
        self._events += 1
        if data == _DONE:
            self.done = True
            return ""
        if event.name == ERROR:
            raise BackendFailed(_fault(data))
        return self.parts.take(_object(data))


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


def _fault(data: str) -> Failure:
    """What an event that is named an error tells."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = data
    told = value if isinstance(value, dict) and "error" in value else {"error": value}
    return told_failure(told) or failure_of(FailureKind.PROVIDER_ERROR)


def too_long() -> Failure:
    """The answer passes the bound of its size."""
    return Failure(FailureKind.PROVIDER_ERROR, "the backend's answer is longer than backends.max_answer_bytes allows")
