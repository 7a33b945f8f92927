"""``lorekeeper serve``: the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sidecar.cli.options import served_data_dir
from sidecar.cli.starting import loaded, refuse, start
from sidecar.daemon.config import printed
from sidecar.daemon.server import Exit, ServeOptions, Tls
from sidecar.errors import InvalidInput

if TYPE_CHECKING:
    from sidecar.chat.role_store import KnownRole

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@served_data_dir
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="TCP port; 0 takes any free one.  [default: 0]")
@click.option("--parent-pid", type=click.IntRange(1), help="End when this process ends.")
@click.option("--stdin-lifeline", is_flag=True, help="End when standard input closes: the surest sign of all.")
@click.option("--config", "config_file", type=_FILE, help="A TOML file.  [default: lorekeeper.toml in the data folder]")
@click.option("--set", "flags", multiple=True, metavar="SECTION.NAME=VALUE", help="Set one value; may be repeated.")
@click.option("--roles", "roles_file", type=_FILE, help="The game's own roles, as JSON.")
@click.option("--print-config", is_flag=True, help="Print every setting with its range and origin, and end.")
@click.option("--listen", metavar="HOST", help="Bind this address too, for other machines; needs both TLS files.")
@click.option("--tls-cert", type=_FILE, help="Certificate chain (PEM), with --listen.")
@click.option("--tls-key", type=_FILE, help="Private key (PEM), with --listen.")
def serve(
    data_dir: Path,
    port: int,
    parent_pid: int | None,
    stdin_lifeline: bool,
    config_file: Path | None,
    flags: tuple[str, ...],
    roles_file: Path | None,
    print_config: bool,
    listen: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Run the daemon on a data folder, or attach to the one that runs.

    The first line on standard output is JSON with the address and the token; nothing else follows there. Logs go to
    standard error and to logs/ in the data folder.
    """
    configuration = loaded(config_file, data_dir, flags)
    if print_config:
        click.echo(printed(configuration), nl=False)
        return
    options = ServeOptions(
        data_dir=data_dir,
        host=listen or "127.0.0.1",
        port=port,
        tls=_tls(listen, tls_cert, tls_key),
        parent_pid=parent_pid,
        stdin_lifeline=stdin_lifeline,
        roles=_roles(roles_file),
    )
    start(options, configuration)


def _roles(file: Path | None) -> Mapping[str, KnownRole] | None:
    if file is None:
        return None
    from sidecar.chat.role_store import read_roles_file

    try:
        return read_roles_file(file)
    except InvalidInput as error:
        refuse(f"{file}: {error.message}", Exit.USAGE)


def _tls(listen: str | None, certificate: Path | None, key: Path | None) -> Tls | None:
    """Both files with --listen, none without: what leaves this machine is encrypted."""
    if listen is None and certificate is None and key is None:
        return None
    if listen is None or certificate is None or key is None:
        raise click.UsageError("--listen, --tls-cert and --tls-key are given together or not at all")
    return Tls(certificate.read_bytes(), key.read_bytes())
