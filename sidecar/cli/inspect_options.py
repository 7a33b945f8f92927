"""What the commands of ``inspect`` share: an actor's address as options."""

from __future__ import annotations

from typing import Any

import click

from sidecar.storage.keys import DEFAULT_SAVE


def actor_options(command: Any) -> Any:
    """The parts of an actor's address, as options."""
    for name, words in (
        ("tenant", "Its tenant."),
        ("topic", "Its topic."),
        ("player", "Its player."),
        ("role", "Its role."),
        ("actor", "The actor's id; empty: the role itself."),
    ):
        command = click.option(f"--{name}", default="", help=words)(command)
    return click.option("--save", default=DEFAULT_SAVE, show_default=True, help="The save.")(command)
