"""The parts of a role that are written in the contract's own JSON form: whom and what it recalls, and how.

They are kept as they were written, and checked here when they are put, so that no turn fails by them later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError

from sidecar.errors import InvalidInput, Reason
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, search_pb2
from sidecar.memory.record_filter import checked_filter
from sidecar.memory.record_wire import filter_from
from sidecar.settings import RecordSettings
from sidecar.wire import actor_from

_MODE = "SEARCH_MODE_"


def search_mode(value: Any, path: str) -> str:
    """The short name of a way to search, "" for the best there is. Raises InvalidInput."""
    modes = [name.removeprefix(_MODE).lower() for name in search_pb2.SearchMode.keys()[1:]]
    if value not in ("", *modes):
        raise InvalidInput(f"{path} must be one of {', '.join(modes)}", reason=Reason.FIELD_INVALID, field=path)
    return str(value)


def actor_form(value: Any, path: str) -> Mapping[str, Any]:
    """An actor, or a pattern of actors, as JSON. Raises InvalidInput."""
    actor = _parsed(value, common_pb2.Actor(), path)
    try:
        actor_from(actor)
    except InvalidInput as error:
        raise _within(path, "actor", error) from error
    return dict(value)


def filter_form(value: Any, path: str) -> Mapping[str, Any]:
    """A record filter as JSON. Raises InvalidInput."""
    wanted = _parsed(value, memory_pb2.RecordFilter(), path)
    try:
        checked_filter(filter_from(wanted), "filter", RecordSettings())
    except InvalidInput as error:
        raise _within(path, "filter", error) from error
    return dict(value)


def _parsed(value: Any, message: Any, path: str) -> Any:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{path} must be an object", reason=Reason.FIELD_INVALID, field=path)
    try:
        return ParseDict(dict(value), message)
    except (ParseError, TypeError, ValueError) as error:
        kind = message.DESCRIPTOR.name
        raise InvalidInput(
            f"{path} is no {kind} of the contract; see its fields in protos/", reason=Reason.FIELD_INVALID, field=path
        ) from error


def _within(path: str, root: str, error: InvalidInput) -> InvalidInput:
    """The same error, told of a field that lies at ``path`` instead of at ``root``."""
    field = path + error.field.removeprefix(root)
    return InvalidInput(
        error.message.replace(error.field, field), reason=Reason(error.reason), field=field, **error.metadata
    )
