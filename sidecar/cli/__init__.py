"""The ``lorekeeper`` command; ``commands.py`` has the list."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Run the command line. A start as games make it does without the reader of options: a sixth of its time."""
    from sidecar.cli.starting import plain_start

    plain_start(sys.argv[1:])
    from sidecar.cli.commands import lorekeeper

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a pipe may have an encoding without the text's letters
    lorekeeper(prog_name="lorekeeper")
