"""The ``lorekeeper`` command; ``commands.py`` has the list."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command line. A start as games make it does without the reader of options: a sixth of its time."""
    # Standard error is the log's: gRPC would write to it what strangers send. It looks here when it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from sidecar.cli.starting import plain_start

    plain_start(sys.argv[1:])
    from sidecar.cli.commands import lorekeeper

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a pipe may have an encoding without the text's letters
    lorekeeper(prog_name="lorekeeper")
