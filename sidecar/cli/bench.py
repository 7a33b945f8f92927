"""``bench``: how well the daemon finds what was said in long conversations, measured as a game would use it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

import click
import grpc

from sidecar.cli.client import Client
from sidecar.cli.locomo import DEPTHS, TYPES, Question, Talk, Turn, read, recall_at
from sidecar.cli.own_daemon import own_daemon
from sidecar.cli.tables import show
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, memory_pb2_grpc, search_pb2, search_pb2_grpc

_BATCH = 500
_MODEL_SECONDS = 60.0
_RECIPROCAL_RANK = search_pb2.FusionOptions(mode=search_pb2.FUSION_MODE_RRF)
_DEFAULT = "default"
_RANKERS: Mapping[str, Mapping[str, Any]] = {
    "words": {"mode": search_pb2.SEARCH_MODE_LEXICAL},
    "meaning": {"mode": search_pb2.SEARCH_MODE_VECTOR},
    "reciprocal rank": {"fusion": _RECIPROCAL_RANK},
    _DEFAULT: {},
}
Result = tuple[str, int, list[float]]


@click.group()
def bench() -> None:
    """Measure the daemon."""


@bench.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--model", default="auto", show_default=True, help="The embedding model, as embedding.model names it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def recall(file: Path, model: str, as_json: bool) -> None:
    """Ask the questions of a LoCoMo FILE of a daemon that remembers its turns; print the share of the evidence that it
    finds, by way of searching and by type of question."""
    try:
        talks = list(read(file))
    except (KeyError, TypeError, ValueError) as error:
        raise click.ClickException(f"{file} is no file of LoCoMo conversations") from error
    with (
        tempfile.TemporaryDirectory(prefix="lorekeeper-bench-") as folder,
        own_daemon(Path(folder), "--set", f"embedding.model={model}") as (client, _),
    ):
        _wait_for_model(client)
        results = [one for number, talk in enumerate(talks) for one in _measured(client, f"owner {number}", talk)]
    by_ranker = [_row("ranker", name, [one for one in results if one[0] == name]) for name in _RANKERS]
    default = [one for one in results if one[0] == _DEFAULT]
    by_type = [_row("type", f"{TYPES[kind]}", [one for one in default if one[1] == kind]) for kind in TYPES]
    by_type = [row for row in by_type if row["questions"]]
    if as_json:
        click.echo(json.dumps({"rankers": by_ranker, "types": by_type}))
        return
    show(by_ranker, False, "")
    click.echo()
    show(by_type, False, "")


def _wait_for_model(client: Client) -> None:
    """Return once a model answers. Raises click.ClickException where none will."""
    stub = search_pb2_grpc.SearchServiceStub(client.channel)
    deadline = time.monotonic() + _MODEL_SECONDS
    while reason := client.call(stub.GetIndexStatus, search_pb2.GetIndexStatusRequest()).degraded_reason:
        if reason == common_pb2.DEGRADED_REASON_MODEL_FAILED or time.monotonic() > deadline:
            raise click.ClickException("no embedding model answers; 'lorekeeper models list' tells which there are")
        time.sleep(0.1)


def _measured(client: Client, owner: str, talk: Talk) -> Iterator[Result]:
    """For each question and ranker: the ranker, the question's type, the recall at each depth."""
    actor = common_pb2.Actor(save_id=owner, actor_id=owner)
    _remember(client, actor, talk.turns)
    stub = search_pb2_grpc.SearchServiceStub(client.channel)
    try:
        for _ in stub.RebuildIndex(search_pb2.RebuildIndexRequest(save_id=owner), metadata=client.metadata):
            pass
    except grpc.RpcError as error:
        raise click.ClickException(f"{error.details()} ({error.code().name})") from error
    for question in talk.questions:
        for name, options in _RANKERS.items():
            yield name, question.kind, _recalls(client, stub, actor, question, options)


def _remember(client: Client, actor: common_pb2.Actor, turns: Sequence[Turn]) -> None:
    stub = memory_pb2_grpc.MemoryServiceStub(client.channel)
    records = [
        memory_pb2.NewRecord(
            record_id=str(place),
            scope="talk",
            kind=memory_pb2.RECORD_KIND_EVENT,
            moment=common_pb2.Moment(timeline_id="talk", tick=place),
            searchable_text=turn.text,
            speaker=turn.speaker,
            conversation_id=str(turn.session),
            ordinal=place,
        )
        for place, turn in enumerate(turns)
    ]
    for _, batch in groupby(records, key=lambda record: int(record.record_id) // _BATCH):
        client.call(stub.AddRecords, memory_pb2.AddRecordsRequest(actor=actor, records=list(batch)))


def _recalls(
    client: Client, stub: Any, actor: common_pb2.Actor, question: Question, options: Mapping[str, Any]
) -> list[float]:
    request = search_pb2.SearchRequest(actor=actor, text=question.text, limit=max(DEPTHS), **options)
    order = [int(hit.record.record_id) for hit in client.call(stub.Search, request).hits]
    return [recall_at(order, question.evidence, depth) for depth in DEPTHS]


def _row(head: str, name: str, results: Sequence[Result]) -> dict[str, Any]:
    recalls = [one for _, _, one in results] or [[0.0] * len(DEPTHS)]
    columns = {f"@{depth}": f"{mean(one[place] for one in recalls):.3f}" for place, depth in enumerate(DEPTHS)}
    return {head: name, "questions": len(results), **columns}
