"""What is known of a backend: its profile as data, its limits, and its form in ``backends.json``.

A profile never holds a key. It names the environment variable that has one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from sidecar.bounds import Bound, fits_in_head, require_count, require_length
from sidecar.chat.backends.addresses import checked_base_url
from sidecar.errors import InvalidInput, Reason
from sidecar.memory.canonical_json import parse
from sidecar.settings import limit, option

OFFLINE_ID = "offline"
DEFAULT_WINDOW = 8_192
MIN_WINDOW = 256
_MAX_NAME = 512
_MAX_HEADERS = 64
_MAX_PATTERNS = 256
_MAX_EXTRA = 65_536
_MAX_HEADER = 4_096
_MAX_TEXTS = {
    "base_url": 2_048,
    "model": _MAX_NAME,
    "api_key_env": _MAX_NAME,
    "api_key_header": _MAX_NAME,
    "tokenizer_path": 4_096,
    "fallback_backend_id": _MAX_NAME,
}
_MANY = 2_147_483_647
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What must be able to stand in a header of a key must not stand in the profile.
_KEY_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
# What stands for a field's type in backends.json; all others are texts there.
_JSON_TYPES: Mapping[str, Any] = {"bool": bool, "int": int, "float": int | float}
# The daemon's own part of a request; extra_body_json may not change it.
_OWN_BODY = frozenset({"messages", "stream"})


class Kind(StrEnum):
    """What kind of backend it is."""

    OPENAI = "openai"
    OFFLINE = "offline"


class ToolChannel(StrEnum):
    """How tools reach a model."""

    AUTO = "auto"
    NATIVE = "native"
    TEXT = "text"


class TailRole(StrEnum):
    """In whose name the parts after the history go out."""

    USER = "user"
    SYSTEM = "system"


@dataclass(frozen=True)
class Backend:
    """A language-model server. Times are milliseconds; None means that the server decides."""

    backend_id: str
    kind: Kind = Kind.OPENAI
    base_url: str = ""
    model: str = ""
    api_key_env: str = ""
    api_key_header: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    context_tokens: int = limit(0, 0, _MANY, "tokens", "the window; 0: what the server tells, else 8,192")
    max_output_tokens: int | None = limit(None, 1, _MANY, "tokens", "the longest answer")
    temperature: float | None = limit(None, 0.0, 2.0, "", "the temperature")
    extra_body_json: str = ""
    tool_channel: ToolChannel = ToolChannel.AUTO
    tail_role: TailRole = TailRole.USER
    streaming: bool = option(True, "whether answers are streamed")
    tokenizer_path: str = ""
    connect_timeout_ms: int = limit(10_000, 1, 600_000, "ms", "how long connecting may take")
    idle_timeout_ms: int = limit(120_000, 1, 86_400_000, "ms", "how long the server may be silent")
    total_timeout_ms: int = limit(0, 0, 86_400_000, "ms", "how long a whole turn may take; 0: no bound")
    max_retries: int = limit(1, 0, 10, "retries", "how often a call is repeated before its first output")
    fallback_backend_id: str = ""
    roles: tuple[str, ...] = ()
    compaction_roles: tuple[str, ...] = ()
    allow_remote: bool = False
    allow_plain_http: bool = False

    def extra_body(self) -> dict[str, Any]:
        """What is merged into each request."""
        extra: dict[str, Any] = json.loads(self.extra_body_json) if self.extra_body_json else {}
        return extra


OFFLINE = Backend(backend_id=OFFLINE_ID, kind=Kind.OFFLINE, model=OFFLINE_ID)


def checked_backend(backend: Backend, *, model_required: bool = True) -> Backend:
    """The profile with its texts trimmed. Raises InvalidInput that names the field."""
    trimmed = replace(
        backend,
        backend_id=_name(backend.backend_id, "backend_id"),
        model=backend.model.strip(),
        roles=_patterns(backend.roles, "roles"),
        compaction_roles=_patterns(backend.compaction_roles, "compaction_roles"),
    )
    if trimmed.backend_id == OFFLINE_ID and trimmed.kind is not Kind.OFFLINE:
        raise _wrong("backend_id", '"offline" is built in and needs no server; choose another id')
    _check_lengths(trimmed)
    _check_numbers(trimmed)
    _check_key(trimmed)
    _check_extra(trimmed.extra_body_json)
    if trimmed.kind is Kind.OFFLINE:
        return trimmed
    if model_required and not trimmed.model:
        raise _required("model", "name the model that the server is to use")
    base = checked_base_url(
        trimmed.base_url, allow_remote=trimmed.allow_remote, allow_plain_http=trimmed.allow_plain_http
    )
    return replace(trimmed, base_url=base)


def backend_to_json(backend: Backend) -> dict[str, Any]:
    """What differs from the defaults, by the names of the contract."""
    value: dict[str, Any] = {}
    for each in fields(backend):
        now = getattr(backend, each.name)
        if now != _default(each):
            value[each.name] = list(now) if isinstance(now, tuple) else now
    return value


def backend_from_json(value: Mapping[str, Any]) -> Backend:
    """The profile of :func:`backend_to_json`. Raises InvalidInput or ValueError for anything else."""
    known = {each.name: str(each.type) for each in fields(Backend)}
    if "backend_id" not in value or not all(name in known and _is(value[name], known[name]) for name in value):
        raise ValueError("a field of a backend is missing, not known, or of another type")
    values = dict(value)
    for name, kind in (("kind", Kind), ("tool_channel", ToolChannel), ("tail_role", TailRole)):
        if name in values:
            values[name] = kind(values[name])
    for name in ("roles", "compaction_roles"):
        values[name] = tuple(values.get(name, ()))
    return checked_backend(Backend(**values))


def _is(value: Any, type_name: str) -> bool:
    """Whether a value of JSON is what a field takes."""
    if type_name.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if type_name.startswith("Mapping"):
        return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    kind = _JSON_TYPES.get(type_name.removesuffix(" | None"), str)
    return isinstance(value, kind) and isinstance(value, bool) == (kind is bool)


def _default(each: Any) -> Any:
    return (
        each.default
        if each.default is not MISSING
        else each.default_factory()
        if callable(each.default_factory)
        else None
    )


def _name(text: str, name: str) -> str:
    trimmed = text.strip()
    if not trimmed:
        raise _required(name, "give it a name of its own")
    if len(trimmed) > _MAX_NAME or not trimmed.isprintable():
        raise _wrong(name, f"must be at most {_MAX_NAME} printable characters")
    return trimmed


def _patterns(patterns: tuple[str, ...], name: str) -> tuple[str, ...]:
    require_count(len(patterns), name, Bound(f"max_{name}", _MAX_PATTERNS))
    return tuple(_name(pattern, f"{name}[{place}]") for place, pattern in enumerate(patterns))


def _check_lengths(backend: Backend) -> None:
    texts = [(name, getattr(backend, name), most) for name, most in _MAX_TEXTS.items()]
    texts += [("headers", part, _MAX_HEADER) for header in backend.headers.items() for part in header]
    for name, text, most in texts:
        require_length(text, name, Bound(f"max_{name}_chars", most))


def _check_numbers(backend: Backend) -> None:
    for each in fields(backend):
        value, bounds = getattr(backend, each.name), each.metadata
        if value is not None and "low" in bounds and not bounds["low"] <= value <= bounds["high"]:
            raise _wrong(each.name, f"is {value}; it must be from {bounds['low']} to {bounds['high']} {bounds['unit']}")
    if 0 < backend.context_tokens < MIN_WINDOW:
        raise _wrong("context_tokens", f"is {backend.context_tokens}; it must be 0 or at least {MIN_WINDOW} tokens")


def _check_key(backend: Backend) -> None:
    if backend.api_key_env and not _VARIABLE.fullmatch(backend.api_key_env):
        raise _wrong("api_key_env", "must be the name of an environment variable, never a key itself")
    if backend.api_key_header and not _HEADER.fullmatch(backend.api_key_header):
        raise _wrong("api_key_header", "must be the name of a header")
    if len(backend.headers) > _MAX_HEADERS:
        raise _wrong("headers", f"has {len(backend.headers)} headers; the limit is {_MAX_HEADERS}")
    for name, value in backend.headers.items():
        if not _HEADER.fullmatch(name) or not fits_in_head(value):
            raise _wrong("headers", "must hold names and values that can stand in a request's head")
        if name.casefold() in _KEY_HEADERS:
            raise _wrong("headers", "must not hold a key; name an environment variable in api_key_env")


def _check_extra(extra: str) -> None:
    if not extra:
        return
    try:
        value = parse(extra, "extra_body_json") if len(extra) <= _MAX_EXTRA else None
    except InvalidInput:
        value = None
    if not isinstance(value, dict):
        raise _wrong("extra_body_json", f"must be one JSON object of at most {_MAX_EXTRA} characters")
    if not _OWN_BODY.isdisjoint(value):
        raise _wrong("extra_body_json", f"must not set {' or '.join(sorted(_OWN_BODY))}")


def _wrong(name: str, why: str) -> InvalidInput:
    return InvalidInput(f"{name} {why}", reason=Reason.FIELD_INVALID, field=name)


def _required(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"{name} is empty; {what}", reason=Reason.FIELD_REQUIRED, field=name)
