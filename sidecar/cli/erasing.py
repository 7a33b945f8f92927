"""``erase``: forgetting a save, an actor or a player, counted first and confirmed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from sidecar.cli.client import Client, connected
from sidecar.cli.options import as_json, data_dir
from sidecar.cli.save_basics import confirmed, plain, save_stub, size, sure, the_save
from sidecar.gen.lorekeeper.v1 import common_pb2, memory_pb2, memory_pb2_grpc, save_pb2

# Checkpoints are rewritten and vectors looked through: that takes as long as there is much of it.
_SECONDS = 600.0


@click.group()
def erase() -> None:
    """Forget a save, an actor or a player completely, also in checkpoints."""


@erase.command("save")
@data_dir
@as_json
@sure
@click.option("--dry-run", is_flag=True, help="Only count.")
@click.argument("save")
def erase_save(data_dir: Path, as_json: bool, yes: bool, dry_run: bool, save: str) -> None:
    """Forget a save with its checkpoints."""
    _erase(
        data_dir, as_json, yes, dry_run, f"save '{save}' with its checkpoints", save_pb2.EraseSaveRequest(save_id=save)
    )


@erase.command("player")
@data_dir
@as_json
@sure
@click.option("--dry-run", is_flag=True, help="Only count.")
@click.option("--tenant", default="", help="The tenant.")
@click.argument("player")
def erase_player(data_dir: Path, as_json: bool, yes: bool, dry_run: bool, tenant: str, player: str) -> None:
    """Forget a player in all saves."""
    request = save_pb2.ErasePlayerRequest(player_id=player, tenant_id=tenant)
    _erase(data_dir, as_json, yes, dry_run, f"player '{player}' in all saves", request)


@erase.command("actor")
@data_dir
@as_json
@sure
@click.option("--dry-run", is_flag=True, help="Only count.")
@the_save
@click.option("--role", default="", help="Its role.")
@click.option("--player", default="", help="Its player.")
@click.option("--topic", default="", help="Its topic.")
@click.option("--tenant", default="", help="Its tenant.")
@click.argument("actor")
def erase_actor(data_dir: Path, as_json: bool, yes: bool, dry_run: bool, actor: str, save: str, **parts: str) -> None:
    """Forget an actor of a save."""
    who = common_pb2.Actor(
        save_id=save,
        actor_id=actor,
        role_id=parts["role"],
        player_id=parts["player"],
        topic_id=parts["topic"],
        tenant_id=parts["tenant"],
    )
    request = memory_pb2.EraseActorRequest(actor=who)
    _erase(data_dir, as_json, yes, dry_run, f"actor '{actor}' of save '{save}'", request)


def _erase(data_dir: Path, as_json: bool, yes: bool, dry_run: bool, what: str, request: Any) -> None:
    with connected(data_dir) as client:
        method = _eraser(client, request)
        request.dry_run = True
        counted = client.call(method, request, seconds=_SECONDS).erased
        if not dry_run:
            click.echo(f"This forgets {what}: {_counts(counted)}.", err=True)
            confirmed(yes, "It cannot be undone. Erase?")
            request.dry_run = False
            counted = client.call(method, request, seconds=_SECONDS).erased
    if as_json:
        click.echo(json.dumps(plain(counted)))
        return
    click.echo(f"{'Would forget' if dry_run else 'Forgot'} {what}: {_counts(counted)}.")


def _eraser(client: Client, request: Any) -> Any:
    if isinstance(request, memory_pb2.EraseActorRequest):
        return memory_pb2_grpc.MemoryServiceStub(client.channel).EraseActor
    stub = save_stub(client)
    return stub.EraseSave if isinstance(request, save_pb2.EraseSaveRequest) else stub.ErasePlayer


def _counts(erased: common_pb2.Erasure) -> str:
    counted = [
        f"{size(value) if field.name == 'bytes' else value} {field.name.replace('_', ' ')}".replace(" bytes", "")
        for field, value in erased.ListFields()
    ]
    return ", ".join(counted) or "nothing"
