"""What went wrong at a backend, from the words that servers use for it. No I/O.

    llama.cpp   {"error":{"code":400,"type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256,…}}
    LM Studio   {"error":"Trying to keep the first 10136 tokens …"}, also as an event of an open stream
    Ollama      {"error":{"message":"llama3 does not support tools","type":"api_error",…}}
    vLLM        {"object":"error","message":"This model's maximum context length is 2048 tokens …","code":400}
    OpenAI      {"error":{"code":"context_length_exceeded","type":"invalid_request_error",…}}
    OpenRouter  {"choices":[{"finish_reason":"error","error":{"code":502,…},…}]}, in the middle of a stream

A server's words may repeat what a player said, so they are read and never passed on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sidecar.chat.backends.taking_turns import RoleOrder


class FailureKind(StrEnum):
    """Why a turn failed, by the names of the contract."""

    AUTH_EXPIRED = "AUTH_EXPIRED"
    PAYMENT_REQUIRED = "PAYMENT_REQUIRED"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"
    INVALID_REQUEST = "INVALID_REQUEST"
    CONTEXT_LENGTH_EXCEEDED = "CONTEXT_LENGTH_EXCEEDED"
    BACKEND_UNAVAILABLE = "BACKEND_UNAVAILABLE"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    EMPTY_RESPONSE = "EMPTY_RESPONSE"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    ANSWER_INVALID = "ANSWER_INVALID"
    SAVE_CHANGED = "SAVE_CHANGED"
    INTERNAL = "INTERNAL"
    INVALID_INPUT = "INVALID_INPUT"
    LIMIT_REACHED = "LIMIT_REACHED"


@dataclass(frozen=True)
class Failure:
    """What went wrong, in our own words. ``window`` is the limit that an overflow told, 0 where it told none."""

    kind: FailureKind
    message: str
    http_status: int = 0
    retry_after_ms: int | None = None
    window: int = 0
    tools_refused: bool = False
    model_missing: bool = False
    role_order: RoleOrder = RoleOrder.ANY
    """The order of roles that the model's chat template wants, where that is what was wrong."""


class BackendFailed(Exception):
    """One request failed; ``failure`` says why. ``backend_id`` is the backend that failed."""

    def __init__(self, failure: Failure, backend_id: str = "") -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.backend_id = backend_id


_OVERFLOW_CODES = frozenset(
    {"exceed_context_size_error", "context_length_exceeded", "context_exceeded", "context_window_exceeded"}
)
_OVERFLOW = re.compile(
    r"context (?:size|length|window)|maximum context|context (?:the )?overflows|exceeds? the (?:available )?context"
    r"|n_keep: *\d+ *>= *n_ctx|prompt is too long|input is too long|input length exceeds|too many (?:input )?tokens"
    r"|reduce the length of the (?:messages|prompt|input)|max_tokens must be at least 1, got -"
    r"|prompt too long|prompt exceeds max length|exceeded model token limit|max_seq_len|session_len"
    r"|longer than the maximum model length|inputs\W* tokens \+|input token count|input length \d+ exceeds"
    r"|maximum (?:allowed )?(?:number of tokens|token limit)",
    re.IGNORECASE,
)
# 0: an error that is told with status 200, or in a stream.
_OVERFLOW_STATUSES = frozenset({0, 400, 413, 422, 500})
# Why a server says that it stopped, where it could not go on.
_BROKEN_OFF = frozenset({"error", "abort", "insufficient_system_resource"})
# Words of limits that have nothing to do with the length of a prompt.
_OTHER_LIMITS = re.compile(
    r"rate.?limit|quota|billing|credit|overload|requests? per|tokens per (?:minute|day)|\btpm\b|\brpm\b", re.IGNORECASE
)
_QUOTA = re.compile(r"quota|billing|credit|insufficient_quota", re.IGNORECASE)
_TOOLS = re.compile(
    r"does not support (?:function|tool)|tools param requires|tool choice requires|tool-call-parser|support tool use"
    r"|tools with stream"
    r"|\b(?:tools?|functions?)\W*(?: (?:use|calls?|calling))?\W* (?:is|are) not (?:supported|enabled)"
    r"|tool use has not been enabled|(?:argument|parameter)s?(?: supplied)?: *\W?tools\b",
    re.IGNORECASE,
)
_NO_SYSTEM = re.compile(r"system (?:role|messages?)\W* (?:is |are )?not supported", re.IGNORECASE)
_IN_TURNS = re.compile(
    r"\broles?\b.{0,60} alternate|should alternate with|unexpected role|expected last role"
    r"|system message must be (?:at the beginning|the first)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model ['\"`]?[^ ]*['\"`]? (?:not found|does not exist)|no models? (?:is )?loaded|model_not_found|unknown model",
    re.IGNORECASE,
)
_LOADING = re.compile(r"loading model|model is loading|service unavailable|overloaded", re.IGNORECASE)
_LIMITS = tuple(
    re.compile(pattern.replace("#", r"(\d[\d,]*)"), re.IGNORECASE)
    for pattern in (
        r"n_ctx[\"']?\s*[:=]\s*#",
        r"context (?:length|window|size) \(# tokens\)",
        r"maximum context length (?:is|of) #",
        r"context (?:length|window|size) (?:is |of )+(?:only )?#",
        r"# (?:tokens? context|maximum context length)",
        r"maximum model length of #",
        r"maximum allowed token limit of #",
        r"tokens allowed \(#\)",
        r"max_new_tokens\W* must be <= #",
        r"tokens > # maximum",
        r"(?:max_seq_len|session_len|token limit:) #",
    )
)

_STATUS_KINDS = {
    401: FailureKind.AUTH_EXPIRED,
    403: FailureKind.AUTH_EXPIRED,
    402: FailureKind.PAYMENT_REQUIRED,
    409: FailureKind.QUOTA_EXCEEDED,
    413: FailureKind.CONTEXT_LENGTH_EXCEEDED,
    429: FailureKind.RATE_LIMITED,
    400: FailureKind.INVALID_REQUEST,
    404: FailureKind.INVALID_REQUEST,
    405: FailureKind.INVALID_REQUEST,
    422: FailureKind.INVALID_REQUEST,
    408: FailureKind.TIMEOUT,
}

_MESSAGES = {
    FailureKind.AUTH_EXPIRED: "the backend refuses the key; give a valid one, by its environment variable or per call",
    FailureKind.PAYMENT_REQUIRED: "the backend wants to be paid; see the account there",
    FailureKind.QUOTA_EXCEEDED: "the backend's quota is used up; see the account there, or use another backend",
    FailureKind.RATE_LIMITED: "the backend gets too many requests; wait, then try again",
    FailureKind.INVALID_REQUEST: "the backend does not accept the request; probe it to see what it can do",
    FailureKind.CONTEXT_LENGTH_EXCEEDED: "the prompt does not fit the model's window; give the server a larger one",
    FailureKind.BACKEND_UNAVAILABLE: "the backend is down or still loads its model; see that the server runs",
    FailureKind.TIMEOUT: "the backend was silent too long; it may be busy, or the model too large for the machine",
    FailureKind.EMPTY_RESPONSE: "the model said nothing; try again, or another model",
    FailureKind.PROVIDER_ERROR: "the backend failed in a way of its own; see its log",
}
_MODEL_MISSING = "the backend does not have the model; load it there, or name another one"
_ROLES_REFUSED = "the model's chat template does not take the order of the prompt's roles; use another template there"
_TOOLS_REFUSED = "the model takes no tool calls of the wire; set tool_channel to TEXT"


def failure_of(kind: FailureKind, *, http_status: int = 0, retry_after_ms: int | None = None) -> Failure:
    """A failure in the words that its kind has."""
    return Failure(kind, _MESSAGES[kind], http_status, retry_after_ms)


def status_failure(status: int, body: bytes, headers: Mapping[str, str]) -> Failure:
    """What an answer with an error status means."""
    return _classified(status, _parsed(body), retry_after(headers))


def told_failure(value: Mapping[str, Any]) -> Failure | None:
    """What an object of a stream, or an answer with status 200, tells of an error; None where it tells none."""
    error = value.get("error") or _error_of_choice(value.get("choices"))
    if error is None and value.get("object") == "error":
        error = value
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 0
    return _classified(status, {"error": error}, None)


def _error_of_choice(choices: Any) -> Any:
    """The error that a router puts where the answer should go on, when the server behind it has failed."""
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return None
    finish = choice.get("finish_reason")
    return choice.get("error") or (finish if isinstance(finish, str) and finish.lower() in _BROKEN_OFF else None)


def retry_after(headers: Mapping[str, str]) -> int | None:
    """The wait that a server asks for, in milliseconds; dates are not taken."""
    for name, scale in (("retry-after-ms", 1.0), ("retry-after", 1_000.0)):
        try:
            wait = float(headers.get(name, ""))
        except ValueError:
            continue
        if 0 <= wait < 1e9:
            return round(wait * scale)
    return None


def _classified(status: int, value: dict[str, Any], wait: int | None) -> Failure:
    words, codes = _words(value)
    if _is_overflow(status, words, codes):
        kind = FailureKind.CONTEXT_LENGTH_EXCEEDED
        return Failure(kind, _MESSAGES[kind], status, None, _window(value, words))
    if _TOOLS.search(words):
        return Failure(FailureKind.INVALID_REQUEST, _TOOLS_REFUSED, status, tools_refused=True)
    if status in _OVERFLOW_STATUSES and (order := _role_order(words)):
        return Failure(FailureKind.INVALID_REQUEST, _ROLES_REFUSED, status, role_order=order)
    if status != 429 and (_NO_MODEL.search(words) or "model_not_found" in codes):
        return Failure(FailureKind.INVALID_REQUEST, _MODEL_MISSING, status, model_missing=True)
    kind = _kind(status, f"{words} {' '.join(codes)}")
    return failure_of(kind, http_status=status, retry_after_ms=wait)


def _role_order(words: str) -> RoleOrder:
    """What a template that refuses the prompt's roles takes; ANY where that is not what was wrong."""
    if _NO_SYSTEM.search(words):
        return RoleOrder.NO_SYSTEM
    return RoleOrder.IN_TURNS if _IN_TURNS.search(words) else RoleOrder.ANY


def _kind(status: int, words: str) -> FailureKind:
    if status in (403, 429) and _QUOTA.search(words):
        return FailureKind.QUOTA_EXCEEDED
    if status in _STATUS_KINDS:
        return _STATUS_KINDS[status]
    if status >= 500 or _LOADING.search(words):
        return FailureKind.BACKEND_UNAVAILABLE
    if _OTHER_LIMITS.search(words):
        return FailureKind.QUOTA_EXCEEDED if _QUOTA.search(words) else FailureKind.RATE_LIMITED
    return FailureKind.PROVIDER_ERROR


def _is_overflow(status: int, words: str, codes: frozenset[str]) -> bool:
    if status not in _OVERFLOW_STATUSES or _OTHER_LIMITS.search(words):
        return False
    return status == 413 or not _OVERFLOW_CODES.isdisjoint(codes) or bool(_OVERFLOW.search(words))


def _window(value: dict[str, Any], words: str) -> int:
    """The limit that is told, in tokens."""
    error = value.get("error")
    n_ctx = error.get("n_ctx") if isinstance(error, dict) else None
    if isinstance(n_ctx, int) and n_ctx > 0:
        return n_ctx
    for pattern in _LIMITS:
        found = pattern.search(words)
        if found:
            return int(found[1].replace(",", ""))
    return 0


def _words(value: dict[str, Any]) -> tuple[str, frozenset[str]]:
    """The message, and the short codes that stand beside it."""
    error = value.get("error", value)
    if not isinstance(error, dict):
        return str(error)[:10_000], frozenset()
    message = error.get("message") or error.get("detail") or ""
    codes = {str(error[name]).lower() for name in ("code", "type") if error.get(name)}
    return str(message)[:10_000], frozenset(codes)


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {"error": body[:10_000].decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {"error": str(value)[:10_000]}
