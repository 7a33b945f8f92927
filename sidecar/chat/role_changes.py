"""Roles as a game writes them: only what differs from the built-in role of the same id, or from the defaults.

The form is the contract's (``role.proto``) as JSON, in calls, in ``roles.json`` and in the game's own file alike:

    {"role_id": "Merchant", "persist_history": true, "summary": {"max_summary_tokens": 512}}

Whatever is wrong in it is told with the field's path and its limits. Nothing is corrected in silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from sidecar.bounds import Bound, require_count, require_length
from sidecar.chat.contract_parts import actor_form, filter_form, search_mode
from sidecar.chat.roles import (
    MAX_PROMPT_CHARS,
    MemoryAction,
    RecallOptions,
    Role,
    SummaryOptions,
    ToolResults,
    role_policy,
)
from sidecar.errors import InvalidInput, Reason
from sidecar.storage.keys import checked_id

Changes = Mapping[str, Any]
_Data = TypeVar("_Data", Role, SummaryOptions, RecallOptions)

_Check = Callable[[Any, str], Any]

_MAX_NAMES = 256
_MAX_LINES = 1_000
_NESTED = {"summary", "recall"}
_OPEN_RANGES: Mapping[str, tuple[float, float]] = {"temperature": (0, 2), "similarity_floor": (-1, 1)}


def changed_role(changes: Changes, path: str = "role") -> Role:
    """The role that the changes describe. Raises ``InvalidInput`` with the field at fault, below ``path``."""
    role_id, field = changes.get("role_id"), f"{path}.role_id"
    if not isinstance(role_id, str) or not role_id.strip():
        raise InvalidInput(f"{field} is missing: a role needs an id.", reason=Reason.FIELD_REQUIRED, field=field)
    wanted = checked_id(role_id.strip(), field)
    return _changed(role_policy(wanted), {**changes, "role_id": wanted}, path)


def changed_recall(changes: Changes, path: str) -> RecallOptions:
    """The recall options of one turn. Raises ``InvalidInput`` with the path of the field at fault."""
    return _changed(RecallOptions(), changes, path)


def changes_of(data: Any) -> dict[str, Any]:
    """A role, or a part of one, as changes that name every value; what is not set stays out."""
    values = {each.name: getattr(data, each.name) for each in fields(data)}
    return {name: _plain(value) for name, value in values.items() if value is not None}


def effective_changes(role: Role) -> dict[str, Any]:
    """The same with the values in force where the role leaves them to others of its fields."""
    own = {
        "system_prompt": role.base_prompt(),
        "remember_tool": role.memory_tool if role.remember_tool is None else role.remember_tool,
        "search_tool": role.memory_tool if role.search_tool is None else role.search_tool,
    }
    return {**changes_of(role), **own}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return changes_of(value)
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _changed(base: _Data, changes: Changes, path: str) -> _Data:
    known = {each.name: each for each in fields(base)}
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise _invalid(f"{path}.{name}", "there is no such field")
        values[name] = _checked(known[name], getattr(base, name), value, f"{path}.{name}")
    return replace(base, **values)


def _checked(known: Field[Any], present: Any, value: Any, path: str) -> Any:
    if known.name in _NESTED:
        return _changed(present or RecallOptions(), _mapping(value, path), path)
    if known.name in _OPEN_RANGES:
        return _within(value, *_OPEN_RANGES[known.name], path)
    if "low" in known.metadata:
        return _number(known, present, value, path)
    check = _BY_NAME.get(known.name) or _BY_TYPE[str(known.type)]
    return check(value, path)


def _number(known: Field[Any], present: Any, value: Any, path: str) -> Any:
    number = _within(value, known.metadata["low"], known.metadata["high"], path)
    if isinstance(present, int) and number != int(number):
        raise _invalid(path, "it must be a whole number")
    return int(number) if isinstance(present, int) else float(number)


def _within(value: Any, low: float, high: float, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _invalid(path, "it must be a number")
    if not low <= value <= high:
        raise _invalid(path, f"it must be from {_plainly(low)} to {_plainly(high)}", low=low, high=high)
    return value


def _plainly(bound: float) -> str:
    """Whole numbers with all their digits."""
    return f"{bound:.0f}" if bound == int(bound) else f"{bound:g}"


def _switch(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise _invalid(path, "it must be true or false")
    return value


def _choice(choices: type[StrEnum], value: Any, path: str) -> StrEnum:
    if value not in list(choices):
        raise _invalid(path, f"it must be one of {', '.join(choices)}")
    return choices(value)


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise _invalid(path, "it must be a text of valid Unicode")
    require_length(value, path, Bound("max_prompt_chars", MAX_PROMPT_CHARS))
    return value


def _id(value: Any, path: str) -> str:
    return checked_id(_text(value, path), path)


def _list(check: _Check, most: int, value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _invalid(path, "it must be a list")
    require_count(len(value), path, Bound(path, most))
    return tuple(check(entry, f"{path}[{index}]") for index, entry in enumerate(value))


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _invalid(path, "it must be an object")
    return value


def _invalid(path: str, why: str, **metadata: Any) -> InvalidInput:
    return InvalidInput(f"{path} is not valid: {why}.", reason=Reason.FIELD_INVALID, field=path, **metadata)


_BY_NAME: Mapping[str, _Check] = {"mode": search_mode, "backend_id": _id}
_BY_TYPE: Mapping[str, _Check] = {
    "str": _text,
    "bool": _switch,
    "bool | None": _switch,
    "tuple[str, ...]": partial(_list, _text, _MAX_LINES),
    "tuple[str, ...] | None": partial(_list, _text, _MAX_NAMES),
    "tuple[Mapping[str, Any], ...]": partial(_list, actor_form, _MAX_NAMES),
    "Mapping[str, Any] | None": filter_form,
    "MemoryAction": partial(_choice, MemoryAction),
    "ToolResults": partial(_choice, ToolResults),
}
