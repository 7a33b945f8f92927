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
    lines = [{name: in_one_line(value) for name, value in row.items()} for row in rows]
    widths = {name: max(len(name), *(len(line[name]) for line in lines)) for name in lines[0]}
    click.secho("  ".join(f"{name:<{width}}" for name, width in widths.items()), bold=True)
    for line in lines:
        click.echo("  ".join(f"{line[name]:<{width}}" for name, width in widths.items()).rstrip())


def in_one_line(value: Any) -> str:
    """A text as part of a line: what would break the line, or steer a terminal, is a space."""
    return "".join(character if character.isprintable() else " " for character in str(value))
