"""Rows for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import click


def show(rows: list[dict[str, Any]], as_json: bool, empty: str) -> None:
    """Rows as JSON, or as a table with a column for each name."""
    if as_json:
        click.echo(json.dumps(rows))
        return
    if not rows:
        click.echo(empty, err=True)
        return
    widths = {name: max(len(name), *(len(str(row[name])) for row in rows)) for name in rows[0]}
    click.secho("  ".join(f"{name:<{width}}" for name, width in widths.items()), bold=True)
    for row in rows:
        click.echo("  ".join(f"{row[name]!s:<{width}}" for name, width in widths.items()))
