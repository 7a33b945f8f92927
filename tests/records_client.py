"""The helpers M and Q of the acceptance cases over the socket, and the calls around them."""

from __future__ import annotations

import json
import time
from typing import Any

from client import Client

from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, search_pb2, search_pb2_grpc

FACT = memory_pb2.RECORD_KIND_FACT


def at(tick: int, timeline: str = "world") -> common_pb2.Moment:
    return common_pb2.Moment(timeline_id=timeline, tick=tick)


def m(record_id: str, text: str = "", *, tick: int = 1, **more: Any) -> memory_pb2.NewRecord:
    """M: scope personal, kind Fact, payload {"text": text}, timeline world, searchable text = text."""
    given = {
        "record_id": record_id,
        "scope": "personal",
        "kind": FACT,
        "payload_json": json.dumps({"text": text}, ensure_ascii=False),
        "moment": at(tick),
        "searchable_text": text,
        **more,
    }
    return memory_pb2.NewRecord(**given)


def wanted(*, now: int | None = 100, **more: Any) -> memory_pb2.RecordFilter:
    """A filter at world/100, as Q has it, unless told otherwise."""
    return memory_pb2.RecordFilter(at_or_before=None if now is None else at(now), **more)


class Records:
    """The record calls of one client, for one actor unless told otherwise."""

    def __init__(self, client: Client, actor: common_pb2.Actor) -> None:
        self.actor = actor
        self.client = client
        self.memory = client.memory
        self.channel = client.channel
        self.stub = search_pb2_grpc.SearchServiceStub(client.channel)

    def other(self, actor_id: str, save_id: str = "") -> common_pb2.Actor:
        """Another actor of the test, in the same save unless told otherwise."""
        return common_pb2.Actor(save_id=save_id or self.actor.save_id, actor_id=f"{self.actor.actor_id} {actor_id}")

    def add(self, *records: memory_pb2.NewRecord, actor: common_pb2.Actor | None = None, **more: Any) -> Any:
        return self.memory.AddRecords(memory_pb2.AddRecordsRequest(actor=actor or self.actor, records=records, **more))

    def get(self, record_id: str, actor: common_pb2.Actor | None = None) -> memory_pb2.Record:
        request = memory_pb2.GetRecordRequest(actor=actor or self.actor, record_id=record_id)
        return self.memory.GetRecord(request).record

    def list(self, actor: common_pb2.Actor | None = None, **more: Any) -> Any:
        return self.memory.ListRecords(memory_pb2.ListRecordsRequest(actor=actor or self.actor, **more))

    def listed(self, actor: common_pb2.Actor | None = None, **more: Any) -> list[str]:
        return [record.record_id for record in self.list(actor, **more).records]

    def supersede(self, record_id: str, replacement: memory_pb2.NewRecord, **more: Any) -> Any:
        return self.memory.SupersedeRecord(
            memory_pb2.SupersedeRecordRequest(actor=self.actor, record_id=record_id, replacement=replacement, **more)
        )

    def forget(self, *ids: str, actor: common_pb2.Actor | None = None, **more: Any) -> Any:
        return self.memory.ForgetRecords(
            memory_pb2.ForgetRecordsRequest(actor=actor or self.actor, record_ids=ids, **more)
        )

    def share(self, record_id: str, *shares: memory_pb2.Share, **more: Any) -> Any:
        return self.memory.ShareRecord(
            memory_pb2.ShareRecordRequest(actor=self.actor, record_id=record_id, shares=shares, **more)
        )

    def search(self, text: str = "", actor: common_pb2.Actor | None = None, **more: Any) -> Any:
        given = {"filter": wanted(), **more}
        return self.stub.Search(search_pb2.SearchRequest(actor=actor or self.actor, text=text, **given))

    def found(self, text: str = "", actor: common_pb2.Actor | None = None, **more: Any) -> list[str]:
        return [hit.record.record_id for hit in self.search(text, actor, **more).hits]

    def status(self, **more: Any) -> Any:
        request = search_pb2.GetIndexStatusRequest(save_id=self.actor.save_id, **more)
        return self.stub.GetIndexStatus(request)

    def until_ready(self, count: int, seconds: float = 15.0) -> None:
        """Return once so many records of the save can be found by meaning."""
        deadline = time.monotonic() + seconds
        while self.status().ready != count:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def until_indexed(self, count: int, seconds: float = 15.0) -> None:
        """Return once the words of so many records of the save, and of no others, are in the index."""
        deadline = time.monotonic() + seconds
        while (self.status().terms_ready, self.status().orphan) != (count, 0):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def rebuild(self, **more: Any) -> list[Any]:
        return list(self.stub.RebuildIndex(search_pb2.RebuildIndexRequest(save_id=self.actor.save_id, **more)))

    def call_tool(self, name: str, arguments: dict[str, Any], *, tick: int | None = 5, **more: Any) -> Any:
        moment = None if tick is None else at(tick)
        return self.memory.CallTool(
            memory_pb2.CallToolRequest(
                actor=self.actor, name=name, arguments_json=json.dumps(arguments), moment=moment, **more
            )
        )
