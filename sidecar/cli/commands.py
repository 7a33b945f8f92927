"""The list of commands. Each one is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib
import os
from keyword import iskeyword
from typing import Any

import click

from sidecar import __version__
from sidecar.errors import LorekeeperError

# name: (module, what --help says without importing it)
_COMMANDS = {
    "serve": ("serve", "Run the daemon on a data folder, or attach to the one that runs."),
    "status": ("running", "Tell what the daemon on a data folder is doing."),
    "stop": ("running", "Ask the daemon on a data folder to end."),
    "token": ("running", "Print the token of the running daemon."),
    "backends": ("backends", "Find the model servers of this machine and what they can do."),
    "demo": ("demo", "Play a short scene against a real daemon and show each call."),
    "inspect": ("inspect", "Read saves, actors, documents, records, conversations and prompts."),
    "search": ("search", "Find records through the running daemon, with scores and reasons."),
    "index": ("search", "Tell how the derived index stands, or build it again."),
    "models": ("models", "List embedding models; add, verify and remove one."),
    "saves": ("saves", "List saves and their checkpoints."),
    "checkpoint": ("saves", "Keep a save as it is now."),
    "restore": ("saves", "Make a save what it was at a checkpoint."),
    "fork": ("saves", "Make a new save of a save or of one of its checkpoints."),
    "export": ("transfers", "Write a save to one zip file."),
    "import": ("transfers", "Take in a save, also of CoreAI or OpenGameAgent."),
    "erase": ("erasing", "Forget a save, an actor or a player completely."),
    "bench": ("bench", "Measure how well the daemon finds what was said."),
    "doctor": ("doctor", "Tell what is wrong with a data folder; changes nothing."),
    "repair": ("doctor", "Mend what doctor found; asks first, keeps what it cuts."),
}


class _Lazy(click.Group):
    """Knows the names of the commands and imports one when it is needed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. What it raises is told in a sentence, and the command ends with 1."""
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            return super().invoke(ctx)
        except LorekeeperError as error:
            raise click.ClickException(error.message) from error
        except UnicodeEncodeError as error:
            raise click.ClickException("an argument is not text in UTF-8; write it in that encoding") from error
        except BrokenPipeError:
            raise  # whoever read the output has enough: click ends in silence
        except OSError as error:
            raise click.ClickException(f"{error.filename or 'the system refuses'}: {error.strerror}") from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"sidecar.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name + "_" * iskeyword(cmd_name))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lorekeeper")
def lorekeeper() -> None:
    """Lorekeeper gives every NPC of a game a memory of its own.

    Begin with 'lorekeeper demo', which needs nothing else. A game starts 'lorekeeper serve'; the other commands read
    the same data: --data-dir names the folder, by default the user's own.
    """
