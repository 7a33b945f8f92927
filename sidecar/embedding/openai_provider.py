"""A server that speaks the OpenAI embeddings wire (llama.cpp, LM Studio, Ollama, ...) as a provider.

Never follows a redirect, never uses a proxy, never reads more than the bound, never logs a text or a key.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sidecar.bounds import fits_in_head
from sidecar.embedding.admission import Lane
from sidecar.embedding.identity import EmbeddingIdentity, EmbeddingKind, unit_vectors
from sidecar.embedding.openai_wire import (
    endpoint,
    request_body,
    requests,
    response_vectors,
    server_identity,
    tokens_read,
)
from sidecar.embedding.provider import Embedded
from sidecar.errors import LimitReached, LorekeeperError, NotReady, Reason, TimedOut, Unavailable
from sidecar.settings import EmbeddingSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TEXTS_A_REQUEST = 256
_PROBE = "warm"


@dataclass(frozen=True)
class _Reply:
    vectors: NDArray[np.float64]
    tokens: int


async def connect(settings: EmbeddingSettings) -> OpenAIProvider:
    """A provider whose server has answered once. Raises what an embedding raises, or EMBEDDING_CONFIGURATION."""
    client = _Client(settings)
    try:
        reply = await client.embed([_PROBE])
        dimensions = settings.openai_dimensions or reply.vectors.shape[1]
        unit_vectors(reply.vectors, dimensions)
    except BaseException:
        await client.close()
        raise
    return OpenAIProvider(client, settings, server_identity(settings, dimensions))


class OpenAIProvider:
    """Raises INFERENCE_TIMEOUT, INFERENCE_FAILED (down, redirect, bad status, cut off) and INVALID_OUTPUT."""

    def __init__(self, client: _Client, settings: EmbeddingSettings, identity: EmbeddingIdentity) -> None:
        self.identity = identity
        self._client = client
        self._settings = settings

    async def embed_query(self, text: str, lane: Lane) -> Embedded:
        return await self._embed([text], EmbeddingKind.QUERY, lane)

    async def embed_documents(self, texts: Sequence[str], lane: Lane) -> Embedded:
        return await self._embed(texts, EmbeddingKind.DOCUMENT, lane)

    async def close(self) -> None:
        await self._client.close()

    async def _embed(self, texts: Sequence[str], kind: EmbeddingKind, lane: Lane) -> Embedded:
        import numpy as np

        settings = self._settings
        query = kind is EmbeddingKind.QUERY
        prefix = settings.openai_query_prefix if query else settings.openai_document_prefix
        groups = requests(
            [prefix + text for text in texts],
            model=settings.openai_model,
            max_texts=_TEXTS_A_REQUEST,
            max_bytes=settings.max_request_bytes,
        )
        busy_since = time.monotonic() - lane.waited
        replies = [await self._request(group, lane) for group in groups]
        vectors = unit_vectors(np.concatenate([reply.vectors for reply in replies]), self.identity.dimensions)
        return Embedded(
            vectors=vectors,
            tokens=(replies[0].tokens,) if len(texts) == 1 else (0,) * len(texts),
            dropped=(0,) * len(texts),
            batch_sizes=tuple(map(len, groups)),
            tokenization=0.0,
            inference=time.monotonic() - lane.waited - busy_since,
        )

    async def _request(self, texts: list[str], lane: Lane) -> _Reply:
        tasks: list[asyncio.Task[_Reply]] = []

        def begin() -> asyncio.Future[_Reply]:
            tasks.append(asyncio.ensure_future(self._client.embed(texts)))
            return tasks[0]

        def stop() -> None:
            tasks[0].cancel()

        reply = await lane.run(begin, stop)
        if reply.vectors.shape[1] != self.identity.dimensions:
            unit_vectors(reply.vectors, self.identity.dimensions)
        return reply


class _Client:
    """One HTTP client for one server."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._httpx = _httpx()
        self._settings = settings
        self._address = endpoint(
            settings.openai_url,
            allow_remote=settings.openai_allow_remote,
            allow_plain_remote=settings.openai_allow_plain_remote,
        )
        self._key = _key(settings.openai_key_env)
        self._client = self._httpx.AsyncClient(
            timeout=settings.openai_timeout_seconds, trust_env=False, follow_redirects=False
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def embed(self, texts: Sequence[str]) -> _Reply:
        body = await self._answer(request_body(self._settings.openai_model, texts))
        return await asyncio.to_thread(lambda: _Reply(response_vectors(body, len(texts)), tokens_read(body)))

    async def _answer(self, body: bytes) -> bytes:
        try:
            async with (
                asyncio.timeout(self._settings.openai_timeout_seconds),
                self._client.stream("POST", self._address, content=body, headers=self._headers()) as response,
            ):
                if response.status_code != 200:
                    raise _failed(f"answered with status {response.status_code}")
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise _failed("packs its answer, though it is asked not to")
                return await self._bounded(response)
        except (TimeoutError, self._httpx.TimeoutException):
            raise self._too_slow() from None
        except self._httpx.HTTPError as error:
            raise _failed("cannot be reached or broke off its answer") from error

    async def _bounded(self, response: Any) -> bytes:
        most = self._settings.max_response_bytes
        parts: list[bytes] = []
        size = 0
        async for part in response.aiter_raw():
            size += len(part)
            if size > most:
                raise LimitReached(
                    f"the embedding server's answer is larger than {most} bytes: send fewer texts",
                    reason=Reason.INVALID_OUTPUT,
                    limit="embedding.max_response_bytes",
                    value=most,
                )
            parts.append(part)
        return b"".join(parts)

    def _headers(self) -> dict[str, str]:
        # A few packed bytes can be gigabytes.
        headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        return {**headers, "authorization": f"Bearer {self._key}"} if self._key else headers

    def _too_slow(self) -> TimedOut:
        seconds = self._settings.openai_timeout_seconds
        return TimedOut(
            f"the embedding server did not answer within {seconds:g} s",
            reason=Reason.INFERENCE_TIMEOUT,
            limit="embedding.openai_timeout_seconds",
            value=seconds,
        )


def _key(variable: str) -> str:
    """The key in an environment variable. Raises NotReady for one that no request can carry."""
    key = os.environ.get(variable, "").strip() if variable else ""
    if not fits_in_head(key):
        raise NotReady(
            f"the key in {variable} is not printable ASCII, so no request can carry it; set embedding.openai_key_env "
            "to a variable with the server's key",
            reason=Reason.EMBEDDING_CONFIGURATION,
            key="embedding.openai_key_env",
        )
    return key


def _httpx() -> Any:
    try:
        import httpx
        import numpy  # noqa: F401
    except ImportError as error:
        raise NotReady(
            f"an embedding server needs the package {error.name}: install lorekeeper[http]",
            reason=Reason.EMBEDDING_CONFIGURATION,
        ) from error
    return httpx


def _failed(what: str) -> LorekeeperError:
    return Unavailable(
        f"the embedding server {what}; look whether it runs and has the model", reason=Reason.INFERENCE_FAILED
    )
