"""The chat-completions wire: what a request holds, and how the pieces of an answer become text and tool calls. No I/O.

    {"choices":[{"delta":{"content":"Good"}}]}                                                  a piece of text
    {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"give"}}]}}]}    a call begins
    {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"n\""}}]}}]}      and goes on
    {"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{…}}                         the end

Reasoning (``reasoning_content``, ``reasoning``) is never text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from sidecar.bounds import fits_in_head
from sidecar.chat.backends.profile import Backend

SYSTEM = "system"
USER = "user"
ASSISTANT = "assistant"
TOOL = "tool"
_FINISHES = {"max_tokens": "length", "model_length": "length", "safety": "content_filter"}


@dataclass(frozen=True, slots=True)
class WireCall:
    """One tool call of a model; ``arguments`` is the JSON text as it came, perhaps broken."""

    name: str
    arguments: str
    call_id: str = ""

    def says_the_same_as(self, other: WireCall) -> bool:
        """Whether both call the same tool with the same arguments, whatever their ids and white space."""
        return self.name == other.name and _value(self.arguments) == _value(other.arguments)


@dataclass(frozen=True, slots=True)
class WireMessage:
    """One message of a request."""

    role: str
    content: str
    calls: tuple[WireCall, ...] = ()
    call_id: str = ""

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.calls:
            value["tool_calls"] = [_call_to_json(call) for call in self.calls]
            value["content"] = self.content or None
        if self.role == TOOL:
            value["tool_call_id"] = self.call_id
        return value


def _new_id() -> str:
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Ask:
    """One request to a model. ``tools`` are in the wire's own form.

    ``role_id`` is whose words are asked for; ``call_id`` is the same in every attempt and tells nothing.
    """

    messages: Sequence[WireMessage]
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str | Mapping[str, Any] = ""
    model: str = ""
    temperature: float | None = None
    max_output_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    role_id: str = ""
    call_id: str = field(default_factory=_new_id, compare=False)

    def headers(self) -> dict[str, str]:
        """What a server may know of the call beside its body; a role id that is no plain ASCII is percent-encoded."""
        role = self.role_id if fits_in_head(self.role_id) else quote(self.role_id, safe="")
        told = {"idempotency-key": self.call_id, "x-coreai-role": role}
        return {name: value for name, value in told.items() if value}

    def body(self, backend: Backend) -> dict[str, Any]:
        """The request's body; the profile's own values fill what is not asked for."""
        temperature = backend.temperature if self.temperature is None else self.temperature
        longest = self.max_output_tokens or backend.max_output_tokens
        body: dict[str, Any] = {
            "model": self.model or backend.model,
            "messages": [message.to_json() for message in self.messages],
            "stream": backend.streaming,
        }
        if backend.streaming:
            body["stream_options"] = {"include_usage": True}
        if temperature is not None:
            body["temperature"] = temperature
        if longest:
            body["max_tokens"] = longest
        if self.tools:
            body["tools"] = list(self.tools)
            body["tool_choice"] = self.tool_choice or "auto"
        if self.schema is not None:
            named = {"name": "answer", "strict": True, "schema": self.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        whole = body | self._extra(backend)
        return {name: value for name, value in whole.items() if value is not None}

    def _extra(self, backend: Backend) -> dict[str, Any]:
        """The profile's extra body, where null takes a field away; without tools it brings none in either."""
        unwanted = () if self.tools else ("tools", "tool_choice", "parallel_tool_calls")
        return {name: value for name, value in backend.extra_body().items() if name not in unwanted}


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a backend reports of one request; ``cached`` is None where it does not tell."""

    prompt: int
    completion: int
    cached: int | None = None

    def read(self) -> int:
        """All tokens that the model read: some servers leave those from their cache out of ``prompt``."""
        return self.prompt + self.cached if self.cached is not None and self.cached > self.prompt else self.prompt


@dataclass(frozen=True)
class Answer:
    """The end of one answer. ``finish`` is why it ended, by the wire's words; empty where the stream just ended."""

    calls: tuple[WireCall, ...] = ()
    finish: str = ""
    tokens: Tokens | None = None
    model: str = ""
    streamed: bool = False


class AnswerParts:
    """Puts one answer together from the objects that a server sends, streamed or whole."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int | str, _OpenCall] = {}
        self._finish = ""
        self._tokens: Tokens | None = None
        self._model = ""
        self._half = ""
        """The first half of a character whose second one is to come: some servers cut their text by UTF-16."""

    @property
    def ended(self) -> bool:
        """Whether the server has said why it stopped: all text and calls are there."""
        return bool(self._finish)

    def take(self, value: Mapping[str, Any]) -> str:
        """Take one object in; the piece of text in it, perhaps empty."""
        self._tokens = _tokens(value.get("usage")) or self._tokens
        self._model = _text(value.get("model")) or self._model
        choice = _first(value.get("choices"))
        self._finish = _finish(choice.get("finish_reason")) or self._finish
        said = _dict(choice.get("delta")) or _dict(choice.get("message"))
        for piece in _list(said.get("tool_calls")):
            self._take_call(_dict(piece))
        self._take_function(_dict(said.get("function_call")))
        return self._whole_characters(_content(said.get("content")))

    def answer(self) -> Answer:
        """The answer as far as it has come."""
        calls = tuple(call.wire() for call in self._calls if call.name and not call.is_echo)
        return Answer(calls, self._finish, self._tokens, _well_formed(self._model))

    def _whole_characters(self, text: str) -> str:
        joined = self._half + text
        self._half = joined[-1:] if "\ud800" <= joined[-1:] <= "\udbff" else ""
        return _well_formed(joined.removesuffix(self._half))

    def _take_call(self, piece: Mapping[str, Any]) -> None:
        function = _dict(piece.get("function"))
        name, call_id = _text(function.get("name")), _text(piece.get("id"))
        call = self._meant(piece.get("index"), name, call_id)
        call.name = call.name or name
        call.call_id = call.call_id or call_id
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call.add(_text(arguments))

    def _take_function(self, function: Mapping[str, Any]) -> None:
        """The older form with a single function."""
        if function:
            self._take_call({"index": 0, "function": function})

    def _meant(self, index: Any, name: str, call_id: str) -> _OpenCall:
        """The call that a piece belongs to: by index, unless it clearly begins another one under the same index."""
        place = index if isinstance(index, int | str) else None
        known = self._by_index.get(place) if place is not None else (self._calls[-1] if self._calls else None)
        if place is None and call_id:
            known = next((call for call in self._calls if call.call_id == call_id), None)
        if known is None or known.ended_by(name, call_id):
            known = _OpenCall(repeats=known is not None and known.is_called(name, call_id))
            self._calls.append(known)
        if place is not None:
            self._by_index[place] = known
        return known


class _OpenCall:
    """A call whose arguments are still coming."""

    def __init__(self, *, repeats: bool) -> None:
        self.name = ""
        self.call_id = ""
        self.arguments: list[str] = []
        self._repeats = repeats

    @property
    def is_echo(self) -> bool:
        """Whether it is the name of a finished call once more: some servers send that with every piece."""
        return self._repeats and not self.arguments

    def is_called(self, name: str, call_id: str) -> bool:
        return name == self.name and call_id in ("", self.call_id)

    def wire(self) -> WireCall:
        return WireCall(*map(_well_formed, (self.name, "".join(self.arguments), self.call_id)))

    def add(self, text: str) -> None:
        if text:
            self.arguments.append(text)

    def ended_by(self, name: str, call_id: str) -> bool:
        """Whether a piece with this name and id begins a new call: two calls must not run into each other."""
        other_id = bool(call_id and self.call_id and call_id != self.call_id)
        return other_id or bool(name and self.name and self._whole())

    def _whole(self) -> bool:
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


def _value(text: str) -> Any:
    """The JSON value, or the text where it is none."""
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text


def _call_to_json(call: WireCall) -> dict[str, Any]:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _tokens(value: Any) -> Tokens | None:
    usage = _dict(value)
    prompt = _count(usage.get("prompt_tokens"))
    if prompt is None:
        return None
    details = _dict(usage.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens", usage.get("prompt_cache_hit_tokens")))
    return Tokens(prompt, _count(usage.get("completion_tokens")) or 0, cached)


def _count(value: Any) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 1e12 else None


def _finish(value: Any) -> str:
    """Why the server stopped, by the wire's word where it is known to have another one for it."""
    word = _text(value)
    return _FINISHES.get(word.lower(), word)


def _content(value: Any) -> str:
    """Text, or the text parts of a list of parts."""
    if isinstance(value, list):
        return "".join(_text(_dict(part).get("text")) for part in value if _dict(part).get("type") == "text")
    return _text(value)


def _first(value: Any) -> Mapping[str, Any]:
    items = _list(value)
    return _dict(items[0]) if items else {}


def _well_formed(text: str) -> str:
    """The text with each half of a character as U+FFFD: no message could carry a half."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
