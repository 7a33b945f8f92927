"""Tool calls that a model writes into its text, found while the text streams. No I/O.

    {"name": "give", "arguments": {"n": 1}}                       prose, or alone in a ```json fence
    {"tool": "memory", "action": "append", "content": "…"}        the older flat form
    <tool_call>{"name": …}</tool_call>, <tool_call><function=give><parameter=n>1</parameter></function></tool_call>
    [TOOL_CALLS][{"name": …}]
    ```memory … ```                                               a directive, where the role allows them

Text is held back only while it may become a call. JSON for a tool that is not offered is text; so is JSON in fences
of another kind, which are examples. A call that breaks off or is no good JSON is a call with broken arguments: it is
refused, not shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sidecar.chat.backends.wire import WireCall
from sidecar.storage.json_file import unique_names

MAX_CALL_CHARS = 200_000
_MAX_HEADER = 40
_MARKERS = ("```", "<tool_call>", "<function=", "[TOOL_CALLS]", "{")
_START = re.compile("|".join(re.escape(marker) for marker in _MARKERS))
_LONGEST = max(map(len, _MARKERS))
_BEGINNINGS = frozenset(marker[:count] for marker in _MARKERS for count in range(1, len(marker) + 1))
_KEYS = ("name", "tool", "tool_name", "function", "type", "arguments", "parameters", "id", "action", "tool_calls")
_FIRST_KEY = re.compile(r'\{\s*(?:"([a-z_]*)("?))?')
_HEADER = re.compile(r"```([\w-]*)[ \t]*\r?(\n?)")
_CALL_FENCES = frozenset({"", "json", "tool", "tool_call", "tool_calls", "tool_code"})
_NAMED = re.compile(r'"(?:name|tool|tool_name)"\s*:\s*"([^"]+)"')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:')
_XML_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_XML_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


@dataclass
class Found:
    """What a piece of text gave: what may be shown, and calls that are complete."""

    text: str = ""
    calls: list[WireCall] = field(default_factory=list)
    directives: list[WireCall] = field(default_factory=list)


class TextCalls:
    """Feed it text; ``names`` are the tools that are offered, ``directive`` what a bare memory fence does."""

    def __init__(self, names: Iterable[str], *, directive: str = "") -> None:
        self._names = {name.casefold(): name for name in names}
        self._directive = directive
        self._held = ""
        self._foreign = False
        self._balance = _Balance()

    def feed(self, text: str) -> Found:
        """What can be told by now."""
        if not (self._names or self._directive or self._held):
            return Found(text)
        self._held += text
        found = Found()
        while self._held and self._step(found):
            pass
        return found

    def finish(self) -> Found:
        """The end: an open call is taken as it is, or shown where it is none."""
        held, self._held = self._held, ""
        if self._foreign or not held:
            return Found(held)
        calls = self._calls_of_broken(held)
        return Found("" if calls else held, calls)

    def _step(self, found: Found) -> bool:
        """One step forward; False where more text is needed."""
        if self._foreign:
            return self._pass_fence(found)
        start = _START.search(self._held)
        if start is None:
            self._show(found, len(self._held) - _marker_begins(self._held))
            return False
        self._show(found, start.start())
        marker = start[0]
        if marker == "{":
            return self._object(found)
        if marker == "```":
            return self._fence(found)
        return self._tagged(found, marker)

    def _show(self, found: Found, count: int) -> None:
        found.text += self._held[:count]
        self._held = self._held[count:]
        if count:
            self._balance = _Balance()

    def _object(self, found: Found) -> bool:
        likely = _may_be_call(self._held)
        end = self._balance.end(self._held) if likely else -1
        if likely is None or (likely and end < 0 and len(self._held) < MAX_CALL_CHARS):
            return False
        calls = self._calls_in(self._held[:end]) if end > 0 else []
        if calls:
            self._take(found.calls, calls, end)
        else:
            self._show(found, 1)
        return True

    def _fence(self, found: Found) -> bool:
        header = _HEADER.match(self._held)
        if header is None or (header.end() == len(self._held) and not header[2] and header.end() < _MAX_HEADER):
            return False
        kind = header[1].lower()
        if kind.startswith("memory") and self._directive:
            return self._memory_fence(found, kind)
        inner = self._held[header.end() :].lstrip()
        if kind not in _CALL_FENCES or (inner and inner[0] not in "{[") or not header[2]:
            return self._begin_foreign(found)
        end = self._held.find("```", header.end())
        if end < 0:
            return len(self._held) >= MAX_CALL_CHARS and self._begin_foreign(found)
        calls = self._calls_in(self._held[header.end() : end])
        if not calls:
            return self._begin_foreign(found)
        self._take(found.calls, calls, end + 3)
        return True

    def _begin_foreign(self, found: Found) -> bool:
        self._show(found, 3)
        self._foreign = True
        return True

    def _pass_fence(self, found: Found) -> bool:
        """Inside a fence that holds no call, everything up to its end is text."""
        end = self._held.find("```")
        if end < 0:
            keep = 2 if self._held.endswith("``") else 1 if self._held.endswith("`") else 0
            self._show(found, len(self._held) - keep)
            return False
        self._show(found, end + 3)
        self._foreign = False
        return True

    def _memory_fence(self, found: Found, kind: str) -> bool:
        first_line, ended, _ = self._held[3:].partition("\n")
        if "`" in first_line:
            return self._begin_foreign(found)
        begin = len(first_line) + 4
        end = self._held.find("```", begin) if ended else -1
        if end < 0:
            return len(self._held) >= MAX_CALL_CHARS and self._begin_foreign(found)
        self._take(found.directives, self._directive_call(kind, self._held[begin:end].strip()), end + 3)
        self._directive = ""  # an answer has one
        return True

    def _directive_call(self, kind: str, text: str) -> list[WireCall]:
        action = {"memory_clear": "clear", "memory_append": "append"}.get(kind, self._directive)
        if action != "clear" and not text:
            return []
        arguments = {"action": action} if action == "clear" else {"action": action, "content": text}
        return [WireCall("memory", json.dumps(arguments, ensure_ascii=False))]

    def _tagged(self, found: Found, marker: str) -> bool:
        if marker == "[TOOL_CALLS]":
            end = self._balance.end(self._held, begin=len(marker))
            closing = 0
        else:
            close = "</tool_call>" if marker == "<tool_call>" else "</function>"
            end, closing = self._held.find(close), len(close)
        if end < 0:
            if len(self._held) < MAX_CALL_CHARS:
                return False
            self._show(found, len(marker))
            return True
        calls = self._tagged_calls(self._held[: end + closing], marker)
        if calls:
            self._take(found.calls, calls, end + closing)
        else:
            self._show(found, len(marker))
        return True

    def _tagged_calls(self, text: str, marker: str) -> list[WireCall]:
        """The calls between tags. The tags say that they are meant, so that unknown names are calls too."""
        inner = text[len(marker) :].removesuffix("</tool_call>").strip() if marker != "<function=" else text
        written = [_xml_call(match) for match in _XML_FUNCTION.finditer(inner)]
        if marker == "<function=":
            return [call for call in written if call.name.casefold() in self._names]
        return written or _calls_of(_parsed(inner)) or self._calls_in(inner)

    def _take(self, calls: list[WireCall], new: list[WireCall], end: int) -> None:
        calls += [WireCall(self._names.get(call.name.casefold(), call.name), call.arguments) for call in new]
        self._held = self._held[end:]
        self._balance = _Balance()

    def _calls_in(self, text: str) -> list[WireCall]:
        """The calls that a whole text makes; one that is no JSON is a call where it names a tool and its arguments."""
        value = _parsed(text)
        if value is None:
            return self._broken(text) if _ARGUMENTS.search(text) else []
        return self._known(value)

    def _broken(self, text: str) -> list[WireCall]:
        """A call whose arguments cannot be read, for a tool that is offered."""
        named = _NAMED.search(text)
        known = self._names.get(named[1].casefold()) if named else None
        return [WireCall(known, text)] if known else []

    def _known(self, value: Any) -> list[WireCall]:
        """The calls of a value where all of them are for tools that are offered."""
        calls = _calls_of(value)
        return calls if all(call.name.casefold() in self._names for call in calls) else []

    def _calls_of_broken(self, held: str) -> list[WireCall]:
        """A call that the end of the text cut off."""
        start = _START.match(held)
        if start is None:
            return []
        if start[0] in ("<tool_call>", "[TOOL_CALLS]"):
            whole = self._tagged_calls(held, start[0])
            if whole:
                return whole
        if start[0] == "```":
            header = _HEADER.match(held)
            whole = self._known(_parsed(held[header.end() :] if header else ""))
            if whole or not header or header[1].lower() not in _CALL_FENCES:
                return whole
        return self._broken(held)


class _Balance:
    """Finds the end of a JSON object or list in a text that grows, without reading it twice."""

    _MARK = re.compile(r'[{}\[\]"\\]')

    def __init__(self) -> None:
        self._at = 0
        self._depth = 0
        self._quoted = False

    def end(self, text: str, *, begin: int = 0) -> int:
        """Where the value that begins at ``begin`` ends; -1 where it has not."""
        self._at = max(self._at, begin)
        while found := self._MARK.search(text, self._at):
            mark = found[0]
            if mark == "\\":
                if found.end() == len(text):
                    self._at = found.start()
                    return -1
                self._at = found.end() + 1
                continue
            self._at = found.end()
            if mark == '"':
                self._quoted = not self._quoted
            elif not self._quoted:
                self._depth += 1 if mark in "{[" else -1
                if self._depth <= 0:
                    return self._at
        self._at = max(self._at, len(text))
        return -1


def _may_be_call(text: str) -> bool | None:
    """Whether the object at the start may be a call, by its first key; None where that is not known yet."""
    found = _FIRST_KEY.match(text)
    if found is None:
        return False
    key, closed = found[1], found[2]
    if key is None:
        return None if found.end() == len(text) else False
    if closed:
        return key in _KEYS
    return None if found.end() == len(text) and any(known.startswith(key) for known in _KEYS) else False


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        return None


def _calls_of(value: Any) -> list[WireCall]:
    """The calls in a JSON value; empty where it is none."""
    if isinstance(value, list):
        calls = [_calls_of(item) for item in value]
        return [call for each in calls for call in each] if all(calls) else []
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("tool_calls"), list):
        return _calls_of(value["tool_calls"])
    if isinstance(value.get("function"), dict):
        return _calls_of(value["function"])
    return _named_call(value)


def _named_call(value: Mapping[str, Any]) -> list[WireCall]:
    for key in ("name", "tool", "tool_name"):
        name = value.get(key)
        if not isinstance(name, str) or not name:
            continue
        given = [value[kind] for kind in ("arguments", "parameters") if kind in value]
        if given:
            arguments: Any = next((each for each in given if each is not None), {})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            return [WireCall(name, text)]
        if key == "tool":
            rest = {field: each for field, each in value.items() if field != key}
            return [WireCall(name, json.dumps(rest, ensure_ascii=False))]
    return []


def _xml_call(match: re.Match[str]) -> WireCall:
    """The form ``<function=name>`` with parameters as tags, or with one JSON object."""
    name, inner = match[1], match[2].strip()
    if inner.startswith("{"):
        return WireCall(name, inner)
    values = {each[1]: _value(each[2]) for each in _XML_PARAMETER.finditer(inner)}
    return WireCall(name, json.dumps(values, ensure_ascii=False))


def _value(text: str) -> Any:
    """A parameter between tags: JSON where it is a number, a flag, a list or an object; else the text."""
    value = _parsed(text)
    return text if value is None or isinstance(value, str) else value


def _marker_begins(text: str) -> int:
    """How many characters at the end may be the start of a marker."""
    for count in range(min(_LONGEST - 1, len(text)), 0, -1):
        if text[-count:] in _BEGINNINGS:
            return count
    return 0
