"""``search`` and ``index``: what an actor would recall, and the derived index behind it, through the running daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import grpc

from sidecar.cli.client import Client, connected
from sidecar.cli.inspect_options import actor_options
from sidecar.cli.options import as_json, data_dir
from sidecar.cli.tables import show
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, search_pb2, search_pb2_grpc
from sidecar.storage.keys import DEFAULT_SAVE

_SHOWN_CHARS = 60
_TICK = click.IntRange(-(2**63), 2**63 - 1)
_CHANNELS = {
    search_pb2.SEARCH_CHANNEL_LEXICAL: "words",
    search_pb2.SEARCH_CHANNEL_VECTOR: "meaning",
    search_pb2.SEARCH_CHANNEL_CONTEXT_LEXICAL: "words near",
    search_pb2.SEARCH_CHANNEL_CONTEXT_VECTOR: "meaning near",
}


@click.command()
@data_dir
@as_json
@actor_options
@click.option("--timeline", default="", help="The timeline of --tick.")
@click.option("--tick", type=_TICK, help="Now, in game time; without it nothing that expires is found.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 512), help="How many hits.")
@click.option("--explain", is_flag=True, help="Tell how each hit came about.")
@click.argument("text", required=False, default="")
def search(
    data_dir: Path, as_json: bool, timeline: str, tick: int | None, limit: int, explain: bool, text: str, **parts: str
) -> None:
    """Find an actor's records by TEXT; without TEXT, the most important ones."""
    if bool(timeline) != (tick is not None):
        raise click.UsageError("--timeline and --tick are given together or not at all")
    request = search_pb2.SearchRequest(actor=_actor(parts), text=text, limit=limit, explain=explain)
    if tick is not None:
        now = common_pb2.Moment(timeline_id=timeline, tick=tick)
        request.filter.CopyFrom(memory_pb2.RecordFilter(at_or_before=now))
    with connected(data_dir) as client:
        answer = client.call(search_pb2_grpc.SearchServiceStub(client.channel).Search, request)
    show([_hit_row(hit, channels=explain) for hit in answer.hits], as_json, "Nothing was found.")
    if explain and not as_json:
        for hit in answer.hits:
            click.echo(f"{hit.rank}. {hit.explanation.text}")
    if answer.degraded and not as_json:
        click.echo(f"degraded: {_name(common_pb2.DegradedReason, answer.degraded_reason)}", err=True)


@click.group()
def index() -> None:
    """Tell how the derived index stands, or build it again."""


@index.command()
@data_dir
@as_json
@click.option("--save", default=DEFAULT_SAVE, show_default=True, help="The save.")
def status(data_dir: Path, as_json: bool, save: str) -> None:
    """Tell how complete the index of a save is."""
    with connected(data_dir) as client:
        stub = search_pb2_grpc.SearchServiceStub(client.channel)
        answer = client.call(stub.GetIndexStatus, search_pb2.GetIndexStatusRequest(save_id=save))
    row = {
        "save": save,
        "state": _name(search_pb2.IndexState, answer.state),
        "records": answer.total,
        "words": answer.terms_ready,
        "vectors": answer.ready,
        "orphans": answer.orphan,
        "damaged": answer.damaged,
        "rebuild": _rebuild_shown(answer),
        "bytes": answer.bytes,
    }
    show([row], as_json, "")


def _rebuild_shown(answer: search_pb2.GetIndexStatusResponse) -> str:
    if not answer.requires_rebuild:
        return ""
    return "needs a model" if answer.degraded_reason and answer.terms_ready == answer.total else "needed"


@index.command()
@data_dir
@as_json
@click.option("--save", default=DEFAULT_SAVE, show_default=True, help="The save.")
@click.option("--force", is_flag=True, help="Build also what is ready.")
def rebuild(data_dir: Path, as_json: bool, save: str, force: bool) -> None:
    """Build the index of a save again; writes may go on meanwhile. Broken off, it goes on where it was."""
    request = search_pb2.RebuildIndexRequest(save_id=save, force=force)
    with connected(data_dir) as client:
        last = _followed(client, request, quiet=as_json)
    row = {"done": last.done, "skipped": last.skipped, "failed": last.failed, "removed": last.removed}
    show([row | {"seconds": round(last.elapsed_ms / 1_000, 2)}], as_json, "")


def _followed(
    client: Client, request: search_pb2.RebuildIndexRequest, *, quiet: bool
) -> search_pb2.RebuildIndexResponse:
    """The last message of a rebuild, its progress shown on the way."""
    steps = search_pb2_grpc.SearchServiceStub(client.channel).RebuildIndex(request, metadata=client.metadata)
    last = search_pb2.RebuildIndexResponse()
    try:
        with click.progressbar(length=1, label="records", hidden=quiet) as bar:
            for step in steps:
                bar.length = max(1, step.total)
                bar.update(step.done - last.done)
                last = step
    except grpc.RpcError as error:
        raise click.ClickException(f"{error.details()} ({error.code().name})") from error
    return last


def _actor(parts: dict[str, str]) -> common_pb2.Actor:
    return common_pb2.Actor(**{f"{name}_id": value for name, value in parts.items()})


def _hit_row(hit: search_pb2.Hit, *, channels: bool) -> dict[str, Any]:
    """A line of the table; with ``channels``, each channel's score and place side by side."""
    text = hit.record.searchable_text or json.loads(hit.record.payload_json)
    return {
        "rank": hit.rank,
        "score": round(hit.score, 3),
        **(_channel_columns(hit) if channels else {}),
        "importance": round(hit.record.importance, 3),
        "why": _name(search_pb2.HitAccess, hit.access),
        "tick": hit.record.moment.tick,
        "record": hit.record.record_id,
        "text": str(text)[:_SHOWN_CHARS],
    }


def _channel_columns(hit: search_pb2.Hit) -> dict[str, str]:
    said = {channel.channel: f"{channel.score:.3f} #{channel.rank}" for channel in hit.channels}
    columns = {head: said.get(channel, "") for channel, head in _CHANNELS.items()}
    return {**columns, "fused": f"{hit.fused_score:.3f} #{hit.fused_rank}"}


def _name(enum: Any, value: int) -> str:
    """The value's name without the enum's prefix, in small letters."""
    name: str = enum.Name(value)
    return name.removeprefix(enum.Name(0).removesuffix("UNSPECIFIED")).lower()
