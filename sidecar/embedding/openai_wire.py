"""The OpenAI-compatible embeddings wire, without any network: which addresses may be used, which answers are right."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from sidecar.embedding.identity import EmbeddingIdentity, invalid_output
from sidecar.errors import InvalidInput, Reason
from sidecar.settings import EmbeddingSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PROVIDER = "openai-compatible"
_PATH = "/v1/embeddings"


def endpoint(url: str, *, allow_remote: bool, allow_plain_remote: bool) -> str:
    """The full address of ``/v1/embeddings`` for a base, a ``/v1`` or a full address.

    Raises EMBEDDING_CONFIGURATION for anything but http(s), for user names in it, for a remote server that was not
    allowed, and for a remote one without TLS unless that was allowed too.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _refused("must be an http or https address")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _refused("must hold no user name, query or fragment: put a key into openai_key_env")
    if not is_loopback(parts.hostname):
        if not allow_remote:
            raise _refused("is not on this machine: set openai_allow_remote to let texts leave it")
        if parts.scheme == "http" and not allow_plain_remote:
            raise _refused("would send texts without TLS: use https or set openai_allow_plain_remote")
    return urlunsplit((parts.scheme, parts.netloc, _full_path(parts.path), "", ""))


def server_identity(settings: EmbeddingSettings, dimensions: int) -> EmbeddingIdentity:
    """What the settings declare, because a server tells nothing trustworthy.

    Raises EMBEDDING_CONFIGURATION where openai_model or openai_version is blank.
    """
    return EmbeddingIdentity(
        provider=PROVIDER,
        model=settings.openai_model,
        version=f"{settings.openai_version}+l2-v1{_prefixes(settings)}",
        dimensions=dimensions,
    )


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def request_body(model: str, texts: Sequence[str]) -> bytes:
    body = {"model": model, "input": list(texts), "encoding_format": "float"}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def requests(texts: Sequence[str], *, model: str, max_texts: int, max_bytes: int) -> list[list[str]]:
    """The texts in order, in as few requests as both bounds allow. Raises FIELD_TOO_LONG for one too long alone."""
    groups: list[list[str]] = []
    size = 0
    empty = len(request_body(model, []))
    for index, text in enumerate(texts):
        cost = len(json.dumps(text, ensure_ascii=False).encode("utf-8")) + 1
        if empty + cost > max_bytes:
            raise InvalidInput(
                f"texts[{index}] alone is larger than one request may be (max_request_bytes)",
                reason=Reason.FIELD_TOO_LONG,
                field=f"texts[{index}]",
                limit="embedding.max_request_bytes",
                value=max_bytes,
            )
        if not groups or len(groups[-1]) == max_texts or size + cost > max_bytes:
            groups.append([])
            size = empty
        groups[-1].append(text)
        size += cost
    return groups


def response_vectors(body: bytes, count: int) -> NDArray[np.float64]:
    """The vectors by their ``index``, whatever order they came in; shape (count, dimensions).

    Raises INVALID_OUTPUT for half a body, another count, an index twice or out of range, or what is no vector.
    """
    try:
        data = json.loads(body)["data"]
        rows = {_index(item): item["embedding"] for item in data}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise invalid_output("something that is no list of embeddings") from error
    if len(data) != count or sorted(rows) != list(range(count)):
        raise invalid_output(f"{len(data)} embeddings for {count} texts, or the same one twice")
    return _matrix([rows[index] for index in range(count)])


def tokens_read(body: bytes) -> int:
    """``usage.prompt_tokens``, or 0 where the server does not tell."""
    usage = json.loads(body).get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and tokens > 0 else 0


def _prefixes(settings: EmbeddingSettings) -> str:
    prefixes = {"q": settings.openai_query_prefix, "d": settings.openai_document_prefix}
    return "".join(
        f"-{letter}{hashlib.sha256(text.encode('utf-8')).hexdigest()[:12]}" for letter, text in prefixes.items() if text
    )


def _matrix(rows: list[Any]) -> NDArray[np.float64]:
    import numpy as np

    if not all(isinstance(row, list) and all(map(_is_number, row)) for row in rows):
        raise invalid_output("an embedding with something that is no number")
    try:
        matrix = np.array(rows, dtype=np.float64)
    except (ValueError, OverflowError) as error:
        raise invalid_output("embeddings of different lengths") from error
    if matrix.ndim != 2 or np.any(np.abs(matrix) > np.finfo(np.float32).max):
        raise invalid_output("an embedding beyond single precision")
    return matrix


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _index(item: dict[str, Any]) -> int:
    index = item["index"]
    if not isinstance(index, int) or isinstance(index, bool):
        raise TypeError
    return index


def _full_path(path: str) -> str:
    bare = path.rstrip("/")
    if bare.endswith(_PATH):
        return bare
    return bare + ("/embeddings" if bare.endswith("/v1") else _PATH)


def _refused(rule: str) -> InvalidInput:
    return InvalidInput(
        f"embedding.openai_url {rule}", reason=Reason.EMBEDDING_CONFIGURATION, field="embedding.openai_url"
    )
