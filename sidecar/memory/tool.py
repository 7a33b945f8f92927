"""The ``memory`` tool as a model sees it: its schema, its arguments, its answer.

A model's mistake is an answer, not a failure of the call: it says what was wrong and what to do, so that the model
can correct itself in the next round.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from sidecar.errors import InvalidInput, LorekeeperError, Reason
from sidecar.memory.canonical_json import parse
from sidecar.memory.document import Document, EditFailed, Outcome
from sidecar.memory.edits import Action, Edit, TextNotFound, require_one_text

NAME = "memory"
READ = "read"
_ACTIONS = (READ, *Action)
_WHOLE_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
_TEXTS = ("content", "old_text", "new_text", "anchor")


@dataclass(frozen=True)
class ToolSpec:
    """A tool to offer: ``parameters`` is its JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]

    def function(self) -> dict[str, Any]:
        """The form that the chat-completions wire takes."""
        described = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": described}


@dataclass(frozen=True)
class ToolAnswer:
    """What goes back to the model as JSON, and whether the call did what it asked.

    ``record_id`` is that of a record that was remembered; ``records_left_out`` were found and did not fit; ``degraded``
    is the contract's number of why less was found than could be, 0 where there is no reason.
    """

    payload: dict[str, Any]
    succeeded: bool
    record_id: str = ""
    records_left_out: int = 0
    degraded: int = 0

    def json(self) -> str:
        return json.dumps(self.payload, ensure_ascii=False)


def _text(description: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "description": description}


MEMORY_TOOL = ToolSpec(
    name=NAME,
    description=(
        "Read or edit your long-term memory: one text that stays with you between conversations. "
        "Note lasting facts here (names, promises, preferences, events), one to a line, and correct what has changed."
    ),
    parameters={
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "description": (
                    "One of: read (see the text), write (replace it all by content), append (add content as a new "
                    "line), clear (empty it), str_replace (old_text becomes new_text), insert (content before line, "
                    "after the line with anchor, or at the end), delete (remove old_text), rename (the label old_text "
                    "at the start of a line becomes new_text)."
                ),
            },
            "content": _text("The text for write, append or insert."),
            "old_text": _text("The exact text to replace or delete, or the label to rename."),
            "new_text": _text("The replacement, or the new label."),
            "anchor": _text("For insert: an exact text; content goes after the line that holds it."),
            "line": {
                "type": ["integer", "null"],
                "description": "For insert: content goes before this line, counted from 1; past the end, at the end.",
            },
            "replace_all": {
                "type": "boolean",
                "default": False,
                "description": "For str_replace and delete: every match instead of the first.",
            },
        },
        "required": ["action"],
    },
)


@dataclass(frozen=True)
class MemoryCall:
    """A checked call: ``edit`` is None for read."""

    edit: Edit | None


def parse_call(arguments_json: str) -> MemoryCall:
    """The call in a model's argument text. Raises InvalidInput that says what the model should send."""
    arguments = parse_arguments(arguments_json)
    action = arguments.get("action")
    name = action.strip().lower() if isinstance(action, str) else ""
    if not name:
        raise _wrong(Reason.ACTION_REQUIRED, "action", f"action is missing; give one of {', '.join(_ACTIONS)}")
    if name not in _ACTIONS:
        raise _wrong(Reason.UNKNOWN_ACTION, "action", f"there is no such action; use one of {', '.join(_ACTIONS)}")
    texts = {field: _optional_text(arguments, field) for field in _TEXTS}
    if name == READ:
        require_one_text(texts["content"], texts["new_text"])
        return MemoryCall(None)
    line, everything = _line(arguments), _flag(arguments, "replace_all")
    return MemoryCall(Edit(Action(name), **texts, line=line, replace_all=everything))


def parse_arguments(arguments_json: str) -> dict[str, Any]:
    """The JSON object of a tool call's arguments. Raises InvalidInput."""
    try:
        arguments = parse(arguments_json or "{}", "arguments_json")
    except InvalidInput as error:
        message = "the arguments are not complete JSON, or name something twice; send the whole call again"
        raise _wrong(Reason.FIELD_INVALID, "arguments_json", message) from error
    if not isinstance(arguments, dict):
        raise _wrong(Reason.FIELD_INVALID, "arguments_json", "the arguments must be one JSON object")
    return arguments


def _optional_text(arguments: dict[str, Any], field: str) -> str | None:
    value = arguments.get(field)
    if value is not None and not isinstance(value, str):
        raise _wrong(Reason.FIELD_INVALID, field, f"{field} must be a text")
    return value


def _line(arguments: dict[str, Any]) -> int | None:
    value = arguments.get("line")
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise _wrong(Reason.FIELD_INVALID, "line", "line must be a whole number")
    return value


def _flag(arguments: dict[str, Any], field: str) -> bool:
    value = arguments.get(field)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        value = value.strip().lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise _wrong(Reason.FIELD_INVALID, field, f"{field} must be true or false")
    return bool(value)


def _wrong(reason: Reason, field: str, message: str) -> InvalidInput:
    return InvalidInput(message, reason=reason, field=field)


def read_answer(document: Document) -> ToolAnswer:
    """The whole document, for action read."""
    done = "memory read" if document.text else "memory is empty"
    return ToolAnswer(_payload(True, done, None, document.version, len(document.text), document.text), True)


def edit_answer(outcome: Outcome, role: str) -> ToolAnswer:
    """What an edit did; said only after it is stored."""
    done = ", ".join(one.words for one in outcome.done)
    message = f"DONE: {done} for {role}." if outcome.changed else f"Nothing to do: {done} for {role}. Go on."
    return ToolAnswer(_payload(True, message, None, outcome.version, outcome.length, None), True)


def failed_answer(error: Exception, document: Document | None) -> ToolAnswer:
    """What went wrong, with the present version and, where a text was not found, the lines most like it."""
    cause = error.error if isinstance(error, EditFailed) else error
    if not isinstance(cause, LorekeeperError):
        raise error
    version, length = (document.version, len(document.text)) if document else (0, 0)
    payload = _payload(False, None, cause.message, version, length, None)
    payload["Reason"] = str(cause.reason)
    if isinstance(cause, TextNotFound):
        payload["NearestLines"] = [line.text for line in cause.nearest]
    return ToolAnswer(payload, False)


def refused_answer(error: LorekeeperError) -> ToolAnswer:
    """What a record tool did not do, and why."""
    return ToolAnswer({"Success": False, "Error": error.message, "Reason": str(error.reason)}, False)


def _payload(
    success: bool, message: str | None, error: str | None, version: int, length: int, memory: str | None
) -> dict[str, Any]:
    return {
        "Success": success,
        "Message": message,
        "Error": error,
        "Version": version,
        "MemoryLength": length,
        "Memory": memory,
    }
