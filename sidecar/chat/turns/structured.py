"""Answers that must be JSON of a given schema: found in the text, checked, and what is wrong with them. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sidecar.chat.turns.arguments import Schema
from sidecar.errors import InvalidInput
from sidecar.memory.canonical_json import parse

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Checked:
    """The answer as JSON text where it is right, else what is wrong."""

    json_text: str = ""
    errors: list[str] = field(default_factory=list)


def checked_answer(text: str, schema: Schema) -> Checked:
    """Whether the text is JSON that keeps to the schema; a fence around all of it is passed over."""
    fenced = _FENCE.match(text)
    inner = (fenced[1] if fenced else text).strip()
    try:
        value = parse(inner, "answer")
    except InvalidInput:
        return Checked(errors=["the answer is not JSON"])
    errors = schema.errors(value)
    return Checked(errors=errors) if errors else Checked(json_text=inner)
