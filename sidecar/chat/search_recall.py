"""A role's recall, made by the search that everybody else calls: what an actor may know, at the moment of its turn."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.json_format import ParseDict

from sidecar.chat.recall import Recalled, RecalledHit
from sidecar.chat.roles import RecallOptions
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, search_pb2
from sidecar.memory.canonical_json import string_leaves
from sidecar.memory.moments import Moment
from sidecar.storage.keys import ActorId
from sidecar.wire import actor_to, moment_from, moment_to

Search = Callable[[search_pb2.SearchRequest], Awaitable[search_pb2.SearchResponse]]


class SearchRecall:
    """``search`` is SearchService's, asked for a prompt."""

    def __init__(self, search: Search) -> None:
        self._search = search

    async def __call__(self, who: ActorId, query: str, options: RecallOptions, moment: Moment) -> Recalled:
        """Hits for ``query``, best first, none of them later than ``moment``."""
        response = await self._search(_request(who, query, options, moment))
        hits = tuple(RecalledHit(_text(hit.record), _moment(hit.record), hit) for hit in response.hits)
        return Recalled(hits, response.degraded_reason)


def _request(who: ActorId, query: str, options: RecallOptions, moment: Moment) -> search_pb2.SearchRequest:
    owners = [ParseDict(dict(owner), common_pb2.Actor()) for owner in options.owners]
    wanted = ParseDict(dict(options.filter or {}), memory_pb2.RecordFilter())
    wanted.at_or_before.CopyFrom(moment_to(moment))
    # The role is the game's own word: whose memories it names, its actors may search.
    request = search_pb2.SearchRequest(
        actor=actor_to(who), owners=owners, sources=owners, text=query, filter=wanted, limit=options.limit
    )
    if options.mode:
        request.mode = search_pb2.SearchMode.Value(f"SEARCH_MODE_{options.mode.upper()}")
    if options.similarity_floor is not None:
        request.similarity_floor = options.similarity_floor
    if options.include_archive is not None:
        request.include_archive = options.include_archive
    return request


def _moment(record: memory_pb2.Record) -> Moment | None:
    return moment_from(record.moment) if record.HasField("moment") else None


def _text(record: memory_pb2.Record) -> str:
    """What a prompt shows of a record: who said it where that is known, and its text, or what its payload says, or its
    tags."""
    text = record.searchable_text.strip() or _said(record.payload_json) or ", ".join(record.tags)
    return f"{record.speaker}: {text}" if record.speaker else text


def _said(payload: str) -> str:
    """The texts of a payload; the whole of it where it holds something else, such as numbers."""
    value = json.loads(payload)
    return " ".join(string_leaves(value)) if _only_texts(value) else payload


def _only_texts(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(_only_texts, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str)
