"""``doctor`` and ``repair``: what is wrong with a data folder, and mending it."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import suppress
from pathlib import Path

import click

from sidecar.chat.salvage import check_backends, check_conversation, check_roles, check_summary
from sidecar.cli.options import as_json, data_dir
from sidecar.cli.save_basics import agreed
from sidecar.errors import LorekeeperError
from sidecar.memory.document_salvage import check_document
from sidecar.memory.record_salvage import check_records
from sidecar.saves.contents import counts_of
from sidecar.saves.salvage import whole_checkpoint
from sidecar.storage.check import Finding, check_format, check_object, findings
from sidecar.storage.disk import Disk
from sidecar.storage.file_disk import FileDisk
from sidecar.storage.folder_lock import FolderLock
from sidecar.storage.format import FORMAT, stored_format

CHECKS = {
    "document.json": check_document,
    "records.jsonl": check_records,
    "history.jsonl": check_conversation,
    "summary.json": check_summary,
    "roles.json": check_roles,
    "backends.json": check_backends,
    "format.json": check_format,
    "checkpoint.json": check_object(whole_checkpoint),
    **dict.fromkeys(("save.json", "settings.json", "groups.json", "actor.json"), check_object(counts_of)),
}


@click.command()
@data_dir
@as_json
def doctor(data_dir: Path, as_json: bool) -> None:
    """Tell what is wrong with a data folder; changes nothing. Ends with 1 where something is."""
    found = _found(data_dir)
    if as_json:
        click.echo(json.dumps([_row(finding) for finding in found]))
    elif not found:
        click.secho("Nothing is wrong.", fg="green")
    else:
        for finding in found:
            _show(finding)
        click.echo(f"\n'lorekeeper repair {_on(data_dir)}' mends what it can; it asks first.")
    sys.exit(1 if found else 0)


@click.command()
@data_dir
@as_json
@click.option("--yes", is_flag=True, help="Mend everything that can be mended, without asking.")
def repair(data_dir: Path, as_json: bool, yes: bool) -> None:
    """Mend what doctor found; asks first, keeps what it cuts in repaired/. The daemon must not run."""
    lock = FolderLock(data_dir)
    if data_dir.is_dir() and not lock.acquire():
        raise click.ClickException(f"a daemon runs on this folder; end it first with: lorekeeper stop {_on(data_dir)}")
    try:
        found = _found(data_dir)
        rows = [_row(finding) | {"mended": _mended(finding, yes=yes, quiet=as_json)} for finding in found]
    finally:
        lock.release()
    if as_json:
        click.echo(json.dumps(rows))
    elif not rows:
        click.secho("Nothing is wrong.", fg="green")
    if any(finding.mend and not row["mended"] for finding, row in zip(found, rows, strict=True)):
        click.echo("What nobody agreed to is as it was; with --yes it is mended without a question.", err=True)
    sys.exit(0 if all(row["mended"] for row in rows) else 1)


def _on(folder: Path) -> str:
    return f"--data-dir {shlex.quote(str(folder))}"


def _found(folder: Path) -> list[Finding]:
    if not folder.is_dir():
        raise click.ClickException(f"there is no data folder at {folder}")
    disk = FileDisk(folder)
    _refuse_newer(disk)
    return list(findings(disk, CHECKS))


def _refuse_newer(disk: Disk) -> None:
    with suppress(LorekeeperError):  # a format that cannot be read is a finding
        stored = stored_format(disk)
        if stored and stored > FORMAT:
            raise click.ClickException(f"format {stored} was written by a newer Lorekeeper; use that one")


def _mended(finding: Finding, *, yes: bool, quiet: bool) -> bool:
    if not quiet:
        _show(finding)
    if finding.mend is None or not (yes or (not quiet and agreed("  Do that?"))):
        return False
    finding.mend()
    return True


def _row(finding: Finding) -> dict[str, str]:
    return {"file": finding.file, "problem": finding.problem, "remedy": finding.remedy}


def _show(finding: Finding) -> None:
    click.secho(finding.file, bold=True)
    click.echo(f"  {finding.problem}")
    click.secho(f"  remedy: {finding.remedy}", fg="yellow")
