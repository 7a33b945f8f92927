"""What the commands about saves share: options, the stub, pages, and numbers for people."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import click
from google.protobuf.json_format import MessageToDict

from sidecar.cli.client import Client
from sidecar.gen.lorekeeper.v1 import save_pb2, save_pb2_grpc
from sidecar.storage.keys import DEFAULT_SAVE

_UNITS = ("B", "kB", "MB", "GB", "TB")

the_save: Callable[[Any], Any] = click.option("--save", default=DEFAULT_SAVE, show_default=True, help="The save.")
sure: Callable[[Any], Any] = click.option("--yes", is_flag=True, help="Do not ask.")


def size(count: float) -> str:
    """Bytes for people."""
    unit = 0
    while count >= 1_000 and unit < len(_UNITS) - 1:
        count /= 1_000
        unit += 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def age(seconds: float) -> str:
    """How long ago Unix ``seconds`` are, for people."""
    if not seconds:
        return "never"
    passed = max(0, int(time.time() - seconds))
    for name, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if passed >= 2 * length:
            return f"{passed // length} {name} ago"
    return f"{passed} seconds ago"


def confirmed(yes: bool, question: str) -> None:
    """Go on if the person says so. Raises click.ClickException."""
    if not (yes or agreed(question)):
        raise click.ClickException("nothing was changed; with --yes it is done without a question")


def agreed(question: str) -> bool:
    """Whether the person says so; who is not there does not."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        return False


def require_save(client: Client, save: str) -> None:
    """Raise click.ClickException for a save that holds nothing: most likely its name was typed wrongly."""
    request = save_pb2.ListCheckpointsRequest(save_id=save, page_size=1)
    found = client.call(save_stub(client).ListCheckpoints, request)
    if found.save.revision == 0 and not found.checkpoints:
        raise click.ClickException(f"there is no save '{save}'; 'lorekeeper saves list' shows those that there are")


def save_stub(client: Client) -> Any:
    return save_pb2_grpc.SaveServiceStub(client.channel)


def plain(message: Any) -> dict[str, Any]:
    value: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return value


def pages(client: Client, method: Any, request: Any, field: str) -> Iterator[Any]:
    while True:
        answer = client.call(method, request)
        yield from getattr(answer, field)
        if not answer.next_page_token:
            return
        request.page_token = answer.next_page_token
