"""``inspect chat`` and ``inspect prompt``: what was said, and what a model would see of it.

They ask the daemon where one runs, since some conversations live in it alone; else they read the files. Nothing is
written either way.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from sidecar.cli.inspect_options import actor_options
from sidecar.cli.options import as_json, data_dir
from sidecar.storage.file_disk import FileDisk

_BAR = 40
_MAX_MESSAGES = 500
_NAMES = {
    "COMPLETION": "kept for the answer",
    "PREFIX": "prefix",
    "TOOLS": "tools",
    "SUMMARY": "summary",
    "HISTORY": "recent messages",
    "INSTRUCTIONS": "instructions",
    "MEMORY": "memory",
    "MEMORY_UPDATES": "memory updates",
    "RECALLED": "recalled",
    "TOOL_AVAILABILITY": "tool availability",
    "WORLD_STATE": "world state",
    "PLAYER_LINE": "player's line",
}


class LookingDisk(FileDisk):
    """Reads only: a torn end may be an append that a daemon is making right now, so it is not cut off."""

    def truncate(self, path: Path, length: int) -> None:
        """Leaves the file as it is."""


@click.command()
@data_dir
@as_json
@actor_options
@click.option("--limit", type=click.IntRange(1, 2_000), default=30, show_default=True, help="The newest rows.")
@click.option("--transcript", is_flag=True, help="Show everything that happened, tool calls included.")
def chat(data_dir: Path, as_json: bool, limit: int, transcript: bool, **parts: str) -> None:
    """Print an actor's conversation: its summary, then the newest messages."""
    from sidecar.gen.lorekeeper.v1 import chat_pb2, compaction_pb2

    actor = _actor(parts)
    if transcript:
        listed = _ask(data_dir, "ListTranscript", chat_pb2.ListTranscriptRequest(actor=actor, page_size=limit)).entries
    else:
        size = min(limit, _MAX_MESSAGES)
        listed = _ask(data_dir, "ListMessages", chat_pb2.ListMessagesRequest(actor=actor, page_size=size)).messages
    rows = [_row(row) for row in listed]
    summary = _ask(data_dir, "GetSummary", compaction_pb2.GetSummaryRequest(actor=actor)).summary
    if as_json:
        click.echo(json.dumps({"summary": summary.text, "rows": rows}, ensure_ascii=False))
        return
    if summary.text:
        click.secho(f"summary, version {summary.version}, {summary.count.tokens} tokens", bold=True)
        click.echo(summary.text + "\n")
    if not rows:
        click.echo("Nothing was said yet.", err=True)
    for row in rows:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["time"]))
        click.echo(f"{click.style(when, dim=True)}  {click.style(row['who'], bold=True)}  {row['content']}")


@click.command()
@data_dir
@as_json
@actor_options
@click.option("--line", default="", help="What the player would say.")
@click.option(
    "--window", type=click.IntRange(256, 16_777_216), help="The model's window in tokens.  [default: the role's]"
)
@click.option("--text", is_flag=True, help="Print the messages too.")
def prompt(data_dir: Path, as_json: bool, line: str, window: int | None, text: bool, **parts: str) -> None:
    """Show what a model would see in the next turn, by section, and what that takes of its window."""
    from sidecar.gen.lorekeeper.v1 import chat_pb2

    turn = chat_pb2.TurnInput(text=line, context_tokens=window)
    answer = _ask(data_dir, "BuildPrompt", chat_pb2.BuildPromptRequest(actor=_actor(parts), input=turn))
    if as_json:
        from google.protobuf.json_format import MessageToJson

        click.echo(MessageToJson(answer, preserving_proto_field_name=True, indent=None))
        return
    for shown in (*_budget_lines(answer), *_cut_lines(answer), *(_message_lines(answer) if text else ())):
        click.echo(shown)


def _budget_lines(answer: Any) -> Iterable[str]:
    """A line and a bar for each section, then what is free."""
    from sidecar.gen.lorekeeper.v1 import chat_pb2, common_pb2

    window, total = answer.budget.window, answer.total.tokens
    counter = common_pb2.TokenCounter.Name(answer.total.counter).removeprefix("TOKEN_COUNTER_").lower()
    yield click.style(f"{total} of {window} tokens ({counter})", bold=True)
    for section in answer.sections:
        kind = chat_pb2.PromptSectionKind.Name(section.kind).removeprefix("PROMPT_SECTION_KIND_")
        yield _bar(_NAMES[kind], section.count.tokens, window)
    yield _bar(_NAMES["COMPLETION"], answer.budget.completion_reserve, window)
    yield _bar("free", max(0, window - total - answer.budget.completion_reserve), window)


def _bar(name: str, tokens: int, window: int) -> str:
    filled = min(_BAR, -(-tokens * _BAR // window) if tokens else 0)
    return f"  {name:<20} {tokens:>8}  {'#' * filled}{'.' * (_BAR - filled)}"


def _cut_lines(answer: Any) -> Iterable[str]:
    for cut in answer.cuts:
        words = f"  cut: {cut.what}: {cut.kept} {cut.unit} kept, {cut.dropped} not"
        yield click.style(f"{words}; {cut.detail}" if cut.detail else words, fg="yellow")


def _message_lines(answer: Any) -> Iterable[str]:
    for message in answer.messages:
        yield click.style(f"\n[{message.role}, {message.tokens} tokens]", bold=True)
        yield message.content


def _row(row: Any) -> dict[str, Any]:
    who = row.key if hasattr(row, "key") else row.speaker or row.role
    return {"order": row.order, "time": row.time.seconds, "who": who, "content": row.content}


def _actor(parts: dict[str, str]) -> Any:
    from sidecar.storage.keys import actor_id
    from sidecar.wire import actor_to

    return actor_to(actor_id(**parts))


def _ask(data_dir: Path, method: str, request: Any) -> Any:
    """The answer of the daemon that runs on the folder, or of its services over the files."""
    from sidecar.cli.client import connected, running
    from sidecar.gen.lorekeeper.v1 import chat_pb2_grpc, compaction_pb2_grpc

    if not data_dir.is_dir():
        raise click.ClickException(f"there is no data folder at {data_dir}")
    if running(data_dir) is None:
        return _answer_from_files(data_dir, method, request)
    with connected(data_dir) as client:
        stubs = (chat_pb2_grpc.ChatServiceStub, compaction_pb2_grpc.CompactionServiceStub)
        stub = next(made for made in (stub(client.channel) for stub in stubs) if hasattr(made, method))
        return client.call(getattr(stub, method), request)


def _answer_from_files(data_dir: Path, method: str, request: Any) -> Any:
    import asyncio
    import os

    from sidecar.daemon.config import ConfigError, load
    from sidecar.daemon.rooms import Rooms

    own_file = data_dir / "lorekeeper.toml"
    try:
        config = load(file=own_file if own_file.is_file() else None, environment=os.environ, flags=()).config
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    rooms = Rooms(LookingDisk(data_dir), config, serving=lambda service, can: None, report=lambda diagnostic: None)

    async def answer() -> Any:
        services = (rooms.chat.service, rooms.turns.service, rooms.chat.compaction_service)
        service = next(one for one in services if hasattr(one, method))
        try:
            return await getattr(service, method)(request, None)
        finally:
            await rooms.workers.close()

    return asyncio.run(answer())
