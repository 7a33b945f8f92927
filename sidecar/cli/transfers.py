"""``export`` and ``import``: a save as one file, and the data of other systems."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import click
import grpc

from sidecar.cli.client import Client, connected
from sidecar.cli.options import as_json, data_dir
from sidecar.cli.save_basics import confirmed, plain, save_stub, size, sure, the_save
from sidecar.gen.lorekeeper.v1 import save_pb2

_PIECE_BYTES = 1_000_000
_FORMATS = {
    "lorekeeper": save_pb2.IMPORT_FORMAT_LOREKEEPER,
    "coreai": save_pb2.IMPORT_FORMAT_COREAI,
    "opengameagent": save_pb2.IMPORT_FORMAT_OPENGAMEAGENT,
}
_CONFLICTS = {
    "fail": save_pb2.IMPORT_CONFLICT_FAIL,
    "replace": save_pb2.IMPORT_CONFLICT_REPLACE,
    "merge": save_pb2.IMPORT_CONFLICT_MERGE,
}


@click.command()
@data_dir
@as_json
@the_save
@click.option("--checkpoint", "checkpoint_id", default="", help="The checkpoint to export.  [default: as it is now]")
@click.option("--force", is_flag=True, help="Write over a file that exists.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export(data_dir: Path, as_json: bool, save: str, checkpoint_id: str, force: bool, file: Path) -> None:
    """Write a save to one zip file."""
    _require_place(file, force=force)
    partial = file.with_name(file.name + ".partial")
    try:
        with connected(data_dir) as client, partial.open("wb") as out:
            request = save_pb2.ExportSaveRequest(save_id=save, checkpoint_id=checkpoint_id)
            footer = _received(client, request, out, quiet=as_json)
        partial.replace(file)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    if as_json:
        click.echo(json.dumps(plain(footer)))
        return
    click.echo(f"{file}: {size(footer.bytes)}, {footer.actors} actors, {footer.records} records")


@click.command("import")
@data_dir
@as_json
@click.option("--save", default="", help="The save to make.  [default: the id in the file]")
@click.option("--conflict", type=click.Choice(list(_CONFLICTS)), default="fail", help="Where the save exists already.")
@click.option("--dry-run", is_flag=True, help="Only check and report.")
@click.option("--timeline", default="", help="The timeline of moments that name none.")
@sure
@click.argument("source_format", metavar="FORMAT", type=click.Choice(list(_FORMATS)))
@click.argument("source", type=click.Path(exists=True, path_type=Path))
def import_(data_dir: Path, as_json: bool, source_format: str, source: Path, yes: bool, **more: Any) -> None:
    """Take in a save.

    FORMAT is lorekeeper for a file that export made, coreai or opengameagent for the memory folder of these systems, or
    a zip file of it.
    """
    if source.is_dir() and source_format == "lorekeeper":
        raise click.ClickException(f"{source} is a folder; name the file that export made")
    if more["conflict"] == "replace" and not more["dry_run"]:
        confirmed(yes, "The save is replaced; what it was is kept as a checkpoint. Import?")
    header = save_pb2.ImportHeader(
        save_id=more["save"],
        format=_FORMATS[source_format],
        conflict=_CONFLICTS[more["conflict"]],
        dry_run=more["dry_run"],
        timeline_id=more["timeline"],
        source_directory=str(source.resolve()) if source.is_dir() else "",
    )
    with connected(data_dir) as client:
        answer = _sent(client, header, source, quiet=as_json)
    if as_json:
        click.echo(json.dumps(plain(answer)))
        return
    _show_import(answer, dry_run=more["dry_run"])


def _require_place(file: Path, *, force: bool) -> None:
    """A file is put in its place whole: a device or a pipe would be replaced by it. Raises click.ClickException."""
    if str(file) == "-" or (file.exists() and not file.is_file()):
        raise click.ClickException(f"{file} is no file; a save is exported whole or not at all, so name a file")
    if file.exists() and not force:
        raise click.ClickException(f"{file} exists; choose another name, or --force")


def _received(client: Client, request: Any, out: Any, *, quiet: bool) -> save_pb2.ExportFooter:
    digest = hashlib.sha256()
    footer: save_pb2.ExportFooter | None = None
    try:
        messages = save_stub(client).ExportSave(request, metadata=client.metadata)
        header = next(messages).header
        with _progress(max(1, header.source_bytes), "Exporting", quiet=quiet) as bar:
            for message in messages:
                digest.update(message.chunk)
                out.write(message.chunk)
                bar.update(len(message.chunk))
                if message.WhichOneof("part") == "footer":
                    footer = message.footer
    except grpc.RpcError as error:
        raise click.ClickException(f"{error.details()} ({error.code().name})") from error
    if footer is None or footer.sha256 != digest.hexdigest():
        raise click.ClickException("the export did not arrive whole; try again")
    return footer


def _sent(client: Client, header: save_pb2.ImportHeader, source: Path, *, quiet: bool) -> save_pb2.ImportSaveResponse:
    length = 0 if source.is_dir() else source.stat().st_size
    with _progress(max(1, length), "Importing", quiet=quiet) as bar:

        def messages() -> Iterator[save_pb2.ImportSaveRequest]:
            yield save_pb2.ImportSaveRequest(header=header)
            if source.is_dir():
                return
            with source.open("rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    yield save_pb2.ImportSaveRequest(chunk=piece)
                    bar.update(len(piece))

        try:
            answer: save_pb2.ImportSaveResponse = save_stub(client).ImportSave(messages(), metadata=client.metadata)
        except grpc.RpcError as error:
            raise click.ClickException(f"{error.details()} ({error.code().name})") from error
    return answer


def _progress(length: int, label: str, *, quiet: bool) -> AbstractContextManager[Any]:
    """A bar on standard error; none where nobody would see it."""
    out = io.StringIO() if quiet else sys.stderr
    bar: AbstractContextManager[Any] = click.progressbar(length=length, label=label, file=out)
    return bar


def _show_import(answer: save_pb2.ImportSaveResponse, *, dry_run: bool) -> None:
    taken = ", ".join(f"{count} {name}" for name, count in sorted(answer.taken.items())) or "nothing"
    click.echo(f"{'Would take' if dry_run else 'Took'} {taken}.")
    for item in answer.skipped:
        where = f"{item.path}: " if item.path else ""
        click.secho(f"  not taken: {where}{item.count} {item.kind}, {item.reason}", fg="yellow")
    if answer.skipped_more:
        click.echo(f"  and {answer.skipped_more} more")
    if answer.HasField("safety"):
        click.echo(f"What the save was before: {answer.safety.checkpoint_id}")
