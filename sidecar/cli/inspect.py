"""``inspect``: what a data folder holds, for people. Reads the files themselves, so that no daemon need run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sidecar.cli.inspect_chat import chat, prompt
from sidecar.cli.inspect_options import actor_options
from sidecar.cli.inspect_records import records
from sidecar.cli.options import as_json, data_dir
from sidecar.cli.tables import show
from sidecar.errors import LorekeeperError
from sidecar.memory.document import Document, Version
from sidecar.memory.document_store import DocumentStore
from sidecar.settings import MemorySettings
from sidecar.storage.actors import Actors
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.keys import DEFAULT_SAVE, ActorId, actor_id, checked_id
from sidecar.storage.save_state import SaveStates


class Folder:
    """The stores over a data folder, for reading."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise click.ClickException(f"there is no data folder at {root}")
        disk = FileDisk(root)
        self.actors = Actors(disk)
        self.saves = SaveStates(disk)
        self.documents = DocumentStore(disk, self.actors, self.saves, MemorySettings())


@click.group()
def inspect() -> None:
    """Read saves, actors, documents, versions, records, conversations and prompts."""


inspect.add_command(chat)
inspect.add_command(prompt)
inspect.add_command(records)


@inspect.command()
@data_dir
@as_json
def saves(data_dir: Path, as_json: bool) -> None:
    """List the saves."""
    folder = Folder(data_dir)
    rows = [
        {"save": save, "revision": state.revision, "epoch": state.epoch, "actors": _count(folder.actors.of_save(save))}
        for save in folder.actors.saves()
        for state in [folder.saves.state(save)]
    ]
    show(rows, as_json, "No save holds anything yet.")


@inspect.command()
@data_dir
@as_json
@click.option("--save", default=DEFAULT_SAVE, show_default=True, help="The save.")
def actors(data_dir: Path, as_json: bool, save: str) -> None:
    """List the actors of a save."""
    folder = Folder(data_dir)
    rows = [_actor_row(folder, who) for who in folder.actors.of_save(checked_id(save, "save_id") or DEFAULT_SAVE)]
    show(rows, as_json, f"No actor of save '{save}' has anything yet.")


@inspect.command()
@data_dir
@as_json
@actor_options
def document(data_dir: Path, as_json: bool, **parts: str) -> None:
    """Print an actor's document."""
    found = _document(data_dir, parts)
    if as_json:
        click.echo(json.dumps({"version": found.version, "length": len(found.text), "text": found.text}))
    elif not found.exists:
        click.echo("This actor has no document.", err=True)
    else:
        click.echo(found.text)


@inspect.command()
@data_dir
@as_json
@actor_options
@click.option("--diff/--no-diff", default=True, help="Show what each version changed.")
def versions(data_dir: Path, as_json: bool, diff: bool, **parts: str) -> None:
    """List the versions of an actor's document, each with what it changed."""
    found = _document(data_dir, parts)
    if as_json:
        rows = [
            {"version": v.number, "saved_at": v.saved_at, "action": v.action, "note": v.note, "content": v.content}
            for v in found.versions
        ]
        click.echo(json.dumps(rows))
        return
    if not found.versions:
        click.echo("This actor's document has no versions.", err=True)
    before = ""
    for version in found.versions:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(version.saved_at))
        click.secho(f"version {version.number}  {moment}  {version.action}  {version.note}", bold=True)
        if diff:
            for line in _difference(before, version):
                click.echo(line)
        before = version.content


def _actor_row(folder: Folder, who: ActorId) -> dict[str, Any]:
    try:
        found = folder.documents.look(who)
        state: dict[str, Any] = {"version": found.version, "length": len(found.text)}
    except LorekeeperError:
        state = {"version": "unreadable", "length": "unreadable"}
    address = {"actor": who.actor, "role": who.role, "player": who.player, "topic": who.topic, "tenant": who.tenant}
    return address | state


def _document(data_dir: Path, parts: dict[str, str]) -> Document:
    return Folder(data_dir).documents.read(actor_id(**parts))


def _difference(before: str, version: Version) -> Iterator[str]:
    from difflib import unified_diff

    lines = unified_diff(before.split("\n"), version.content.split("\n"), lineterm="", n=1)
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in list(lines)[2:]:
        yield click.style(f"  {line}", fg=colours.get(line[:1]))


def _count(items: Iterator[Any]) -> int:
    return sum(1 for _ in items)
