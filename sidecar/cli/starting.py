"""Starting the daemon once it is known with what: shared by ``serve`` and by the short way that games take.

Imports no more than a start needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sidecar.daemon.config import ConfigError, Loaded, load
from sidecar.daemon.server import CannotStart, Exit, ServeOptions, serve

_CONFIG_FILE = "lorekeeper.toml"


def plain_start(arguments: Sequence[str]) -> None:
    """Serve to the end of the process, if ``arguments`` are a start as games make it; else, mistakes included, return.

    serve --data-dir D [--stdin-lifeline] [--parent-pid P], in this spelling and any order.
    """
    options = _plain(list(arguments))
    if options is not None:
        start(options, loaded(None, options.data_dir, ()))


def start(options: ServeOptions, configuration: Loaded) -> NoReturn:
    """Run the daemon to its end, and the process with it; a start that fails says why on standard error and exits."""
    try:
        serve(options, configuration)
    except CannotStart as error:
        refuse(str(error), error.exit_code)
    _leave()


def _leave() -> NoReturn:
    """End at once, all being written and closed: Python would wait, for seconds, for a thread that loads a model."""
    os._exit(Exit.OK)


def loaded(file: Path | None, data_dir: Path, flags: Sequence[str]) -> Loaded:
    """The configuration: from ``file``, by default the one in the data folder, the environment, and flags."""
    own = data_dir / _CONFIG_FILE
    try:
        return load(file=file or (own if _is_file(own) else None), environment=os.environ, flags=flags)
    except ConfigError as error:
        refuse(str(error), Exit.USAGE)


def _is_file(path: Path) -> bool:
    """Whether it is one; a name that the system refuses is none, which is told where the folder is made."""
    try:
        return path.is_file()
    except OSError:
        return False


def refuse(message: str, code: Exit) -> NoReturn:
    """Say why, and exit."""
    print(f"lorekeeper: {message}", file=sys.stderr)
    sys.exit(code)


def _plain(arguments: list[str]) -> ServeOptions | None:
    if arguments[:1] != ["serve"]:
        return None
    data_dir, parent_pid, lifeline = "", 0, False
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "--stdin-lifeline":
            lifeline = True
        elif argument == "--data-dir":
            data_dir = next(rest, "")
        elif argument == "--parent-pid" and (value := next(rest, "")).isdecimal() and int(value):
            parent_pid = int(value)
        else:
            return None
    if not data_dir:
        return None
    return ServeOptions(Path(data_dir), parent_pid=parent_pid or None, stdin_lifeline=lifeline)
