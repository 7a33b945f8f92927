"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def default_data_dir() -> Path:
    """The user's own data folder."""
    from platformdirs import user_data_dir

    return Path(user_data_dir("lorekeeper", appauthor=False))


class _Folder(click.Path):
    """A folder. An empty text, as a launcher's unset variable leaves it, would mean the current one: it is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty; name a folder, or leave the option out", param, ctx)
        return super().convert(value, param, ctx)


def _data_dir(*, file_okay: bool) -> Callable[[Any], Any]:
    return click.option(
        "--data-dir",
        type=_Folder(file_okay=file_okay, path_type=Path),
        envvar="LOREKEEPER_DATA_DIR",
        help="The data folder.  [default: the user's data folder for lorekeeper]",
        callback=lambda _context, _parameter, value: value or default_data_dir(),
    )


data_dir = _data_dir(file_okay=False)
# Of the daemon, whose exit code tells what is wrong with the folder.
served_data_dir = _data_dir(file_okay=True)

as_json: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
