"""``saves``, ``checkpoint``, ``restore`` and ``fork``: saves as a whole, through the running daemon."""

from __future__ import annotations

import json
from pathlib import Path

import click

from sidecar.cli.client import connected
from sidecar.cli.options import as_json, data_dir
from sidecar.cli.save_basics import age, confirmed, pages, plain, require_save, save_stub, size, sure, the_save
from sidecar.cli.tables import in_one_line
from sidecar.gen.lorekeeper.v1 import save_pb2


@click.group()
def saves() -> None:
    """List saves and their checkpoints."""


@saves.command("list")
@data_dir
@as_json
def list_saves(data_dir: Path, as_json: bool) -> None:
    """List the saves with their sizes and ages."""
    with connected(data_dir) as client:
        found = list(pages(client, save_stub(client).ListSaves, save_pb2.ListSavesRequest(), "saves"))
    if as_json:
        click.echo(json.dumps([plain(info) for info in found]))
        return
    for info in found:
        name = f"  {info.name}" if info.name else ""
        click.secho(in_one_line(f"{info.save_id}{name}"), bold=True)
        click.echo(
            f"  {info.actors} actors, {info.records} records, {info.checkpoints} checkpoints, {size(info.bytes)}, "
            f"changed {age(info.updated.seconds)}, epoch {info.save.epoch}"
            + (f", forked from {info.forked_from}" if info.forked_from else "")
        )
    if not found:
        click.echo("No save holds anything yet.", err=True)


@saves.command("checkpoints")
@data_dir
@as_json
@the_save
def list_checkpoints(data_dir: Path, as_json: bool, save: str) -> None:
    """List the checkpoints of a save, newest first."""
    with connected(data_dir) as client:
        request = save_pb2.ListCheckpointsRequest(save_id=save)
        found = list(pages(client, save_stub(client).ListCheckpoints, request, "checkpoints"))
    if as_json:
        click.echo(json.dumps([plain(one) for one in found]))
        return
    for one in found:
        _show_checkpoint(one)
    if not found:
        click.echo(f"Save '{save}' has no checkpoint.", err=True)


@click.command()
@data_dir
@as_json
@the_save
@click.option("--name", default="", help="A name for people.")
def checkpoint(data_dir: Path, as_json: bool, save: str, name: str) -> None:
    """Keep a save as it is now."""
    with connected(data_dir) as client:
        request = save_pb2.CreateCheckpointRequest(save_id=save, name=name)
        require_save(client, save)
        answer = client.call(save_stub(client).CreateCheckpoint, request)
    if as_json:
        click.echo(json.dumps(plain(answer)))
        return
    _show_checkpoint(answer.checkpoint)


@click.command()
@data_dir
@as_json
@the_save
@sure
@click.argument("checkpoint_id")
def restore(data_dir: Path, as_json: bool, save: str, yes: bool, checkpoint_id: str) -> None:
    """Make a save what it was at a checkpoint; what it is now is kept."""
    confirmed(yes, f"Save '{save}' goes back to {checkpoint_id}; running turns of it end. Restore?")
    with connected(data_dir) as client:
        request = save_pb2.RestoreCheckpointRequest(save_id=save, checkpoint_id=checkpoint_id)
        answer = client.call(save_stub(client).RestoreCheckpoint, request)
    if as_json:
        click.echo(json.dumps(plain(answer)))
        return
    click.echo(f"Restored in {answer.duration_ms:.0f} ms; {answer.ended} running calls were ended.")
    click.echo(f"What it was before: {answer.safety.checkpoint_id}")


@click.command()
@data_dir
@as_json
@the_save
@click.option("--checkpoint", "checkpoint_id", default="", help="The checkpoint to fork.  [default: as it is now]")
@click.option("--name", default="", help="A name for people.  [default: that of the old save]")
@click.option("--timeline", default="", help="The timeline on which the new save goes on.")
@click.argument("new_save")
def fork(data_dir: Path, as_json: bool, new_save: str, save: str, **more: str) -> None:
    """Make a new save of a save or of one of its checkpoints."""
    with connected(data_dir) as client:
        request = save_pb2.ForkSaveRequest(
            save_id=save,
            new_save_id=new_save,
            checkpoint_id=more["checkpoint_id"],
            new_name=more["name"],
            new_timeline_id=more["timeline"],
        )
        answer = client.call(save_stub(client).ForkSave, request)
    if as_json:
        click.echo(json.dumps(plain(answer)))
        return
    click.echo(f"Save '{new_save}': {answer.info.actors} actors, {answer.info.records} records.")


def _show_checkpoint(one: save_pb2.Checkpoint) -> None:
    kind = save_pb2.CheckpointKind.Name(one.kind).removeprefix("CHECKPOINT_KIND_").lower()
    click.secho(in_one_line(f"{one.checkpoint_id}  {one.name}"), bold=True)
    click.echo(
        f"  {kind}, {age(one.created.seconds)}, {one.actors} actors, {one.records} records, {size(one.bytes)}"
        + (f", {one.moment.timeline_id} at {one.moment.tick}" if one.HasField("moment") else "")
        + (", something was erased from it" if one.rewritten else "")
    )
