"""``demo``: a short scene in a temporary data folder, played against a real daemon in another process."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import grpc

from sidecar.cli.client import Client
from sidecar.cli.demo_talk import Talk
from sidecar.cli.own_daemon import own_daemon
from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2, memory_pb2, memory_pb2_grpc
from sidecar.gen.lorekeeper.v1.chat_pb2_grpc import ChatServiceStub

MIRA = common_pb2.Actor(save_id="slot 1", actor_id="Mira", role_id="Merchant", player_id="Ada")


class Stage:
    """Plays calls and tells of each what it did and how long it took."""

    def __init__(self, *, quiet: bool) -> None:
        self.steps: list[dict[str, Any]] = []
        self._quiet = quiet

    def say(self, words: str) -> None:
        if not self._quiet:
            click.echo(f"\n{words}")

    def play(self, client: Client, name: str, request: Any) -> Any:
        """The answer of MemoryService's ``name``; a refusal is shown and comes back as None."""
        method = getattr(memory_pb2_grpc.MemoryServiceStub(client.channel), name)
        began = time.perf_counter()
        try:
            answer = method(request, metadata=client.metadata, timeout=10)
        except grpc.RpcError as error:
            self.step(name, began, f"{error.code().name}: {error.details()}")
            return None
        self.step(name, began, _shown(name, answer))
        return answer

    def show(self, text: str) -> None:
        """A piece of what is said, as it comes."""
        if not self._quiet:
            click.echo(text, nl=False)

    def step(self, name: str, began: float, shown: str) -> None:
        milliseconds = (time.perf_counter() - began) * 1_000
        self.steps.append({"call": name, "milliseconds": round(milliseconds, 2), "answer": shown})
        if not self._quiet:
            click.secho(f"  {name:<22}{milliseconds:>7.2f} ms  ", fg="cyan", nl=False)
            click.echo(shown)


@click.command()
@click.option("--backend", "url", default="", help="A model server, such as http://127.0.0.1:8080/v1, to play Mira.")
@click.option("--model", default="", help="The server's model; by default its first.")
@click.option("--keep", is_flag=True, help="Keep the data folder and say where it is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the story.")
def demo(url: str, model: str, keep: bool, as_json: bool) -> None:
    """Play a short scene against a real daemon and show each call with the time it took."""
    stage = Stage(quiet=as_json)
    with _folder(keep) as name:
        folder = Path(name)
        _first_visit(stage, folder)
        _next_day(stage, folder)
        _evening(stage, folder, url=url, model=model)
        if as_json:
            click.echo(json.dumps(stage.steps))
            return
        _farewell(folder if keep else None)


@contextmanager
def _folder(keep: bool) -> Iterator[str]:
    if keep:
        yield tempfile.mkdtemp(prefix="lorekeeper-demo-")
        return
    with tempfile.TemporaryDirectory(prefix="lorekeeper-demo-") as name:
        yield name


@contextmanager
def _daemon(stage: Stage, folder: Path) -> Iterator[Client]:
    with own_daemon(folder) as (client, seconds):
        stage.say(f"A daemon of its own started in {seconds * 1_000:.0f} ms.")
        yield client


def _first_visit(stage: Stage, folder: Path) -> None:
    with _daemon(stage, folder) as client:
        stage.say("Ada walks into Mira's shop. Mira's model notes what it learns, with its memory tool:")
        for arguments in (
            {"action": "write", "content": "# Mira\nCustomer: Ada, a sailor\nMood: wary"},
            {"action": "append", "content": "Ada promised to bring saffron before the new moon."},
            {"action": "str_replace", "old_text": "Mood: wary", "new_text": "Mood: curious"},
        ):
            stage.play(client, "CallTool", _call(arguments))
        stage.say("A model's mistake is answered so that it can correct itself:")
        stage.play(client, "CallTool", _call({"action": "delete", "old_text": "Mood: Curious"}))
        stage.say("The game edits too: several edits, all or none, on the version that it has read.")
        stage.play(client, "EditDocument", _two_edits(expected_version=3))
        stage.say("Another part of the game still has version 3, so its edit does not get lost on top of the new one:")
        stage.play(client, "EditDocument", _two_edits(expected_version=3))


def _next_day(stage: Stage, folder: Path) -> None:
    stage.say("The game ends, and the daemon with it. The next day:")
    with _daemon(stage, folder) as client:
        stage.play(client, "GetDocument", memory_pb2.GetDocumentRequest(actor=MIRA))
        stage.play(client, "ListDocumentVersions", memory_pb2.ListDocumentVersionsRequest(actor=MIRA))
        stage.say("The player reloads; the game puts Mira's memory back to version 2:")
        stage.play(client, "RevertDocument", memory_pb2.RevertDocumentRequest(actor=MIRA, version=2))
        stage.play(client, "GetDocument", memory_pb2.GetDocumentRequest(actor=MIRA))


def _evening(stage: Stage, folder: Path, *, url: str, model: str) -> None:
    with _daemon(stage, folder) as client:
        who = f"The model at {url} speaks for her." if url else "Without --backend she has lines of her own."
        stage.say(f"In the evening Ada comes to talk. The game offers Mira a tool, open_door. {who}")
        Talk(client, MIRA, url=url, model=model).play(stage.show, stage.step)
        listed = ChatServiceStub(client.channel).ListMessages(
            chat_pb2.ListMessagesRequest(actor=MIRA), metadata=client.metadata
        )
        stage.say(f"Everything is remembered: {listed.total} messages in Mira's history.")


def _call(arguments: dict[str, str]) -> memory_pb2.CallToolRequest:
    return memory_pb2.CallToolRequest(actor=MIRA, name="memory", arguments_json=json.dumps(arguments))


def _two_edits(*, expected_version: int) -> memory_pb2.EditDocumentRequest:
    return memory_pb2.EditDocumentRequest(
        actor=MIRA,
        expected_version=expected_version,
        edits=[
            memory_pb2.Edit(rename=memory_pb2.Rename(old_label="Customer", new_label="Friend")),
            memory_pb2.Edit(append=memory_pb2.Append(content="Ada paid for the broken lamp.")),
        ],
    )


def _shown(name: str, answer: Any) -> str:
    if name == "CallTool":
        result = json.loads(answer.result_json)
        near = "; nearest: " + " | ".join(result["NearestLines"]) if result.get("NearestLines") else ""
        return f"version {result['Version']}: {result['Message'] or result['Error']}{near}"
    if name == "GetDocument":
        return f"version {answer.version}, {answer.length} characters" + "".join(
            f"\n      {line}" for line in answer.text.split("\n")
        )
    if name == "ListDocumentVersions":
        return ", ".join(f"{version.version} ({version.note})" for version in answer.versions)
    return f"version {answer.version}, {answer.length} characters"


def _farewell(kept: Path | None) -> None:
    click.echo("\nWhat to try next:")
    click.echo("  lorekeeper serve                 a daemon on your own data folder")
    click.echo("  lorekeeper inspect --help        what lies in a data folder")
    click.echo("  docs/contract.md                 every call, with grpcurl examples")
    if kept:
        address = "--save 'slot 1' --actor Mira --role Merchant --player Ada"
        click.echo(f"  lorekeeper inspect versions --data-dir {kept} {address}")
