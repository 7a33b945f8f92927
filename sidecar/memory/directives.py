"""Memory edits that a model without tool calls writes into its answer, in three older forms. Lenient, off by default.

    ```memory            fenced: replace (``memory_append``: add a line, ``memory_clear``: empty it)
    {"tool": "memory", "action": "append", "content": "…"}
    {"name": "memory", "arguments": {"action": "append", "content": "…"}}

At most one directive is taken from an answer: the first one. JSON inside of other fenced blocks is an example, not a
call, and is left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sidecar.errors import InvalidInput
from sidecar.memory.edits import Action, Edit
from sidecar.memory.tool import NAME, MemoryCall, parse_call

_OPENING = re.compile(r"```(memory\w*)[^\n]*\n", re.IGNORECASE)
_ANY_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MAX_BRACES = 1_000


@dataclass(frozen=True, slots=True)
class Directives:
    """The answer without its directive, trimmed, and the call that it asks for; None where there is none."""

    visible: str
    call: MemoryCall | None


def parse_directives(answer: str) -> Directives:
    """Take the first memory directive out of ``answer``; a text without one comes back as it is."""
    fenced = _fenced(answer)
    if fenced:
        return fenced
    for start, end, value in _json_objects(answer):
        call = _from_json(value)
        if call:
            return Directives((answer[:start] + answer[end:]).strip(), call)
    return Directives(answer, None)


def _fenced(answer: str) -> Directives | None:
    opening = _OPENING.search(answer)
    end = answer.find("```", opening.end()) if opening else -1
    if not opening or end < 0:
        return None
    text = answer[opening.end() : end].strip()
    visible = (answer[: opening.start()] + answer[end + 3 :]).strip()
    return Directives(visible, _fenced_call(opening[1].lower(), text))


def _fenced_call(kind: str, text: str) -> MemoryCall | None:
    if kind == "memory_clear":
        return MemoryCall(Edit(Action.CLEAR))
    action = Action.APPEND if kind == "memory_append" else Action.WRITE
    return MemoryCall(Edit(action, content=text)) if text else None


def _json_objects(answer: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The outermost JSON objects outside of fences, with where they stand; later braces than 1,000 are prose."""
    decoder = json.JSONDecoder()
    fences = [match.span() for match in _ANY_FENCE.finditer(answer)]
    position = answer.find("{")
    for _ in range(_MAX_BRACES):
        if position < 0:
            return
        fence = next((end for start, end in fences if start <= position < end), None)
        if fence is not None:
            position = answer.find("{", fence)
            continue
        try:
            value, end = decoder.raw_decode(answer, position)
        except (ValueError, RecursionError):
            position = answer.find("{", position + 1)
            continue
        yield position, end, value
        position = answer.find("{", end)


def _from_json(value: dict[str, Any]) -> MemoryCall | None:
    if value.get("name") == NAME and isinstance(value.get("arguments"), dict):
        arguments = value["arguments"]
    elif value.get("tool") == NAME:
        arguments = value.get("arguments") if isinstance(value.get("arguments"), dict) else value
    else:
        return None
    try:
        return parse_call(json.dumps(arguments))
    except InvalidInput:
        return None
