"""``backends``: which model servers run on this machine, and what each of them can do."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import click

from sidecar.chat.backends.client import BackendClient, key_of
from sidecar.chat.backends.probe import WORDS, Probed, Prober
from sidecar.chat.backends.profile import Backend, checked_backend
from sidecar.chat.backends.servers import USUAL_PORTS
from sidecar.cli.options import as_json
from sidecar.settings import BackendSettings

_PROBE_MS = 5_000
_TRY_MS = 120_000


@click.command()
@click.argument("urls", nargs=-1)
@click.option("--model", default="", help="The model to use; by default the first that a server has.")
@click.option("--key-env", default="", help="The environment variable that holds the key.")
@click.option("--try", "try_model", is_flag=True, help="Also try tools, streaming and JSON, with tiny requests.")
@as_json
def backends(urls: tuple[str, ...], model: str, key_env: str, try_model: bool, as_json: bool) -> None:
    """Find model servers at URLS, by default at the usual ports of this machine. Ends with 1 where none answers."""
    places = urls or tuple(f"http://127.0.0.1:{port}/v1" for port in USUAL_PORTS)
    profiles = [_profile(url, model, key_env) for url in places]
    found = asyncio.run(_probe_all(profiles, try_model=try_model))
    rows = [_row(profile.base_url, probed) for profile, probed in zip(profiles, found, strict=True)]
    shown = rows if urls else [row for row in rows if row["reachable"]]
    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False))
    elif not shown:
        click.echo(
            "No model server answers at the usual ports. Start one, or name its address: lorekeeper backends URL"
        )
    else:
        for row in shown:
            _show(row)
    sys.exit(0 if any(row["reachable"] for row in shown) else 1)


def _profile(url: str, model: str, key_env: str) -> Backend:
    profile = Backend(
        backend_id="probe", base_url=url, model=model, api_key_env=key_env, allow_remote=True, connect_timeout_ms=1_000
    )
    return checked_backend(profile, model_required=False)


async def _probe_all(profiles: list[Backend], *, try_model: bool) -> list[Probed]:
    client = BackendClient(BackendSettings())
    probers = [Prober(client, profile, key_of(profile)) for profile in profiles]
    limit_ms = _TRY_MS if try_model else _PROBE_MS
    try:
        return list(await asyncio.gather(*(each.probe(try_model=try_model, timeout_ms=limit_ms) for each in probers)))
    finally:
        await client.close()


def _row(url: str, found: Probed) -> dict[str, Any]:
    tried = {name: getattr(found, name) for name in ("native_tools", "streaming", "json_schema", "usage")}
    return {
        "url": url,
        "reachable": found.reachable,
        "server": found.server,
        "model": found.model,
        "models": [model.name for model in found.models],
        "context_tokens": found.window or None,
        **{name: value for name, value in tried.items() if value is not None},
        "problems": [
            {"code": problem.name, "message": WORDS[problem][0], "advice": WORDS[problem][1]}
            for problem in found.gravest_first()
        ],
    }


def _show(row: dict[str, Any]) -> None:
    click.secho(row["url"], bold=True, nl=False)
    click.echo(f"  {row['server'] or ('a model server' if row['models'] else '')}".rstrip())
    if row["models"]:
        click.echo(f"  models   {', '.join(row['models'])}")
    if row["context_tokens"]:
        click.echo(f"  window   {row['context_tokens']} tokens")
    for name in ("streaming", "native_tools", "json_schema", "usage"):
        if name in row:
            click.echo(f"  {name.replace('_', ' '):<14}{'yes' if row[name] else 'no'}")
    for problem in row["problems"]:
        click.secho(f"  {problem['message']}", fg="yellow")
        click.echo(f"    {problem['advice']}")
