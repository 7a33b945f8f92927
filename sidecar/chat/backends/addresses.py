"""Which addresses a backend may have: this machine, or https where a game allows other machines.

It only looks at the text of an address; a name that resolves to another machine is that name's own affair.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from sidecar.errors import InvalidInput, Reason

_MAX_CHARS = 2_000


def checked_base_url(url: str, *, allow_remote: bool, allow_plain_http: bool) -> str:
    """The address without the slash at its end. Raises InvalidInput."""
    base = url.strip().rstrip("/")
    parts = _parts(base)
    if is_loopback(parts.hostname or ""):
        return base
    if not allow_remote:
        raise _wrong("is on another machine; set allow_remote if it is meant to be", Reason.ADDRESS_NOT_ALLOWED)
    if parts.scheme != "https" and not allow_plain_http:
        raise _wrong(
            "sends what players say over plain http to another machine; use https, or set allow_plain_http",
            Reason.ADDRESS_NOT_ALLOWED,
        )
    return base


def is_loopback(host: str) -> bool:
    """Whether a host is this machine: ``localhost`` or an address of 127.0.0.0/8 or ::1."""
    if host.casefold().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parts(base: str) -> SplitResult:
    if not base:
        raise InvalidInput(
            "base_url is empty; give the server's address, such as http://127.0.0.1:8080/v1",
            reason=Reason.FIELD_REQUIRED,
            field="base_url",
        )
    try:
        parts = urlsplit(base)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known or len(base) > _MAX_CHARS or not base.isprintable() or " " in base:
        raise _wrong("is no address such as http://127.0.0.1:8080/v1", Reason.FIELD_INVALID)
    if parts.username or parts.password:
        raise _wrong("holds a name or a password; name an environment variable in api_key_env", Reason.FIELD_INVALID)
    if parts.query or parts.fragment:
        raise _wrong("must end with its path, without ? and #", Reason.FIELD_INVALID)
    return parts


def _wrong(why: str, reason: Reason) -> InvalidInput:
    return InvalidInput(f"base_url {why}", reason=reason, field="base_url")
