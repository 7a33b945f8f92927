"""The arguments of a tool call: read strictly, checked against the tool's schema, never guessed. No I/O.

References in a schema to other documents are never fetched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from sidecar.compaction.clipping import clip, clipped
from sidecar.compaction.cuts import Cut, CutKind, Unit
from sidecar.errors import InvalidInput
from sidecar.memory.canonical_json import parse

_MAX_SHOWN_SCHEMA = 1_200
_MAX_ERRORS = 8
_MAX_ERROR_CHARS = 200
_MORE = "and more of the kind"


class InvalidSchema(Exception):
    """A text is no JSON schema; the message says why."""


class BadArguments(Exception):
    """A model's arguments cannot be used; the message is for the model, ``cut`` what of a schema it leaves out."""

    def __init__(self, message: str, cut: Cut | None = None) -> None:
        super().__init__(message)
        self.cut = cut


class Schema:
    """A JSON schema, ready to check values."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raises InvalidSchema."""
        import jsonschema
        import referencing

        self._schema = dict(schema)
        cls = jsonschema.validators.validator_for(self._schema, default=jsonschema.Draft202012Validator)
        try:
            cls.check_schema(self._schema)
        except (jsonschema.SchemaError, RecursionError) as error:
            raise InvalidSchema("it is not a valid JSON schema") from error
        self._validator = cls(self._schema, registry=referencing.Registry())

    def errors(self, value: Any) -> list[str]:
        """Where the value breaks the schema, as a path and the rule that is broken; never the value itself.

        After eight of them a last entry says that there are more.
        """
        import referencing.exceptions

        try:
            found = [_told(error) for error in islice(self._validator.iter_errors(value), _MAX_ERRORS + 1)]
        except (referencing.exceptions.Unresolvable, RecursionError) as error:
            raise InvalidSchema("it refers to something that is not in it, or to itself without end") from error
        return [*sorted(found[:_MAX_ERRORS]), *([_MORE] if len(found) > _MAX_ERRORS else [])]

    def missing(self, value: Mapping[str, Any]) -> list[str]:
        """Required fields that are absent or null."""
        required = self._schema.get("required", ())
        return [name for name in required if isinstance(name, str) and value.get(name) is None]

    def refusal(self, why: str) -> BadArguments:
        """What a model is told whose arguments do not keep to the schema."""
        text = json.dumps(self._schema, ensure_ascii=False, sort_keys=True)
        shown, missing = clipped(text, _MAX_SHOWN_SCHEMA)
        detail = f"a refusal of arguments shows {_MAX_SHOWN_SCHEMA} code points of the tool's schema"
        cut = Cut(CutKind.TOOL_SCHEMA, Unit.CODE_POINTS, len(text) - missing, missing, detail)
        return BadArguments(f"{why}. The schema is {shown}", cut if missing else None)


def read_schema(text: str) -> dict[str, Any]:
    """The JSON object of a schema; an empty text takes any object. Raises InvalidSchema."""
    if not text.strip():
        return {"type": "object", "properties": {}}
    try:
        value = parse(text, "schema")
    except InvalidInput as error:
        raise InvalidSchema("it is not JSON that a request can carry") from error
    if not isinstance(value, dict):
        raise InvalidSchema("it is not a JSON object")
    Schema(value)
    return value


def read_arguments(text: str) -> dict[str, Any]:
    """The JSON object that a model sent; nothing means none. Raises BadArguments."""
    try:
        value = parse(text, "arguments") if text.strip() else {}
    except InvalidInput as error:
        raise BadArguments(
            "the arguments are not complete JSON, or name something twice; nothing was run, send the whole call again"
        ) from error
    if not isinstance(value, dict):
        raise BadArguments("the arguments must be one JSON object; send the call again")
    return value


def checked(arguments: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Arguments that keep to the schema; optional ones that are null are left out. Raises BadArguments."""
    missing = schema.missing(arguments)
    if missing:
        raise schema.refusal(f"required arguments are missing: {', '.join(missing)}")
    if not schema.errors(arguments):
        return arguments
    filled = {name: value for name, value in arguments.items() if value is not None}
    errors = schema.errors(filled)
    if errors:
        raise schema.refusal(f"the arguments do not keep to the schema: {'; '.join(errors)}")
    return filled


def canonical(name: str, arguments: Mapping[str, Any]) -> str:
    """The same text for the same call, whatever the order of its arguments."""
    return f"{name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


def _told(error: Any) -> str:
    """A path and a rule: a validator's own message would repeat the value."""
    path = "/".join(str(part) for part in error.absolute_path) or "the value"
    rule = json.dumps(error.validator_value, ensure_ascii=False, default=str)
    return f"{path}: {error.validator} {clip(rule, _MAX_ERROR_CHARS)}"
